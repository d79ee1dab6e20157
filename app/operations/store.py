"""The store as a whole: back up, restore, upgrade, check, copy. What its owner does in a shell."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import Field, model_validator
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session

from app.access.identity import Actor
from app.access.permissions import admit, require
from app.operations.acting import Launch
from curation.backups import BackupPlan, RestorePlan, StoreRestored, restored
from db.errors import BadInput
from db.events import record_event
from db.home import database_url
from db.requests import Request, absolute, option
from db.rows import Row, SparseRow
from db.store import schema
from db.store.backup import restore_backup
from db.store.copying import copy_store
from db.store.settings import schema_name
from db.store.store import open_store
from db.store.upgrading import go_back, upgrade_store

RIGHT = "accounts"
T = TypeVar("T")
Progress = Callable[[int, int], None]


def back_up(actor: Actor, request: BackupPlan, launch: Launch[T]) -> T:
    """Write a consistent snapshot of the whole store to FILE while others keep working.

    Files outside the store (releases, checkpoints, logs) are not included. Raises as the launch
    does.
    """
    return launch(require(actor, RIGHT), "backup", request)


def restore(actor: Actor, request: RestorePlan, progress: Progress) -> StoreRestored:
    """Replace the store by a backup, atomically. Raises BadInput, Refused."""
    require(actor, RIGHT)
    path = Path(request.path)

    def record(session: Session, manifest: Mapping[str, Any]) -> None:
        _record(session, actor, "restore", path.name, made_at=manifest["created_at"])

    return restored(
        restore_backup(
            open_store(), path, replace=request.replace, progress=progress, record=record
        )
    )


def restore_as_job(actor: Actor, request: RestorePlan, launch: Launch[T]) -> T:
    """Launch a restore, in a store without tables after creating them. Raises as the launch."""
    require(actor, RIGHT)
    store = open_store()
    if schema.current(store) is None:
        schema.upgrade(store)
    schema.require_current(store)
    return launch(actor, "restore", request)


class StoreUpgrade(Request):
    """Create the tables, or copy the store, migrate and check it; or nothing is changed.

    With `back` a copy is put back, after a copy of what is there; then run the version that made
    it.
    """

    copy_to: str | None = option(
        None, "The copy's file; default: in $INF_HOME/backups.", path="path"
    )
    no_copy: bool = option(False, "You have a copy already.")
    back: str | None = option(
        None, "Put this copy of an upgrade back.", metavar="COPY", path="path"
    )

    @model_validator(mode="after")
    def _are_apart(self) -> Self:
        if sum(map(bool, (self.copy_to, self.no_copy, self.back))) > 1:
            raise ValueError("give at most one of copy_to, no_copy and back")
        return self


class StoreUpgraded(SparseRow):
    """The revision before and now, the copy of what was there, and which copy was put back."""

    before: str | None = None
    revision: str | None
    copied_to: str | None = Field(alias="copy")
    added_indexes: tuple[str, ...] = ()
    restored: str = ""


class StoreChecked(Row):
    """A store that is as this version has it, at this revision."""

    revision: str | None


class StoreCopied(Row):
    """A copied store: its rows, in all and by table, and their content."""

    rows: int
    tables: dict[str, int]
    content_sha256: str


def upgrade(actor: Actor, request: StoreUpgrade) -> StoreUpgraded:
    """Create the tables, or copy the store, migrate and check it; or nothing is changed.

    `back` puts a copy back, after a copy of what is there; then run the version that made it.
    Raises as `db.store.upgrading.upgrade_store` and `go_back`.
    """
    require(actor, RIGHT)
    store = open_store()

    def record(session: Session, result: Mapping[str, Any]) -> None:
        name = "upgrade" if request.back is None else "upgrade.back"
        _record(session, actor, name, str(result["revision"]), **result)

    if request.back is not None:
        done = go_back(store, Path(request.back), record=record)
    else:
        copy_to = None if request.copy_to is None else Path(request.copy_to)
        done = upgrade_store(store, copy=not request.no_copy, copy_to=copy_to, record=record)
    return StoreUpgraded.model_validate(done)


def make_tables(actor: Actor, consents: Callable[[], bool]) -> str:
    """Make the tables of a store that has none: at once in a file of our own (SQLite), in a
    PostgreSQL database where its owner consents. Returns the engine of one that was made, or ""."""
    require(actor, RIGHT)
    store = open_store()
    if schema.current(store) is not None or not (store.is_sqlite or consents()):
        return ""
    upgrade(actor, StoreUpgrade())
    return "sqlite" if store.is_sqlite else "postgresql"


def check(actor: Actor) -> StoreChecked:
    """Check revision, tables, columns, constraints and indexes against this version.

    Raises StoreBehind.
    """
    require(actor, RIGHT)
    store = open_store()
    schema.require_current(store)
    return StoreChecked(revision=schema.current(store))


class StoreCopy(Request):
    """Copy the store FROM (a SQLite file, or an address) into the one that INF_DATABASE_URL names.

    That one must be empty; both may be SQLite or PostgreSQL. Counts and content are compared.
    Refused while jobs of FROM run.
    """

    source: str = option(..., "A SQLite file, or an address.", names=(), metavar="FROM")
    from_schema: str | None = option(
        None,
        "The schema of FROM on PostgreSQL, as public; default: INF_DATABASE_SCHEMA.",
        metavar="NAME",
    )


def copy_from(actor: Actor, wanted: StoreCopy, progress: Progress) -> StoreCopied:
    """Copy a store (a file or an address) into the empty one of the environment.

    Counts and content are compared. Raises BadInput, Refused.
    """
    require(actor, RIGHT)
    source, from_schema = wanted.source, wanted.from_schema
    address = source if "://" in source else f"sqlite:///{_existing(source)}"
    if from_schema is not None:
        from_schema = schema_name(from_schema, "from_schema")
    origin, target = open_store(database_url(address), schema=from_schema), open_store()
    if make_url(origin.url) == make_url(target.url) and (
        origin.is_sqlite or origin.schema == target.schema
    ):
        raise BadInput(
            "the store to copy from is the one that INF_DATABASE_URL names",
            "name another there, or with `from_schema=` another schema of it",
            code="store_copy_onto_itself",
        )

    def record(session: Session, manifest: Mapping[str, Any]) -> None:
        _record(session, actor, "copy", "store", rows=manifest["rows"])

    return StoreCopied.model_validate(copy_store(origin, target, progress=progress, record=record))


def _record(session: Session, actor: Actor, name: str, of: str, **data: Any) -> None:
    """Record what was done to the whole store, in the transaction that does it."""
    now = admit(session, actor, RIGHT)
    record_event(session, now.name, name, of, **data)


def _existing(source: str) -> Path:
    path = Path(absolute(source))
    if not path.is_file():
        raise BadInput(
            f"{source} does not exist",
            "name a SQLite file or an address",
            code="store_file_missing",
        )
    return path
