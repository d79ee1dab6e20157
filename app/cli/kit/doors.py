"""Commands that are doors: made from an operation, with the arguments and options of its request.

A command that does more than ask for one operation is a function of its own.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, get_args, get_origin

import click

from app.access.identity import Actor
from app.cli.commands import COMMANDS
from app.cli.kit.formerly import with_former_keys
from app.cli.kit.options import request_options
from app.cli.kit.progress import Show, progress_bar
from app.cli.kit.report import Launching, Result, command_actor, facts, launched, reporting
from app.cli.kit.table import MAX_CELL_COLUMNS, Column, drawn, paged
from app.operations.acting import Launch
from db.requests import Request

Operation = Callable[..., Any]
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Here = Callable[[Show], Launch[Result]]
Around = Callable[[Launch[Result]], Launch[Result]]
FROM_HERE = ("launch", "progress", "say")  # what an operation takes of the command itself


class Noun(click.Group):
    """The commands of a noun, or what it was called; its line in `inf --help` is its help.

    `default` runs where no command is named, as `review one` for `review`; `former`: the keys that
    its rows had in an earlier version, which they and its list have, too, and what they are now.
    """

    def __init__(
        self,
        name: str,
        *commands: click.Command,
        default: str = "",
        former: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, commands=[*commands], help=COMMANDS[name][1])
        self._default, self.former = default, former

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self._default and args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def door(
        self,
        operation: Operation,
        *own: Decorator,
        text: Callable[[Any], str] | tuple[Column, ...],
        about: str = "",
        name: str = "",
        title: str = "",
        unit: str = " rows",
        actor: Callable[[Result], Actor] | None = None,
        request: type[Request] | None = None,
        here: Here | None = None,
        around: Around | None = None,
    ) -> click.Command:
        """Add the command that asks for an operation with what it is given, and reports the result.

        Its arguments and options are those of the operation's request; what the operation takes
        besides without a default is an argument, and `own` are options in place of those, or for
        its other parameters. text: what a person reads, or the columns of a row, a line each;
        about: the help, by default the operation's docstring up to what it raises, or the
        request's; title: of its job or its progress (in `unit`), with what is given in braces;
        actor: who it is, by what is given; request: which one, of an operation that takes several;
        here: how its work is done in this process, as no job; around: what is done with its launch.
        """
        report = reporting(facts(*text) if isinstance(text, tuple) else text, former=self.former)
        named = (about, name, title, unit, actor)
        made = _command(operation, report, own, *named, model=request, here=here, around=around)
        self.add_command(made)
        return made

    def listed(
        self,
        operation: Operation,
        *own: Decorator,
        columns: tuple[Column, ...] | Callable[[list[Result]], tuple[Column, ...]] = (),
        empty: str = "",
        head: Callable[[Result], str] | None = None,
        text: Callable[[Result], str] | None = None,
        about: str = "",
        name: str = "list",
        limit: int | None = None,
        actor: Callable[[Result], Actor] | None = None,
        former: tuple[str, Mapping[str, str]] | Callable[[Result], Result] | None = None,
        echoed: tuple[str, ...] = (),
        max_columns: int = MAX_CELL_COLUMNS,
    ) -> None:
        """Add the command of a list: a page of what the operation finds, or `empty`.

        columns: those of the rows, or what makes them of these rows; head: a line above them; text:
        what a person reads instead; limit: of a page, by default all rows; former: the name and the
        keys that the rows had in an earlier version (`list`: those of the noun), or what makes them
        of the list; echoed: what of the request JSON has, too; about and the rest: as of `door`.
        """
        if former is None and name == "list" and self.former is not None:
            former = (str(self.name), self.former)
        takes_page = "limit" in inspect.signature(operation).parameters

        def page(*args: Any, limit: int | None, offset: int, **chosen: Any) -> Any:
            if takes_page:
                found = operation(*args, limit=limit, offset=offset, **chosen)
            else:
                found = operation(*args, **chosen).part(limit, offset)
            request = next((each for each in chosen.values() if isinstance(each, Request)), None)
            known = chosen if request is None else dict(request)
            listed = found.as_json() | {key: known[key] for key in echoed}
            if callable(former):
                return listed | former(listed)
            return listed if former is None else with_former_keys(listed, *former)

        def shown(result: Result) -> str:
            rows = result["data"]
            of = columns(rows) if callable(columns) else columns
            above = f"{head(result)}\n" if head is not None and rows else ""
            return above + drawn(of, rows, empty=empty, max_columns=max_columns)

        def report(command: Callable[..., Any]) -> Callable[..., Any]:
            return paged(limit)(reporting(text or shown)(command))

        page.__signature__ = inspect.signature(operation)  # type: ignore[attr-defined]
        page.__doc__ = operation.__doc__
        self.add_command(_command(page, report, own, about, name, "", whose=actor))


def _command(
    operation: Operation,
    report: Decorator,
    own: tuple[Decorator, ...],
    about: str,
    name: str,
    title: str,
    unit: str = "",
    whose: Callable[[Result], Actor] | None = None,
    *,
    model: type[Request] | None = None,
    here: Here | None = None,
    around: Around | None = None,
) -> click.Command:
    takes = [*inspect.signature(operation).parameters.values()]
    has_actor = bool(takes) and takes[0].name == "actor"
    takes = takes[has_actor:]
    wanted = next((each for each in takes if _is_request(each.annotation)), None)
    model = model or (wanted.annotation if wanted is not None else None)
    doing = {each.name for each in takes} & set(FROM_HERE)

    def call(launch: Launching | None = None, **given: Any) -> Any:
        known = dict(given["request"]) if wanted is not None else given
        actor = [(whose(known) if whose else command_actor())] if has_actor else []
        named = title.format(**known)
        if wanted is not None:
            given[wanted.name] = given.pop("request")
        if launch is not None and here is not None and launch.is_here:
            with progress_bar(named, unit) as show:
                return operation(*actor, **given, launch=here(show))
        if launch is not None:
            given["launch"] = around(launch(named)) if around else launch(named)
        if "say" in doing:
            given["say"] = partial(click.echo, err=True)
        if "progress" not in doing:
            return operation(*actor, **given)
        with progress_bar(named, unit) as show:
            return operation(*actor, **given, progress=show)

    made: Callable[..., Any] = report(call)
    if any(each.name == "launch" for each in takes):
        made = launched(made)
    for decorate in reversed(own):
        made = decorate(made)
    if model is not None:
        made = request_options(model)(made)
    taken = {each.name for each in getattr(made, "__click_params__", ())} | set(FROM_HERE)
    for each in reversed(takes):
        is_needed = each.default is each.empty and each.kind is not each.VAR_KEYWORD
        if is_needed and each is not wanted and each.name not in taken:
            choices = get_args(each.annotation) if get_origin(each.annotation) is Literal else ()
            kind = click.Choice(choices) if choices else each.annotation
            made = click.argument(each.name, type=kind)(made)
    documented = operation if operation.__doc__ or model is None else model
    # up to what it raises: a command reports an error in its own words
    help_text = re.split(r"\bRaises\b", inspect.getdoc(documented) or "")[0].strip()
    name = name or operation.__name__.replace("_", "-")
    return click.command(name, help=about or help_text)(made)


def _is_request(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Request)
