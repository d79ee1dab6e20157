"""The options of a command from the fields of its request."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Self, TypeVar

import click

from app.text.remedies import in_commands
from db.errors import BadInput, NotFound
from db.requests import (
    Request,
    bounds_of,
    choices_of,
    default_of,
    is_mapping,
    mapping_of,
    metavar_of,
    options_of,
    path_of,
    type_of,
)

R = TypeVar("R", bound=Request)
# click's names of a bound, and whether the bound itself is left out.
BOUNDS = {"ge": ("min", False), "gt": ("min", True), "le": ("max", False), "lt": ("max", True)}
# What has to be there; click says so of an argument that is not.
PLACES = {"file": click.Path(exists=True, dir_okay=False), "place": click.Path(exists=True)}


def request_options(
    model: type[Request],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an argument or option for every field that is one; the command takes the `request`.

    An argument or option of the command's own that is named as a field goes into the request too;
    one of its own, below this decorator, takes the place of the field's.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(*args: Any, **given: Any) -> Any:
            values = {name: given.pop(name) for name in model.model_fields if name in given}
            return command(*args, request=request_of(model, values), **given)

        return field_options(model)(wrapper)

    return decorate


def field_options(
    model: type[Request], *, changed: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add arguments and options, as `request_options`; the command takes their values.

    changed: only these, of what is stored; one that is not given is None and stays as it is.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own: list[click.Parameter] = getattr(command, "__click_params__", [])
        taken = {option: each for each in own for option in each.opts}
        for name in reversed(changed or [*model.model_fields]):
            options = options_of(model, name)
            if is_argument(model, name) and all(each.name != name for each in own):
                about = _attributes(model, name)
                of_argument = ("type", "required", "metavar", "default")
                kept = {key: about[key] for key in of_argument if key in about}
                if not kept["required"]:
                    kept["metavar"] = f"[{kept['metavar']}]"
                command = click.argument(name, **kept)(command)
            if already := next((taken[each] for each in options if each in taken), None):
                own.remove(already)  # to where the field is
                own.append(already)
            elif options:
                attributes = _attributes(model, name)
                if changed:
                    first = f"as it is; at first {default_of(model, name)}"
                    attributes |= {"default": None, "show_default": first}
                command = click.option(*options, name, **attributes)(command)
        return command

    return decorate


def request_of(model: type[R], values: Mapping[str, Any]) -> R:
    """The request of the options' values. Raises UsageError for what the model refuses."""
    given = {name: value for name, value in values.items() if value is not None}
    try:
        for name in given.keys() & model.model_fields.keys():
            if is_mapping(model, name) and not isinstance(given[name], Mapping):
                given[name] = mapping_of(model, name, given[name])
        return model.read(given)
    except BadInput as error:
        if error.code != "request_invalid":  # a value that only the work itself refuses
            raise
        raise click.UsageError(in_commands(str(error))) from error


@contextmanager
def wrong_arguments() -> Iterator[None]:
    """What the work refuses within is a wrong argument: exit status 2."""
    try:
        yield
    except (BadInput, NotFound) as error:
        raise click.UsageError(in_commands(str(error))) from error


def _attributes(model: type[Request], name: str) -> dict[str, Any]:
    """What click needs to know of a field."""
    field = model.model_fields[name]
    kind, is_many = type_of(model, name)
    about = in_commands(field.description or "")
    found: dict[str, Any] = {
        "help": about if not is_many or "repeatable" in about else f"{about} Repeatable.",
        "required": field.is_required(),
        "multiple": is_many,
        "metavar": metavar_of(model, name),
    }
    if kind is bool:
        return found | {"is_flag": True, "default": default_of(model, name)}
    if kind is date:  # which the request reads
        kind = str
    if choices := choices_of(model, name):
        kind = click.Choice(choices)
    elif place := PLACES.get(path_of(model, name) or ""):
        kind = place
    elif bounds := bounds_of(model, name):
        kind = (click.IntRange if kind is int else click.FloatRange)(**_range(bounds))
    found["type"] = kind
    if field.is_required():
        return found
    default = () if is_mapping(model, name) else default_of(model, name)
    return found | {"default": default, "show_default": default not in (None, "", ())}


def is_argument(model: type[Request], name: str) -> bool:
    """Whether a field is given by its place: it has no option, but a name in the help."""
    has_place = not options_of(model, name) and metavar_of(model, name) is not None
    return has_place and not is_mapping(model, name)


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


class Text(str):
    """The text of a file, with the file's name."""

    file: str

    def __new__(cls, text: str, file: str) -> Self:
        made = super().__new__(cls, text)
        made.file = file
        return made


class TextFile(click.Path):
    """A file that is given for its text."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Text:
        path = Path(str(super().convert(value, param, ctx)))
        try:
            return Text(path.read_text(encoding="utf-8"), path.name)
        except UnicodeDecodeError as error:
            self.fail(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8", param)
