"""The `backup` job: the whole store as one file."""

from pathlib import Path
from typing import Any

from db.jobs.runner import JobHandle
from db.people.audit import record_audit
from db.store.backup import write_backup


def backup(handle: JobHandle) -> dict[str, Any]:
    """The handler of `backup` jobs; config {path}."""
    path = Path(handle.config["path"])

    def progress(done: int, total: int) -> None:
        handle.check()
        handle.report(done, total, "writing tables")

    manifest = write_backup(handle.store, path, progress=progress)
    with handle.store.write() as session:
        record_audit(session, handle.started_by, "backup", path.name, rows=manifest["rows"])
        session.commit()
    return {
        "path": str(path),
        "rows": manifest["rows"],
        "bytes": path.stat().st_size,
        "content_sha256": manifest["content_sha256"],
        "revision": manifest["revision"],
    }
