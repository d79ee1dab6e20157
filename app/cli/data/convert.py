"""`inf convert`: convert a published collection to the two files that `inf import` takes.

Its subcommands are the registered sources, those of installed packages included.
"""

from pathlib import Path
from typing import Any

import click

from app.cli.kit.report import Result, counts, lines, reporting
from app.text.remedies import in_commands
from curation.sources.converting import Conversion, write_files
from curation.sources.registry import SOURCES
from curation.sources.rows import SourceInput, SourceKind
from db.errors import BadInput

FILE = click.Path(path_type=Path)


class Sources(click.Group):
    """One subcommand for each registered source."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SOURCES.all())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SOURCES.names():
            return None
        try:
            return _command(cmd_name, SOURCES.find(cmd_name))
        except BadInput as error:
            raise click.UsageError(in_commands(str(error))) from error


@click.group(cls=Sources)
def convert() -> None:
    """Turn BEIR, MS MARCO, TREC, LeetCode or MetaMath files into pairs.jsonl and passages.jsonl."""


def _command(name: str, kind: SourceKind) -> click.Command:
    @reporting(_human)
    def run(out: Path, limit: int | None, **values: Any) -> Conversion:
        given = {
            each.name: list(values[each.name]) if each.multiple else values[each.name]
            for each in kind.inputs
        }
        return write_files(kind.convert(given), out, limit=limit)

    command = click.command(name, help=kind.help)(run)
    command.params = [
        *(_parameter(each) for each in kind.inputs),
        click.Option(["--out"], type=FILE, required=True, help="Folder to write to."),
        click.Option(["--limit"], type=int, help="Maximum number of pairs."),
        *command.params,
    ]
    return command


def _parameter(given: SourceInput) -> click.Parameter:
    kind: Any = FILE if given.is_file else str
    if not given.help:
        return click.Argument([given.name], type=kind, nargs=-1 if given.multiple else 1)
    option = f"--{given.name.replace('_', '-')}"
    return click.Option(
        [option], type=kind, required=given.required, multiple=given.multiple, help=given.help
    )


def _human(result: Result) -> str:
    return lines(
        ("pairs", f"{result['pairs']:,} in {result['pairs_path']}"),
        ("passages", f"{result['passages']:,} in {result['passages_path']}"),
        ("skipped", counts(result["left_out"])),
        (
            "next",
            f"inf datasets import NAME --pairs {result['pairs_path']} "
            f"--passages {result['passages_path']}",
        ),
    )
