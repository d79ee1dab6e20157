"""`archive`, `unarchive`, `purge` and the former `delete` of datasets and runs."""

from pathlib import Path
from typing import Any

import click

from app.access.identity import Actor
from app.cli.kit.doors import Noun
from app.cli.kit.formerly import formerly
from app.cli.kit.password import ask_secret
from app.cli.kit.progress import progress_bar
from app.cli.kit.report import Result, command_actor, counts, lines, reporting
from app.operations import datasets as operations

backup_option = click.option(
    "--backup",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of the backup that is made first; default: in $INF_HOME/backups.",
)
admin_option = click.option(
    "--admin",
    metavar="NAME",
    help="Where there are accounts: the admin who purges; the password is prompted for or read "
    "from standard input.",
)


def add_archiving(group: Noun, key: str) -> None:
    """Add the commands to `datasets` (key `dataset`) or `runs` (key `run_id`)."""
    nouns, noun = ("datasets", "dataset") if key == "dataset" else ("runs", "run")
    named = click.argument(key, type=str if key == "dataset" else int)

    def text(result: Result) -> str:
        name = f"{noun} {result[key]!r}"
        if not result.get("purged"):
            where = f"is archived: hidden, but kept; `inf {nouns} unarchive` brings it back"
            return f"{name} {where if result['archived'] else 'is back from the archive'}"
        return lines(
            ("purged", name),
            ("by", result["by"]),
            ("rows", counts(result["rows"])),
            ("backup", result["backup"]),
            ("content", result["content_sha256"]),
        )

    def archived(actor: Actor, **what: Any) -> Result:
        operations.archive(actor, **what)
        return {**what, "archived": True, "purged": False}

    def back(actor: Actor, **what: Any) -> Result:
        operations.unarchive(actor, **what)
        return {**what, "archived": False}

    group.door(
        archived,
        named,
        name="archive",
        text=text,
        about=f"Archive a {noun}: it is hidden, but kept.\n\nRefused while releases, reviews, "
        "judgments, open studies or jobs depend on it; they are listed.",
    )
    group.door(back, named, name="unarchive", text=text, about=f"Bring an archived {noun} back.")

    def purged(backup: Path | None, admin: str | None, what: dict[str, Any]) -> Result:
        actor = operations.purging_admin(command_actor(), admin, lambda: ask_secret(confirm=False))
        with progress_bar("writing the backup", unit=" rows") as show:
            done = operations.purge(actor, backup=backup, progress=show, **what)
        return {**what, "archived": False, "purged": True, "by": actor.name, **done}

    @group.command(
        help=f"Delete a {noun} for good, after a backup of the store.\n\nRefused as `archive`; the "
        "audit log records who did it."
    )
    @named
    @backup_option
    @admin_option
    @reporting(text)
    def purge(backup: Path | None, admin: str | None, **what: Any) -> Result:
        return purged(backup, admin, what)

    @click.command()
    @named
    @click.option("--purge", "is_purged", is_flag=True, help="Delete it for good, as an admin.")
    @backup_option
    @admin_option
    @reporting(text)
    def delete(is_purged: bool, backup: Path | None, admin: str | None, **what: Any) -> Result:
        """Archive it, or with --purge delete it for good."""
        if is_purged:
            return purged(backup, admin, what)
        if backup is not None or admin is not None:
            raise click.UsageError("--backup and --admin require --purge")
        return archived(command_actor(), **what)

    group.add_command(formerly(delete, f"{nouns} delete", f"{nouns} archive | purge"))
