"""`delete` and `unarchive` of datasets and runs: archive, or purge as an admin after a backup."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from app.cli.kit.password import ask_password
from app.cli.kit.progress import progress_bar
from app.cli.kit.report import Result, counts, lines, me, ready_store
from db.archive.archiving import archive, unarchive
from db.archive.purging import purge
from db.errors import Refused
from db.people import accounts
from db.people.rights import ALL_RIGHTS, Rights, rights_of
from db.store.settings import home
from db.store.store import Store
from db.tables import utc_now
from db.values import LOCAL_ADMIN


def delete_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--purge`, `--backup` and `--admin`."""
    options = (
        click.option("--purge", "purged", is_flag=True, help="Delete it for good, as an admin."),
        click.option(
            "--backup",
            type=click.Path(path_type=Path, dir_okay=False),
            help="With --purge: the file of the backup that is made first; default: in "
            "$INF_HOME/backups.",
        ),
        click.option(
            "--admin",
            metavar="NAME",
            help="With --purge, where there are accounts: the admin who purges; the password is "
            "prompted for or read from standard input.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def delete(*, purged: bool, backup: Path | None, admin: str | None, **what: str | int) -> Result:
    """Archive or purge `dataset=NAME` or `run_id=ID`; returns what the command prints.

    Archiving is not limited, as the command line in general; purging requires an admin's password
    where there are accounts. Raises UsageError, NotFound, Refused, BadInput.
    """
    if not purged and (backup is not None or admin is not None):
        raise click.UsageError("--backup and --admin require --purge")
    store = ready_store()
    if not purged:
        with store.write() as session:
            archive(session, rights=ALL_RIGHTS, actor=me(), **what)  # type: ignore[arg-type]
            session.commit()
        return {**what, "archived": True, "purged": False}
    actor, rights = _admin(store, admin)
    file = (backup or _backup_file(what)).expanduser().absolute()
    with progress_bar(f"backing up to {file.name}", unit=" rows") as show:
        done = purge(
            store,
            rights=rights,
            actor=actor,
            backup=file,
            progress=show,
            **what,  # type: ignore[arg-type]
        )
    return {**what, "archived": False, "purged": True, "by": actor, **done}


def bring_back(**what: str | int) -> Result:
    """Bring `dataset=NAME` or `run_id=ID` back from the archive. Raises NotFound, Refused."""
    with ready_store().write() as session:
        unarchive(session, rights=ALL_RIGHTS, actor=me(), **what)  # type: ignore[arg-type]
        session.commit()
    return {**what, "archived": False}


def deleted_text(result: Result) -> str:
    """The report of `delete`."""
    name = _title(result)
    if not result["purged"]:
        back = "datasets" if "dataset" in result else "runs"
        return f"{name} is archived: hidden, but kept; `inf {back} unarchive` brings it back"
    return lines(
        ("purged", name),
        ("by", result["by"]),
        ("rows", counts(result["rows"])),
        ("backup", result["backup"]),
        ("content", result["content_sha256"]),
    )


def back_text(result: Result) -> str:
    """The report of `unarchive`."""
    return f"{_title(result)} is back from the archive"


def _title(result: Result) -> str:
    return f"dataset {result['dataset']!r}" if "dataset" in result else f"run {result['run_id']}"


def _backup_file(what: dict[str, str | int]) -> Path:
    kind = "dataset" if "dataset" in what else f"run-{what['run_id']}"
    return home() / "backups" / f"before-purge-of-{kind}-{utc_now():%Y%m%dT%H%M%S}.zip"


def _admin(store: Store, name: str | None) -> tuple[str, Rights]:
    """Who purges, for the audit log, and their rights. Raises Refused for a wrong password."""
    with store.read() as session:
        has_accounts = accounts.has_accounts(session)
    if not has_accounts:
        return f"{me()} ({LOCAL_ADMIN})", ALL_RIGHTS
    if name is None:
        raise Refused(
            "purging is for admins",
            "name yours with --admin NAME; its password is prompted for",
            code="purging_admins",
        )
    password = ask_password(confirm=False)
    with store.write() as session:
        account = accounts.check_password(session, name, password, address="command line")
        session.commit()
        if account is None:
            raise Refused(f"wrong name or password of {name!r}", code="wrong_name_password")
        return account.name, rights_of(session, account)
