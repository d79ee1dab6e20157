"""The options of a command from the fields of its request."""

import functools
from collections.abc import Callable, Collection
from typing import Any, Union, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from db.errors import BadInput
from db.requests import Request, _choices


def request_options(
    model: type[Request], *, without: Collection[str] = (), **named: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an option for every field but those in `without`; the command takes the `request`.

    A field of `without` is an argument or option of the command's own, of the same name (or the
    one that `named` gives it), which goes into the request too.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(*args: Any, **given: Any) -> Any:
            theirs = {named.get(name, name): name for name in model.model_fields}
            values = {theirs[key]: given.pop(key) for key in list(given) if key in theirs}
            try:
                request = model.read({k: v for k, v in values.items() if v is not None})
            except BadInput as error:
                if error.code != "bad_request":  # a value that only the work itself refuses
                    raise
                raise click.UsageError(str(error)) from error
            return command(*args, request=request, **given)

        for name, field in reversed(model.model_fields.items()):
            if name not in without:
                wrapper = click.option(*_names(name, field), **_attributes(field))(wrapper)
        return wrapper

    return decorate


def _names(name: str, field: FieldInfo) -> list[str]:
    extra = field.json_schema_extra
    named = extra.get("option") if isinstance(extra, dict) else None
    options = [str(one) for one in named] if isinstance(named, list) else []
    return [*(options or [f"--{name.replace('_', '-')}"]), name]


def _attributes(field: FieldInfo) -> dict[str, Any]:
    """What click needs to know of a field."""
    kind, is_many = _plain(field.annotation)
    required = field.is_required()
    default = () if is_many else None
    if not required:
        default = field.get_default(call_default_factory=True)
    found: dict[str, Any] = {"help": field.description, "required": required, "multiple": is_many}
    extra = field.json_schema_extra
    if isinstance(extra, dict) and "metavar" in extra:
        found["metavar"] = extra["metavar"]
    if kind is bool:
        return found | {"is_flag": True, "default": bool(default)}
    if choices := _choices(field.annotation):
        kind = click.Choice(choices)
    elif kind in (int, float) and (bounds := _bounds(field)):
        kind = (click.IntRange if kind is int else click.FloatRange)(**bounds)
    if required:
        return found | {"type": kind}
    shown = default not in (None, "", ()) and not isinstance(default, bool)
    return found | {"type": kind, "default": default, "show_default": shown}


def _plain(annotation: Any) -> tuple[Any, bool]:
    """The type of one value, and whether there may be several."""
    if get_origin(annotation) is tuple:
        return get_args(annotation)[0], True
    inner = [one for one in get_args(annotation) if one is not type(None)]
    if get_origin(annotation) in (Union, type(int | None)) and len(inner) == 1:
        return _plain(inner[0])
    return annotation if isinstance(annotation, type) else str, False


def _bounds(field: FieldInfo) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in field.metadata:
        for name, key, is_open in (
            ("ge", "min", False),
            ("gt", "min", True),
            ("le", "max", False),
            ("lt", "max", True),
        ):
            if (value := getattr(one, name, None)) is not None:
                found |= {key: value} | ({f"{key}_open": True} if is_open else {})
    return found
