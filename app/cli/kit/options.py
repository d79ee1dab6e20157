"""The options of a command from the fields of its request."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, get_args, get_origin

import click

from app.text.remedies import in_commands
from db.errors import BadInput
from db.requests import Request, bounds_of, choices_of, default_of, metavar_of, options_of

R = TypeVar("R", bound=Request)
# click's names of a bound, and whether the bound itself is left out.
BOUNDS = {"ge": ("min", False), "gt": ("min", True), "le": ("max", False), "lt": ("max", True)}


def request_options(
    model: type[Request],
    *,
    types: Mapping[str, click.Path] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an option for every field that is one; the command takes the `request`.

    An argument or option of the command's own that is named as a field goes into the request too;
    an option of its own, below this decorator, takes the place of the field's.
    types: what click checks of a field's value, where that is more than its type.
    """

    maps = [name for name in model.model_fields if _is_mapping(model, name)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(*args: Any, **given: Any) -> Any:
            values = {name: given.pop(name) for name in model.model_fields if name in given}
            values |= {name: _mapping(model, name, values[name]) for name in maps if name in values}
            return command(*args, request=request_of(model, values), **given)

        return field_options(model, types=types)(wrapper)

    return decorate


def field_options(
    model: type[Request],
    *,
    types: Mapping[str, click.Path] | None = None,
    changed: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an option for every field that is one, as `request_options`; the command takes their
    values.

    changed: only these, of what is stored; one that is not given is None and stays as it is.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own: list[click.Parameter] = getattr(command, "__click_params__", [])
        taken = {option: each for each in own for option in each.opts}
        for name in reversed(changed or [*model.model_fields]):
            options = options_of(model, name)
            if already := next((taken[each] for each in options if each in taken), None):
                own.remove(already)  # to where the field is
                own.append(already)
            elif options:
                attributes = _attributes(model, name)
                if types and name in types:
                    attributes["type"] = types[name]
                if changed:
                    first = f"as it is; at first {default_of(model, name)}"
                    attributes |= {"default": None, "show_default": first}
                command = click.option(*options, name, **attributes)(command)
        return command

    return decorate


def request_of(model: type[R], values: Mapping[str, Any]) -> R:
    """The request of an option's values. Raises UsageError for what the model refuses."""
    try:
        return model.read({k: v for k, v in values.items() if v is not None})
    except BadInput as error:
        if error.code != "request_invalid":  # a value that only the work itself refuses
            raise
        raise click.UsageError(in_commands(str(error))) from error


def _attributes(model: type[Request], name: str) -> dict[str, Any]:
    """What click needs to know of a field."""
    field = model.model_fields[name]
    kind, is_many = _plain(field.annotation)
    about = field.description or ""
    found: dict[str, Any] = {
        "help": about if not is_many or "repeatable" in about else f"{about} Repeatable.",
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
    default = () if _is_mapping(model, name) else default_of(model, name)
    return found | {"default": default, "show_default": default not in (None, "", ())}


def _plain(annotation: Any) -> tuple[Any, bool]:
    """The type of one value, and whether there may be several."""
    if get_origin(annotation) in (tuple, Mapping):
        return get_args(annotation)[0], True
    inner = [one for one in get_args(annotation) if one is not type(None)]
    if len(inner) == 1:  # that, or None
        return _plain(inner[0])
    return annotation if isinstance(annotation, type) else str, False


def _is_mapping(model: type[Request], name: str) -> bool:
    return get_origin(model.model_fields[name].annotation) is Mapping


def _mapping(model: type[Request], name: str, given: Sequence[str]) -> dict[str, str]:
    """What `--OPTION KEY=VALUE` gave, repeated. Raises UsageError for anything else."""
    found: dict[str, str] = {}
    for each in given:
        key, equals, value = (part.strip() for part in each.partition("="))
        if not (key and equals and value):
            form = metavar_of(model, name) or "KEY=VALUE"
            raise click.UsageError(f"{options_of(model, name)[0]} {each!r}: give it as {form}")
        found[key] = value
    return found


def _range(bounds: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for bound, value in bounds.items():
        key, is_open = BOUNDS[bound]
        found |= {key: value, f"{key}_open": is_open}
    return found


class RegistryOption(click.Option):
    """An option whose help is `describe()`, called when help is shown: it imports plugins."""

    def __init__(self, *args: Any, describe: Callable[[], str], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._describe = describe

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = f"{self._describe()}."
        return super().get_help_record(ctx)
