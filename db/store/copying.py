"""Copying a whole store into another one, of either engine, with the rows counted on both sides."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from db.errors import InfError
from db.store.backup import Progress, Recorder, restore_backup, write_backup
from db.store.reviving import require_no_running_jobs
from db.store.schema import require_current
from db.store.store import Store
from db.tables import Base, Connection


def copy_store(
    source: Store,
    target: Store,
    *,
    progress: Progress | None = None,
    record: Recorder | None = None,
) -> dict[str, Any]:
    """Copy every row of `source`, read as one snapshot, into the empty store `target`.

    The content hash is compared before the commit, the rows of each table after it. Returns
    `rows`, `tables` (rows by table) and `content_sha256`. Raises Refused for a target with rows and
    a source with running jobs (which would go on there), StoreBehind for a source of an earlier
    revision. `record` adds one event to what is copied, in the transaction that copies; it is given
    the manifest.
    """

    def complete(session: Session, manifest: Mapping[str, Any]) -> None:
        _copy_sealed_keys(source, session)
        if record is not None:
            record(session, manifest)

    require_current(source)
    with source.engine.connect() as connection:
        require_no_running_jobs(connection)
    with tempfile.TemporaryDirectory(prefix="inf-copy-") as folder:
        path = Path(folder) / "store.backup"
        write_backup(source, path)
        manifest = restore_backup(target, path, progress=progress, record=complete)
    tables = {name: listed["rows"] for name, listed in manifest["tables"].items()}
    expected = tables | {"event": tables["event"] + (record is not None)}
    copied = _rows(target)
    if copied != expected:
        differing = [name for name in expected if copied[name] != expected[name]]
        raise InfError(
            "the copy is complete, but its rows changed since, in "
            + ", ".join(f"{name} ({copied[name]}, not {expected[name]})" for name in differing)
            + ": another process writes there",
            "end that process and copy again",
            code="store_copy_source_changed",
        )
    return {
        "rows": manifest["rows"],
        "tables": tables,
        "content_sha256": manifest["content_sha256"],
    }


def _copy_sealed_keys(source: Store, target: Session) -> None:
    """Copy what no backup holds: the typed keys of connections, as they are encrypted."""
    with source.read() as session:
        sealed = select(Connection.id, Connection.sealed_key)
        found = session.execute(sealed.where(Connection.sealed_key.is_not(None))).all()
    for connection_id, key in found:
        of = update(Connection).where(Connection.id == connection_id)
        target.execute(of.values(sealed_key=key))


def _rows(store: Store) -> dict[str, int]:
    with store.read() as session:
        return {
            table.name: session.scalar(select(func.count()).select_from(table)) or 0
            for table in Base.metadata.sorted_tables
        }
