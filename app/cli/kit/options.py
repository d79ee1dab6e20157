"""The options of a command from the fields of its request."""

import functools
from collections.abc import Callable, Collection
from typing import Any, get_args, get_origin

import click

from app.text.remedies import in_commands
from db.errors import BadInput
from db.requests import Request, bounds_of, choices_of, default_of, metavar_of, options_of

# click's names of a bound, and whether the bound itself is left out.
BOUNDS = {"ge": ("min", False), "gt": ("min", True), "le": ("max", False), "lt": ("max", True)}


def request_options(
    model: type[Request], *, without: Collection[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an option for every field but those in `without`; the command takes the `request`.

    An argument or option of the command's own that is named as a field goes into the request too.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(*args: Any, **given: Any) -> Any:
            values = {name: given.pop(name) for name in model.model_fields if name in given}
            try:
                request = model.read({k: v for k, v in values.items() if v is not None})
            except BadInput as error:
                if error.code != "bad_request":  # a value that only the work itself refuses
                    raise
                raise click.UsageError(in_commands(str(error))) from error
            return command(*args, request=request, **given)

        for name in reversed(model.model_fields):
            if name not in without:
                names = (*options_of(model, name), name)
                wrapper = click.option(*names, **_attributes(model, name))(wrapper)
        return wrapper

    return decorate


def _attributes(model: type[Request], name: str) -> dict[str, Any]:
    """What click needs to know of a field."""
    field = model.model_fields[name]
    kind, is_many = _plain(field.annotation)
    found: dict[str, Any] = {
        "help": field.description,
        "required": field.is_required(),
        "multiple": is_many,
        "metavar": metavar_of(model, name),
    }
    if kind is bool:
        return found | {"is_flag": True, "default": bool(default_of(model, name))}
    if choices := choices_of(model, name):
        kind = click.Choice(choices)
    elif bounds := bounds_of(model, name):
        kind = (click.IntRange if kind is int else click.FloatRange)(**_range(bounds))
    found["type"] = kind
    if field.is_required():
        return found
    default = default_of(model, name)
    return found | {"default": default, "show_default": default not in (None, "", ())}


def _plain(annotation: Any) -> tuple[Any, bool]:
    """The type of one value, and whether there may be several."""
    if get_origin(annotation) is tuple:
        return get_args(annotation)[0], True
    inner = [one for one in get_args(annotation) if one is not type(None)]
    if len(inner) == 1:  # that, or None
        return _plain(inner[0])
    return annotation if isinstance(annotation, type) else str, False


def _range(bounds: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for bound, value in bounds.items():
        key, is_open = BOUNDS[bound]
        found |= {key: value, f"{key}_open": is_open}
    return found
