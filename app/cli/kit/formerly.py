"""Forms of commands and keys of JSON that an earlier version had: they work on for one release."""

import copy
import inspect
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

import click

NOW = "inf.now"  # in the context of a former command: what it is called now


def formerly(
    command: click.Command, old: str, new: str, *, options: Mapping[str, str] | None = None
) -> click.Command:
    """The command under its old name: the same, with a note on standard error of the new one.

    `options`: the options that its arguments of these names were.
    """
    found = copy.copy(command)
    found.params = [
        click.Option([options[each.name], each.name], type=each.type, required=each.required)
        if options and isinstance(each, click.Argument) and each.name in options
        else each
        for each in command.params
    ]
    found.name = old.rpartition(" ")[2]
    found.help = f"{inspect.cleandoc(command.help or '')}\n\nThis is `inf {new}` now."
    call = command.callback  # a group has none

    def noted(*args: Any, **given: Any) -> Any:
        note_former(old, new)
        if not isinstance(command, click.Group):
            named = new.partition(" --")[0].split()
            click.get_current_context().meta[NOW] = " ".join(takewhile(str.islower, named))
        return call(*args, **given) if call is not None else None

    found.callback = noted
    return found


def id_argument(name: str, option: str, now: str) -> Callable[[Any], Any]:
    """Add the argument of an id, which was this option; `now`: the command with the argument."""

    def read(context: click.Context, given: click.Parameter, value: int | None) -> int | None:
        if isinstance(given, click.Option):  # eager: before the argument
            context.meta[name] = value
        elif value is None:
            if (value := context.meta[name]) is None:
                raise click.MissingParameter(ctx=context, param=given)
            note_former(f"{now.rpartition(' ')[0]} {option}", now)
        return value

    kinds: dict[str, Any] = {"type": int, "required": False, "callback": read}
    was: dict[str, Any] = kinds | {"is_eager": True, "expose_value": False}
    former = click.option(option, f"former_{name}", help="As the argument.", **was)
    argument = click.argument(name, metavar=name.upper(), **kinds)
    return lambda command: argument(former(command))


def note_former(old: str, new: str) -> None:
    """Say on standard error what a command is called now."""
    click.echo(f"note: `inf {old}` is `inf {new}` now; it works on for one release", err=True)


def with_former_ends(found: Any, low: str, high: str) -> Any:
    """What was found, and the ends of its ranges once more as `from` and `to`, as they were."""
    if isinstance(found, dict):
        ends = {"from": found[low], "to": found[high]} if {low, high} <= found.keys() else {}
        return {name: with_former_ends(each, low, high) for name, each in found.items()} | ends
    return (
        [with_former_ends(each, low, high) for each in found] if isinstance(found, list) else found
    )


def with_former_keys(listed: dict[str, Any], name: str, keys: Mapping[str, str]) -> dict[str, Any]:
    """A list as JSON, and its rows once more under the list's old name, with their old keys."""
    rows = [row | {old: row[new] for old, new in keys.items()} for row in listed["data"]]
    return listed | {name: rows}


class FormerlyOne(click.Command):
    """A command that was several: another one by an option, whose value is its argument now.

    others: the commands by that option, with their name now; argument: the option that an argument
    was, too; left_out: options that the others took without any effect, and how many values each
    has.
    """

    def __init__(
        self,
        old: str,
        one: click.Command,
        others: Mapping[str, tuple[click.Command, str]],
        *,
        argument: str = "",
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        now = {option: f"As `inf {name}`." for option, (_, name) in others.items()}
        now |= {argument: "As the argument."} if argument else {}
        former = [  # with names that no parameter has
            click.Option([option, f"former_{place}"], is_flag=option in others, help=about)
            for place, (option, about) in enumerate(now.items())
        ]
        super().__init__(old.rpartition(" ")[2], params=[*one.params, *former], help=one.help)
        self._old, self._one, self._others = old, one, others
        self._argument, self._left_out = argument, left_out or {}

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """The context of the command that is meant, which runs then; the help is of all."""
        if {"-h", "--help"} & {*args}:
            return super().make_context(info_name, args, parent, **extra)
        known = {*self._others, *self._left_out, self._argument} - {""}
        words = list[str]()
        for word in args:
            option, equals, value = word.partition("=")
            words += [option, value] if equals and option in known else [word]
        command = self._one
        if given := next((option for option in self._others if option in words), None):
            command, now = self._others[given]
            note_former(f"{self._old} {given}", now)
            words.remove(given)
            for option, values in self._left_out.items():
                while option in words:
                    place = words.index(option)
                    del words[place : place + 1 + values]
        is_alike = self._argument and _arguments(command) == _arguments(self._one)
        if is_alike and self._argument in words:
            words.remove(self._argument)
        return command.make_context(info_name, words, parent, **extra)


def _arguments(command: click.Command) -> list[str | None]:
    return [each.name for each in command.params if isinstance(each, click.Argument)]
