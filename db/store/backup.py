"""Backup and restore: the whole store as one file that either engine can read.

A backup is a ZIP: a member of JSON lines per table and `manifest.json` with the schema's revision,
the rows and sha256 of each member, and one hash over all of them. It is read in one transaction,
so that it is a snapshot of the store while people work on.

Note: a restored store starts no job. Jobs that were queued when the backup was made are cancelled,
running ones are lost; `inf jobs resume` continues them. Files outside the store (releases,
checkpoints, logs) are not in a backup, nor are the typed keys of connections, though encrypted.
"""

import base64
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from sqlalchemy import (
    Column,
    ColumnElement,
    LargeBinary,
    String,
    Table,
    collate,
    delete,
    func,
    insert,
    null,
    select,
    update,
)
from sqlalchemy.orm import Session

from db.errors import BadInput, Refused
from db.home import as_stored
from db.store import schema
from db.store.bulk import continue_numbering
from db.store.revision import head
from db.store.reviving import end_open_jobs, end_sign_ins, require_no_running_jobs
from db.store.store import Store
from db.tables import Base, Job, utc_now
from db.tables.base import HomePath, HomePaths, UtcDateTime

FORMAT = 1
BATCH = 500
MANIFEST = "manifest.json"
_JOB = Base.metadata.tables["job"]
_EVENT = Base.metadata.tables["event"]
Progress = Callable[[int, int], None]
Recorder = Callable[[Session, Mapping[str, Any]], None]


def write_backup(store: Store, path: Path, *, progress: Progress | None = None) -> dict[str, Any]:
    """Write the whole store to `path`, which must not exist. Returns the manifest.

    The file gets its name when it is complete and on disk: a purge deletes rows after it. Raises
    Refused, BadInput.
    """
    if path.exists():
        raise Refused(
            f"{path} exists: a backup never overwrites",
            "give another name",
            code="backup_exists",
        )
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.touch(mode=0o600)  # it holds password hashes
    except OSError as error:
        raise BadInput(
            f"the backup cannot be written to {path}: {error}",
            "Give a folder that exists, where there is space and the right to write",
            code="backup_unwritable",
        ) from error
    try:
        with store.read() as session:
            manifest = _write(session, unfinished, progress)
        _to_disk(unfinished)
        unfinished.rename(path)
        _to_disk(path.parent)
    except OSError as error:
        raise BadInput(
            f"the backup cannot be written to {path}: {error}",
            "Give a folder that exists, where there is space and the right to write",
            code="backup_unwritable",
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return manifest


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a backup. Raises BadInput if the file is not a backup."""
    try:
        with zipfile.ZipFile(path) as file:
            manifest: dict[str, Any] = json.loads(file.read(MANIFEST))
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise BadInput(
            f"{path} is not a backup of InF Studio: {error}",
            "Give a file that `store backup` wrote",
            code="backup_invalid",
        ) from error
    if manifest.get("format") != FORMAT:
        raise BadInput(
            f"{path} has the backup format {manifest.get('format')}, not {FORMAT}",
            "restore it with the version that wrote it",
            code="backup_format_unknown",
        )
    return manifest


def greatest_job_id(path: Path) -> int:
    """The greatest id of a job in a backup, 0 without any. Raises BadInput."""
    read_manifest(path)
    place = sorted(column.name for column in _JOB.columns).index("id")
    try:
        with zipfile.ZipFile(path) as file, file.open(f"{_JOB.name}.jsonl") as member:
            return max((int(json.loads(line)[place]) for line in member), default=0)
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, IndexError) as error:
        raise BadInput(
            f"{path.name} is damaged: its jobs cannot be read ({error})",
            "restore another backup",
            code="backup_damaged",
        ) from error


def restore_backup(
    store: Store,
    path: Path,
    *,
    replace: bool = False,
    progress: Progress | None = None,
    own_job: int | None = None,
    record: Recorder | None = None,
) -> dict[str, Any]:
    """Load a backup into a store: all of it, or nothing. Returns the manifest.

    The file is checked against its hashes first, and the restored rows after. Raises Refused for a
    store that holds rows, unless `replace` allows deleting them; BadInput for a damaged file or one
    of another schema revision.

    `own_job`: the job that restores, whose row stays; its id must be greater than those of the
    backup (`greatest_job_id`). Refused then while other jobs run. `record`: adds to the restored
    rows in the transaction that restores; it is given the manifest.
    """
    manifest = read_manifest(path)
    if manifest["revision"] != head():
        raise BadInput(
            f"{path.name} is of schema revision {manifest['revision']}, this version of InF Studio "
            f"writes {head()}",
            "restore it with the version that made it, then upgrade",
            code="backup_revision_differs",
        )
    _check_members(path, manifest)
    if own_job is not None and own_job <= greatest_job_id(path):
        raise Refused(
            f"the backup may have a job {own_job} of its own",
            "queue the restore anew with `store restore FILE detach=yes`",
            code="restore_job_uncertain",
        )
    if schema.current(store) is None:
        schema.upgrade(store)
    schema.require_current(store)
    with store.write() as session:
        if own_job is not None:
            require_no_running_jobs(session.connection(), but=own_job)
        filled = [table.name for table in _tables() if _count_others(session, table, own_job)]
        if filled and not replace:
            raise Refused(
                f"the store is not empty ({', '.join(filled[:5])} …)",
                "restore into a new one, or "
                "confirm with `replace=` that everything in it is deleted",
                code="store_not_empty",
            )
        for table in reversed(_tables()):
            session.execute(delete(table).where(*_not_own(table, own_job)))
        _insert_all(session, path, manifest, progress)
        if _content(session, own_job) != manifest["content_sha256"]:
            raise BadInput(
                "the restored rows differ from the backup; nothing was changed",
                "restore it again, or another backup",
                code="restored_rows_differ",
            )
        end_open_jobs(session, when="the backup was made", but=own_job)
        if own_job is not None:  # its heartbeat waited for this transaction
            session.execute(update(Job).where(Job.id == own_job).values(heartbeat_at=utc_now()))
        end_sign_ins(session)
        if record is not None:
            record(session, manifest)
        session.commit()
    return manifest


def _tables() -> list[Table]:
    return list(Base.metadata.sorted_tables)


def _write(session: Session, path: Path, progress: Progress | None) -> dict[str, Any]:
    if session.get_bind().dialect.name == "postgresql":
        session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
    counts = {table.name: _count(session, table) for table in _tables()}
    total, done = sum(counts.values()), 0
    members: dict[str, Any] = {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as file:
        for table in _tables():
            digest, rows = hashlib.sha256(), 0
            with file.open(f"{table.name}.jsonl", "w", force_zip64=True) as member:
                for line in _lines(session, table):
                    member.write(line)
                    digest.update(line)
                    rows += 1
                    done += 1
                    if progress is not None and done % BATCH == 0:
                        progress(done, total)
            members[table.name] = {"rows": rows, "sha256": digest.hexdigest()}
        manifest = {
            "format": FORMAT,
            "revision": head(),
            "engine": session.get_bind().dialect.name,
            "created_at": utc_now().isoformat(),
            "rows": total,
            "content_sha256": _over({name: listed["sha256"] for name, listed in members.items()}),
            "tables": members,
        }
        file.writestr(MANIFEST, json.dumps(manifest, indent=1))
    return manifest


def _to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, would survive a power cut."""
    if path.is_dir() and not hasattr(os, "O_DIRECTORY"):
        return  # Windows opens no folder
    opened = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _not_own(table: Table, own_job: int | None) -> list[ColumnElement[bool]]:
    """The condition that a row is not that of the job which restores."""
    return [] if own_job is None or table is not _JOB else [_JOB.c.id != own_job]


def _lines(session: Session, table: Table, own_job: int | None = None) -> Iterator[bytes]:
    """The rows in the order of their keys, as JSON lists in the order of the columns' names."""
    columns = [
        null().label(column.name) if column.info.get("sealed") else column
        for column in sorted(table.columns, key=lambda column: column.name)
    ]
    query = select(*columns).where(*_not_own(table, own_job)).order_by(*_order(session, table))
    for row in session.execute(query.execution_options(yield_per=BATCH)):
        values = [
            _as_json(as_stored(value) if isinstance(column.type, HomePath | HomePaths) else value)
            for column, value in zip(columns, row, strict=True)
        ]
        yield (
            json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
        ).encode()


def _order(session: Session, table: Table) -> list[Any]:
    """By primary key; texts by their bytes, as SQLite sorts, whatever the database's collation."""
    by_bytes = session.get_bind().dialect.name == "postgresql"
    return [
        collate(column, "C") if by_bytes and isinstance(column.type, String) else column
        for column in table.primary_key.columns
    ]


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return _same_numbers(value)


def _same_numbers(value: Any) -> Any:
    """Numbers in a form equal on both engines: JSONB turns 1e20 into an integer."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _same_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_same_numbers(inner) for inner in value]
    return value


def _from_json(column: Column[Any], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(column.type, UtcDateTime):
        return datetime.fromisoformat(value)
    if isinstance(column.type, LargeBinary):
        return base64.b64decode(value)
    return value


def _check_members(path: Path, manifest: dict[str, Any]) -> None:
    names = {table.name for table in _tables()}
    if set(manifest["tables"]) != names:
        raise BadInput(
            f"{path.name} holds other tables than this version of InF Studio has",
            "restore it with the version that wrote it, then upgrade that store",
            code="backup_tables_differ",
        )
    with zipfile.ZipFile(path) as file:
        for name, listed in manifest["tables"].items():
            if _member_sha256(file, name) != listed["sha256"]:
                raise BadInput(
                    f"{path.name} is damaged: table {name} differs from its hash",
                    "restore another backup",
                    code="backup_damaged",
                )
    whole = _over({name: listed["sha256"] for name, listed in manifest["tables"].items()})
    if whole != manifest["content_sha256"]:
        raise BadInput(
            f"{path.name} is damaged: its manifest does not match its tables",
            "restore another backup",
            code="backup_damaged",
        )


def _member_sha256(file: zipfile.ZipFile, name: str) -> str:
    try:
        digest = hashlib.sha256()
        with file.open(f"{name}.jsonl") as member:
            while piece := member.read(1 << 20):
                digest.update(piece)
        return digest.hexdigest()
    except (KeyError, zipfile.BadZipFile, OSError, ValueError):
        return ""


def _insert_all(
    session: Session, path: Path, manifest: dict[str, Any], progress: Progress | None
) -> None:
    done = 0
    with zipfile.ZipFile(path) as file:
        for table in _tables():
            with file.open(f"{table.name}.jsonl") as member:
                for rows in _row_batches(table, member):
                    session.execute(insert(table), rows)
                    done += len(rows)
                    if progress is not None:
                        progress(done, manifest["rows"])
            continue_numbering(session, table)


def _row_batches(table: Table, member: IO[bytes]) -> Iterator[list[dict[str, Any]]]:
    columns = sorted(table.columns, key=lambda column: column.name)
    batch: list[dict[str, Any]] = []
    for line in member:
        values = json.loads(line)
        batch.append(
            {
                column.name: _from_json(column, value)
                for column, value in zip(columns, values, strict=True)
            }
        )
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _content(session: Session, own_job: int | None = None) -> str:
    hashes = {}
    for table in _tables():
        digest = hashlib.sha256()
        for line in _lines(session, table, own_job):
            digest.update(line)
        hashes[table.name] = digest.hexdigest()
    return _over(hashes)


def _over(hashes: dict[str, str]) -> str:
    listed = "".join(f"{name}\t{hashes[name]}\n" for name in sorted(hashes))
    return hashlib.sha256(listed.encode()).hexdigest()


def _count(session: Session, table: Table) -> int:
    return session.scalar(select(func.count()).select_from(table)) or 0


def _count_others(session: Session, table: Table, own_job: int | None) -> int:
    """The rows of a table but for those of the job which restores: its own, and of its launch."""
    rows = _count(session, table)
    if own_job is None:
        return rows
    if table is _JOB:
        return rows - 1
    if table is _EVENT:
        launch = select(func.count()).where(
            _EVENT.c.name == "job.launch", _EVENT.c.noun_id == str(own_job)
        )
        return rows - (session.scalar(launch) or 0)
    return rows
