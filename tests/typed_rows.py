"""The rows of routes as types for `inf_studio`, whose wheel has no pydantic: `inf_studio/rows.py`.

    python tests/typed_rows.py > inf_studio/rows.py

Rows of lists are dictionaries, so they are a TypedDict; a thing has its keys as attributes, so its
row is a class that says which.
"""

import sys
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from textwrap import wrap
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from app.api.routes import by_name

THINGS = ("datasets", "runs", "studies", "releases", "trainings", "models", "evaluations", "jobs")
OTHERS = ("runs estimate", "evaluations compare")
LISTS = ("groups list", "judgments list", "datasets pairs", "runs drops")
INDENT = 4 * " "
HEAD = '''"""What rows hold, for type checkers and completion. Written by `tests/typed_rows.py`."""

from __future__ import annotations

from typing import Any, TypedDict
'''


def as_python() -> str:
    """The module."""
    routes = by_name()
    things = [routes[f"{noun} show"].answers for noun in THINGS]
    things += [routes[name].answers for name in OTHERS]
    lists = [routes[f"{noun} list"].answers for noun in THINGS] + [
        routes[name].answers for name in LISTS
    ]
    rows = dict[str, type[BaseModel]]()
    for listed in lists:
        (row,) = get_args(listed.model_fields["data"].annotation)[:1]
        _collect(row, rows)
    for thing in things:
        for field in thing.model_fields.values():
            _collect(field.annotation, rows)
    parts = [HEAD]
    parts += ["\n".join(_lines(rows[name], "(TypedDict)")) for name in sorted(rows)]
    parts += ["\n".join(_lines(thing, "")) for thing in things]
    return "\n\n".join(parts).rstrip() + "\n"


def _lines(model: type[BaseModel], base: str) -> Iterator[str]:
    name = model.__name__ if base else f"{model.__name__}Keys"
    first = (model.__doc__ or "").strip().splitlines()[0]
    yield f"class {name}{base}:"
    yield from wrap(f'"""{first}"""', 100, initial_indent=INDENT, subsequent_indent=INDENT)
    yield ""
    types = {key: field.annotation for key, field in model.model_fields.items()}
    types |= {key: field.return_type for key, field in model.model_computed_fields.items()}
    for key, annotation in types.items():
        yield f"{INDENT}{key}: {_type(annotation)}"
    yield ""


def _collect(annotation: Any, found: dict[str, type[BaseModel]]) -> None:
    """Add the rows that are in values of this type, and those in them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        assert found.setdefault(annotation.__name__, annotation) is annotation, annotation
        for field in annotation.model_fields.values():
            _collect(field.annotation, found)
    for inner in get_args(annotation):
        _collect(inner, found)


def _type(annotation: Any) -> str:
    """The type of its JSON."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(_type(one) for one in inner))
    if origin is Literal:
        return " | ".join(dict.fromkeys(type(one).__name__ for one in inner))
    if origin is tuple:
        return f"list[{_type(inner[0])}]" if inner[-1] is ... else "list[Any]"
    if origin is list:
        return f"list[{_type(inner[0])}]"
    if origin in (dict, Mapping):
        return f"dict[str, {_type(inner[1])}]"
    if annotation in (datetime, date):
        return "str"
    if annotation in (int, float, str, bool):
        return str(annotation.__name__)
    if annotation is NoneType:
        return "None"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.__name__
    return "Any"


if __name__ == "__main__":
    sys.stdout.write(as_python())
