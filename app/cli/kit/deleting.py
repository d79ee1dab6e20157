"""`archive`, `unarchive`, `purge` and the former `delete` of datasets and runs."""

from pathlib import Path

import click

from app.access.identity import Actor
from app.cli.kit.doors import Noun
from app.cli.kit.formerly import FormerlyOne, formerly
from app.cli.kit.password import ask_secret
from app.cli.kit.report import Result, command_actor, counts, lines
from app.operations import datasets as operations


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

    archive = group.door(
        operations.archive,
        named,
        text=text,
        about=f"Archive a {noun}: it is hidden, but kept.\n\nRefused while releases, reviews, "
        "judgments, open studies or jobs depend on it; they are listed.",
    )
    group.door(operations.unarchive, named, text=text, about=f"Bring an archived {noun} back.")
    purge = group.door(
        operations.purge,
        named,
        click.option(
            "--backup",
            type=click.Path(path_type=Path, dir_okay=False),
            help="The file of the backup that is made first; default: in $INF_HOME/backups.",
        ),
        click.option(
            "--admin",
            metavar="NAME",
            help="Where there are accounts: the admin who purges; the password is prompted for or "
            "read from standard input.",
        ),
        text=text,
        title="writing the backup",
        actor=_admin,
        about=f"Delete a {noun} for good, after a backup of the store.\n\nRefused as `archive`; "
        "the audit log records who did it.",
    )
    delete = formerly(archive, f"{nouns} delete", f"{nouns} archive | purge")
    others = {"--purge": (purge, f"{nouns} purge")}
    group.add_command(FormerlyOne(f"{nouns} delete", delete, others))


def _admin(given: Result) -> Actor:
    """Who purges: an admin by their password, where there are accounts."""
    admin = given.pop("admin")
    return operations.purging_admin(command_actor(), admin, lambda: ask_secret(confirm=False))
