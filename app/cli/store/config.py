"""`inf config`: every setting, its value and where it came from; secrets are masked."""

import click

from app.access.identity import owner
from app.cli.kit.formerly import with_former_keys
from app.cli.kit.options import wrong_arguments
from app.cli.kit.report import Result, me, reporting
from app.cli.kit.table import drawn
from app.operations.overview import settings as operations
from app.text.remedies import in_commands

COLUMNS = (("setting", "name"), ("from", "source"), ("value", lambda row: _value(row)))


def _value(row: Result) -> str:
    shown = str(row["value"] or row["default"])
    return in_commands(shown) if row["source"] == "store" else shown


def _shown(result: Result) -> str:
    parts: list[str] = []
    rows = result["data"]
    for subject in dict.fromkeys(row["subject"] for row in rows):
        of_subject = [row for row in rows if row["subject"] == subject]
        listed = drawn(COLUMNS, of_subject, max_columns=400)
        parts += [subject, *(f"  {line}" for line in listed.splitlines()), ""]
    if len(rows) == 1:
        parts.append(in_commands(rows[0]["meaning"]))
    return "\n".join(parts).rstrip()


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.option("--changed", is_flag=True, help="Only settings that are not at their default.")
@reporting(_shown)
def config(names: tuple[str, ...], changed: bool) -> Result:
    """Show every setting, its value and where it came from; secrets are masked.

    From: the environment, a file (secrets.toml, prices.toml), the store, or the default.
    """
    with wrong_arguments():
        listed = operations.list_all(owner(me()), names, changed=changed)
    return with_former_keys(listed.as_json(), "settings", {})
