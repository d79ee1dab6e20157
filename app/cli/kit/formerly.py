"""Forms of commands and keys of JSON that an earlier version had: they work on for one release."""

import copy
import functools
import inspect
from collections.abc import Mapping
from typing import Any

import click

Result = dict[str, Any]


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
    call = command.callback
    assert call is not None

    @functools.wraps(call)
    def noted(*args: Any, **given: Any) -> Any:
        note_former(old, new)
        return call(*args, **given)

    found.callback = noted
    return found


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


def with_former_keys(listed: Result, name: str, keys: Mapping[str, str]) -> Result:
    """A list as JSON, and its rows once more under the list's old name, with their old keys."""
    rows = [row | {old: row[new] for old, new in keys.items()} for row in listed["data"]]
    return listed | {name: rows}


class OneByDefault(click.Group):
    """A group whose `default` runs where no command is named, as `review one` for `review`."""

    default = "one"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [self.default, *args]
        return super().parse_args(ctx, args)
