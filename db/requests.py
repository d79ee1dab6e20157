"""Requests: what an operation takes, as a model whose fields are known to every door.

A field's name is the key of a job's config and of JSON; its type, bounds, default and description
make the option of the command (`app.cli.kit.options`), the widget of a page (`app.kit.fields`) and
the reference in the docs. To add an option, add a field.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from db.errors import BadInput
from db.values import DATASET_BENCHMARK

ALIKE = 0.6
BOUNDS = ("ge", "gt", "le", "lt")
# A file, or a file or folder, that is there; one to read or write (or a URL); or a name, unless a
# file or folder of that name is there, also after `KIND:`.
PathKind = Literal["file", "place", "path", "named"]


class Request(BaseModel):
    """What an operation takes; unchangeable, and without a key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """The request of these keys. Raises BadInput naming every unusable key and what would do.

        Also of a job's config, of earlier versions too: what they called otherwise is read by the
        model's own validator.
        """
        try:
            return cls.model_validate(dict(given))
        except ValidationError as error:
            found = next(iter(error.errors()[0]["loc"]), None)
            raise BadInput(
                "; ".join(_problems(cls, error)), code="request_invalid", field=found
            ) from error

    @model_validator(mode="before")
    @classmethod
    def _with_absolute_paths(cls, given: Any) -> Any:
        """A job runs in another folder."""
        if not isinstance(given, Mapping):
            return given
        kinds = {name: kind for name in given if (kind := path_of(cls, name))}
        return {**given, **{name: _made_absolute(given[name], kinds[name]) for name in kinds}}

    @model_validator(mode="after")
    def _are_of_their_choices(self) -> Self:
        for name in type(self).model_fields:
            given, allowed = getattr(self, name), _extra(type(self), name).get("enum")
            if allowed and given not in allowed:
                listed = ", ".join(str(one) for one in allowed if one is not None)
                wrong = f"{name}={given!r}: it is one of {listed}"
                raise BadInput(wrong, code="request_invalid", field=name)
        return self

    def config(self) -> dict[str, Any]:
        """All keys as JSON, as a job stores them."""
        return self.model_dump(mode="json")


def option(
    default: Any,
    description: str,
    *,
    names: tuple[str, ...] | None = None,
    title: str = "",
    metavar: str = "",
    choices: tuple[str, ...] = (),
    path: PathKind | None = None,
    **bounds: Any,
) -> Any:
    """A field of a request, with its default (`...`: required) and bounds (`ge`, `lt`, …).

    names: its options on the command line where they are not its name; none, `()`, where it is an
    argument there (by its `metavar`) or is not given there at all; title: its label on a page;
    choices: what it may be, where a registry has the names; else a `Literal` says so; path: what it
    is a path of, which the request makes absolute.
    """
    extra: dict[str, Any] = {}
    if names is not None:
        extra["option"] = list(names)
    if metavar:
        extra["metavar"] = metavar
    if path:
        extra["path"] = path
    if choices:
        extra["enum"] = [*choices] if default is not None else [*choices, None]
    return Field(
        default, description=description, title=title or None, json_schema_extra=extra, **bounds
    )


def default_of(model: type[Request], name: str) -> Any:
    """What a field is where nothing is given for it."""
    return model.model_fields[name].get_default(call_default_factory=True)


def choices_of(model: type[Request], name: str) -> tuple[Any, ...]:
    """What a field may be, where it is one or several of a few words; else nothing."""
    listed = [one for one in _extra(model, name).get("enum", ()) if one is not None]
    return tuple(listed) or _choices(model.model_fields[name].annotation)


def type_of(model: type[Request], name: str) -> tuple[Any, bool]:
    """The type of one value of a field, and whether there may be several."""
    return _plain(model.model_fields[name].annotation)


def bounds_of(model: type[Request], name: str) -> dict[str, Any]:
    """The bounds of a field's value, by `ge`, `gt`, `le` and `lt`."""
    return {
        bound: value
        for each in model.model_fields[name].metadata
        for bound in BOUNDS
        if (value := getattr(each, bound, None)) is not None
    }


def options_of(model: type[Request], name: str) -> tuple[str, ...]:
    """The names of a field's option on the command line; none where it is not an option there."""
    named = _extra(model, name).get("option")
    return (f"--{name.replace('_', '-')}",) if named is None else tuple(named)


def arguments_of(request: Request) -> list[str]:
    """The options on the command line for what the request was given, without words at their
    default."""
    model, found = type(request), list[str]()
    for name in (each for each in model.model_fields if each in request.model_fields_set):
        value = getattr(request, name)
        if value is None or (isinstance(value, str | bool) and value == default_of(model, name)):
            continue
        for option in options_of(model, name)[:1]:
            many = value if isinstance(value, list | tuple) else (value,)
            pairs = [part for one in many for part in (option, str(one))]
            found += [option] if value is True else pairs
    return found


def is_mapping(model: type[Request], name: str) -> bool:
    """Whether a field has a value for each of several keys."""
    return get_origin(model.model_fields[name].annotation) is Mapping


def mapping_of(model: type[Request], name: str, given: Iterable[str]) -> dict[str, str]:
    """What texts `KEY=VALUE` give for such a field; with the metavar `KEY=[VALUE]` a value may be
    empty. Raises BadInput for any other text."""
    found: dict[str, str] = {}
    form = metavar_of(model, name) or "KEY=VALUE"
    for each in given:
        key, equals, value = (part.strip() for part in each.partition("="))
        if not (key and equals and (value or form.endswith("]"))):
            wrong = f"{name} {each!r}: give it as {form}"
            raise BadInput(wrong, code="request_invalid", field=name)
        found[key] = value
    return found


def metavar_of(model: type[Request], name: str) -> str | None:
    """What the help of the command calls the value of a field, or the argument that it is; None for
    its type."""
    return _extra(model, name).get("metavar")


def path_of(model: type[Request], name: str) -> PathKind | None:
    """What a field is a path of, if it is one."""
    return _extra(model, name).get("path") if name in model.model_fields else None


def absolute(given: str | Path, kind: PathKind = "path") -> str:
    """The path from the root; a URL, and a name that is no file or folder here, unchanged."""
    name, path = str(given), Path(given).expanduser()
    if kind == "path":
        return name if "://" in name else str(path.absolute())
    if kind != "named":
        return str(path.resolve())
    before, colon, rest = name.partition(":")
    if colon and f"{before}:" != DATASET_BENCHMARK and Path(rest).exists():
        return f"{before}:{Path(rest).resolve()}"
    return str(path.resolve()) if name.startswith((".", "/", "~")) or path.is_dir() else name


def _made_absolute(given: Any, kind: PathKind) -> Any:
    if isinstance(given, list | tuple):
        return tuple(_made_absolute(each, kind) for each in given)
    return absolute(given, kind) if given and isinstance(given, str | Path) else given


def _plain(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) in (tuple, Mapping):
        return _plain(get_args(annotation)[0])[0], True
    inner = [one for one in get_args(annotation) if one is not type(None)]
    if len(inner) == 1:  # that, or None
        return _plain(inner[0])
    return annotation if isinstance(annotation, type) else str, False


def _extra(model: type[Request], name: str) -> dict[str, Any]:
    extra = model.model_fields[name].json_schema_extra
    return extra if isinstance(extra, dict) else {}


def _choices(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    inner = [one for one in get_args(annotation) if one not in (..., type(None))]
    return _choices(inner[0]) if len(inner) == 1 else ()


def meant(name: str, known: Iterable[str]) -> str:
    """Which of the known names an unknown one probably means, "" where none is near."""
    near = difflib.get_close_matches(name.lower().replace("-", "_"), [*known], 1, ALIKE)
    return near[0] if near else ""


def _problems(model: type[Request], error: ValidationError) -> Iterator[str]:
    for found in error.errors():
        name = ".".join(map(str, found["loc"])) or model.__name__
        if found["type"] == "extra_forbidden":
            near = meant(name, model.model_fields)
            question = f"did you mean {near!r}? " if near else ""
            yield f"no key {name!r}: {question}Keys are {', '.join(model.model_fields)}"
        elif found["type"] == "missing":
            yield f"{name} is missing: give it"
        else:
            reason = found["msg"].removeprefix("Value error, ").removeprefix("Input ")
            if not found["loc"]:  # what several keys are together
                yield reason
            elif reason.startswith("should"):
                yield f"{name}={found['input']!r}: it {reason}"
            else:
                yield f"{name}={found['input']!r}: {reason}"
