"""The jobs `backup` and `restore`: the whole store as one file, and back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from db.events import record_event
from db.jobs.runner import JobHandle
from db.requests import Request, option
from db.rows import Row
from db.store.backup import restore_backup, write_backup


class BackupPlan(Request):
    """A backup of the whole store to one file."""

    path: str = option(
        ...,
        "The file; an existing one is never overwritten.",
        names=(),
        metavar="FILE",
        path="path",
    )


class RestorePlan(BackupPlan):
    """The restore of a backup into the store."""

    path: str = option(..., "The file of a backup.", names=(), metavar="FILE", path="path")
    replace: bool = option(False, "Delete everything in the store first.")


class BackupWritten(Row):
    """A backup: its file, and what is in it."""

    path: str
    rows: int
    bytes: int
    content_sha256: str
    revision: str


class StoreRestored(Row):
    """What was restored, of a backup that was made then."""

    rows: int
    content_sha256: str
    revision: str
    made_at: str


def backup(handle: JobHandle) -> BackupWritten:
    """The handler of `backup` jobs; config BackupPlan."""
    path = Path(BackupPlan.read(handle.config).path)

    def progress(done: int, total: int) -> None:
        handle.check()
        handle.report(done, total, "writing tables")

    manifest = write_backup(handle.store, path, progress=progress)

    def record(session: Session) -> None:
        record_event(session, handle.started_by, "backup", path.name, rows=manifest["rows"])

    handle.record(record)
    return BackupWritten(
        path=str(path),
        rows=manifest["rows"],
        bytes=path.stat().st_size,
        content_sha256=manifest["content_sha256"],
        revision=manifest["revision"],
    )


def restore(handle: JobHandle) -> StoreRestored:
    """The handler of `restore` jobs; config RestorePlan.

    The job's own row stays while all others are replaced. On SQLite no progress can be stored
    meanwhile: the transaction that restores is the only writer.
    """
    request = RestorePlan.read(handle.config)
    path = Path(request.path)

    def progress(done: int, total: int) -> None:
        handle.report(done, total, "writing tables")

    def record(session: Session, manifest: Mapping[str, Any]) -> None:
        made_at = manifest["created_at"]
        record_event(session, handle.started_by, "restore", path.name, made_at=made_at)

    handle.check()
    handle.report(0, None, "checking the backup and writing tables")
    manifest = restore_backup(
        handle.store,
        path,
        replace=request.replace,
        progress=None if handle.store.is_sqlite else progress,
        own_job=handle.id,
        record=record,
    )
    return restored(manifest)


def restored(manifest: Mapping[str, Any]) -> StoreRestored:
    """What a restore reports."""
    return StoreRestored(
        rows=manifest["rows"],
        content_sha256=manifest["content_sha256"],
        revision=manifest["revision"],
        made_at=manifest["created_at"],
    )
