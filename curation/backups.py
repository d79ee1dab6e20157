"""The jobs `backup` and `restore`: the whole store as one file, and back."""

from pathlib import Path
from typing import Any

from db.events import record_event
from db.jobs.runner import JobHandle
from db.store.backup import restore_backup, write_backup


def backup(handle: JobHandle) -> dict[str, Any]:
    """The handler of `backup` jobs; config {path}."""
    path = Path(handle.config["path"])

    def progress(done: int, total: int) -> None:
        handle.check()
        handle.report(done, total, "writing tables")

    manifest = write_backup(handle.store, path, progress=progress)
    with handle.store.write() as session:
        record_event(session, handle.started_by, "backup", path.name, rows=manifest["rows"])
        session.commit()
    return {
        "path": str(path),
        "rows": manifest["rows"],
        "bytes": path.stat().st_size,
        "content_sha256": manifest["content_sha256"],
        "revision": manifest["revision"],
    }


def restore(handle: JobHandle) -> dict[str, Any]:
    """The handler of `restore` jobs; config {path, replace}.

    The job's own row stays while all others are replaced. On SQLite no progress can be stored
    meanwhile: the transaction that restores is the only writer.
    """
    path = Path(handle.config["path"])

    def progress(done: int, total: int) -> None:
        handle.report(done, total, "writing tables")

    handle.check()
    handle.report(0, None, "checking the backup and writing tables")
    manifest = restore_backup(
        handle.store,
        path,
        replace=bool(handle.config.get("replace")),
        progress=None if handle.store.is_sqlite else progress,
        own_job=handle.id,
    )
    with handle.store.write() as session:
        made_at = manifest["created_at"]
        record_event(session, handle.started_by, "restore", path.name, made_at=made_at)
        session.commit()
    return restored_as_json(manifest)


def restored_as_json(manifest: dict[str, Any]) -> dict[str, Any]:
    """What a restore reports."""
    return {
        "rows": manifest["rows"],
        "content_sha256": manifest["content_sha256"],
        "revision": manifest["revision"],
        "made_at": manifest["created_at"],
    }
