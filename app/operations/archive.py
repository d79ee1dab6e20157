"""Archiving, bringing back and purging: of a dataset with its runs, or of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.access.identity import Actor
from app.access.permissions import require
from app.operations.acting import reading, writing
from db.archive import archiving, purging
from db.archive.dependents import dependents
from db.archive.target import target_of
from db.errors import Refused
from db.people import accounts
from db.people.rights import rights_of
from db.store.scope import unscoped
from db.store.settings import home
from db.store.store import open_store
from db.tables import utc_now
from db.values import LOCAL_ADMIN

RIGHT = "curate"


def archive(actor: Actor, *, dataset: str | None = None, run_id: int | None = None) -> None:
    """Hide it and make nothing new from it. Raises NotFound, and Refused for what others use."""
    with writing(actor, RIGHT) as session:
        archiving.archive(
            session, dataset=dataset, run_id=run_id, rights=actor.rights, actor=actor.name
        )


def unarchive(actor: Actor, *, dataset: str | None = None, run_id: int | None = None) -> None:
    """Bring it back. Raises NotFound, Refused."""
    with writing(actor, RIGHT) as session:
        archiving.unarchive(
            session, dataset=dataset, run_id=run_id, rights=actor.rights, actor=actor.name
        )


def purge(
    actor: Actor,
    *,
    dataset: str | None = None,
    run_id: int | None = None,
    backup: Path | None,
    progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """Delete it for good after a backup, by default in `$INF_HOME/backups`, named by its time.

    Returns the rows deleted and the backup. Raises as `db.archive.purging.purge`, which refuses
    whoever is no admin.
    """
    if backup is None:
        name = "dataset" if dataset is not None else f"run-{run_id}"
        made_at = f"{utc_now():%Y%m%dT%H%M%S}"
        backup = home() / "backups" / f"before-purge-of-{name}-{made_at}.zip"
    with unscoped():
        return purging.purge(
            open_store(),
            dataset=dataset,
            run_id=run_id,
            rights=actor.rights,
            actor=actor.name,
            backup=backup.expanduser().absolute(),
            progress=progress,
        )


def purging_admin(actor: Actor, name: str | None, password: Callable[[], str]) -> Actor:
    """The admin who purges, by their password where there are accounts; else the local admin.

    Raises Refused without a name, and for a wrong name or password.
    """
    require(actor, "accounts")
    with reading(actor, "accounts") as session:
        has_accounts = accounts.has_accounts(session)
    if not has_accounts:
        return Actor(f"{actor.name} ({LOCAL_ADMIN})", rights=actor.rights, via=actor.via)
    if name is None:
        raise Refused(
            "purging is for admins",
            "name yours with `admin=NAME`; its password is prompted for",
            code="purging_admins",
        )
    given = password()
    with unscoped(), open_store().write() as session:
        account = accounts.check_password(session, name, given, address="command line")
        session.commit()
        if account is None:
            raise Refused(f"wrong name or password of {name!r}", code="wrong_name_password")
        return Actor(account.name, rights=rights_of(session, account), via=actor.via)


def depending(
    actor: Actor, *, dataset: str | None = None, run_id: int | None = None
) -> tuple[str, ...]:
    """What depends on it, so that it cannot be archived."""
    with reading(actor, RIGHT) as session:
        return tuple(dependents(session, target_of(session, dataset=dataset, run_id=run_id)))
