"""Paid answers that are not yet committed, in files that outlive the process.

A commit waits for the writer and for the disk: tens of milliseconds, or seconds behind another
program's lock. A line appended to a file is there at once and survives a kill of the process. Each
answer is therefore appended here before anything else is done with it. Once it is committed the
line is no longer needed, and a file without needed lines is removed.

Every worker stores the answers in files of dead workers, at its start and while it works, and
always before the groups of a dead worker are claimed again. A worker holds a lock on its files,
which the operating system releases however the process ends: a file that can be locked has no
owner any more.

The files are `$INF_HOME/answers/STORE/OWNER.NUMBER.jsonl`, STORE a hash of the store's URL as it is
written (two URLs of one server are two folders). A line is {"run_id", "row", "max_usd"}, the row as
`db.run.calls.add_calls` takes it, and what was reserved for it. The files are not synced, so a
power failure may lose them; a worker that does not share the folder requests the answers again.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from db.errors import Refused
from db.home import home
from db.machine import try_lock
from db.run.calls import RecoveredCall, add_recovered_calls
from db.store.store import Store

log = logging.getLogger("inf.curate")
MAX_FILE_BYTES = 2**20  # then the next file begins
NOT_KEPT = -1


@dataclass
class _File:
    descriptor: int  # holds the lock
    needed: int = 0  # lines that are not committed


class AnswerFiles:
    """The files of one worker. Used by one thread.

    The first begins at once: a folder whose files cannot be locked is refused before any call.
    """

    def __init__(self, store: Store, run_id: int, owner: str) -> None:
        self._folder, self._run_id, self._owner = folder_of(store), run_id, owner
        self._number, self._length = 0, MAX_FILE_BYTES
        self._files: dict[int, _File] = {}  # by number
        self._warned = False
        try:
            self._begin()
        except OSError as error:
            self._warn(error)

    def append(self, row: dict[str, Any], max_usd: float = 0.0) -> int:
        """Append an answer; the number of its file, to be passed to `release`.

        NOT_KEPT if the file cannot be written: the answer is then safe only once it is committed,
        and one warning is logged.
        """
        kept = {"run_id": self._run_id, "row": row, "max_usd": max_usd}
        line = json.dumps(kept, default=str) + "\n"
        try:
            self._write(line.encode())
        except OSError as error:
            self._length = MAX_FILE_BYTES  # nothing may follow a partial line: begin the next file
            self._warn(error)
            return NOT_KEPT
        self._files[self._number].needed += 1
        return self._number

    def release(self, numbers: Iterable[int]) -> None:
        """Mark answers as committed: one per number, which may repeat."""
        for number in numbers:
            if number in self._files:
                self._files[number].needed -= 1
        self._remove(one for one in self._done() if one != self._number)

    def close(self) -> None:
        """Close the files; one with uncommitted answers stays for the next worker."""
        self._remove(self._done())
        for file in self._files.values():
            os.close(file.descriptor)
        self._files.clear()

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            log.warning(
                "answers cannot be written to %s before their commit (%s): a kill may now "
                "lose those since the last commit",
                self._folder,
                error,
            )
        self._warned = True

    def _write(self, line: bytes) -> None:
        if self._length >= MAX_FILE_BYTES:
            self._begin()
        written = os.write(self._files[self._number].descriptor, line)
        self._length += written
        if written < len(line):
            raise OSError("the disk is full")

    def _begin(self) -> None:
        """Begin the next file; it is locked before it gets its name, so that none can take it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        number = self._number + 1
        path = self._path(number)
        unnamed = path.with_suffix(".new")
        opened = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            if not try_lock(opened, self._folder):
                raise OSError(f"{unnamed} is locked")
            unnamed.rename(path)
        except (OSError, Refused):
            os.close(opened)
            unnamed.unlink(missing_ok=True)
            raise
        self._number, self._length = number, 0
        self._files[number] = _File(opened)
        self._remove(one for one in self._done() if one != number)

    def _path(self, number: int) -> Path:
        return self._folder / f"{quote(self._owner, safe='')}.{number}.jsonl"

    def _done(self) -> list[int]:
        """The open files without needed lines."""
        return [number for number, file in self._files.items() if not file.needed]

    def _remove(self, numbers: Iterable[int]) -> None:
        for number in list(numbers):
            self._path(number).unlink(missing_ok=True)
            os.close(self._files.pop(number).descriptor)


def folder_of(store: Store) -> Path:
    """The folder of a store's answers; no two stores share one."""
    url = make_url(store.url)
    if store.is_sqlite and url.database:
        place = str(Path(url.database).resolve())
    else:
        place = url.render_as_string(hide_password=True)
    return home() / "answers" / hashlib.sha256(place.encode()).hexdigest()[:16]


def store_left_answers(store: Store, unusable: set[Path]) -> int:
    """Store the uncommitted answers of dead workers; their number.

    A file that cannot be read or stored is logged, left in place and added to `unusable`: its
    answers are lost to the run, but the run goes on. Raises OperationalError if the store cannot be
    written.
    """
    stored = 0
    for path in sorted(set(folder_of(store).glob("*.jsonl")) - unusable):
        try:
            stored += _store_file(store, path)
        except OperationalError:
            raise
        except (OSError, SQLAlchemyError) as error:
            log.warning("the answers in %s cannot be stored and are left there: %s", path, error)
            unusable.add(path)
    if stored:
        log.info("stored %d answers that a killed worker had not committed", stored)
    return stored


def _store_file(store: Store, path: Path) -> int:
    """Store the answers of one file and remove it, unless its worker is alive."""
    try:
        file = path.open("rb")
    except FileNotFoundError:  # another worker has stored and removed it
        return 0
    with file:
        if not try_lock(file.fileno(), path.parent):
            return 0
        by_run: dict[int, list[RecoveredCall]] = {}
        for run_id, answer in _answers(path, file.read()):
            by_run.setdefault(run_id, []).append(answer)
        owner = unquote(path.stem.rpartition(".")[0])
        with store.write() as session:
            stored = sum(
                add_recovered_calls(session, run_id, owner, answers)
                for run_id, answers in by_run.items()
            )
            session.commit()
        path.unlink(missing_ok=True)
    return stored


def _answers(path: Path, content: bytes) -> Iterator[tuple[int, RecoveredCall]]:
    """Run and answer of each line; an incomplete line is logged and skipped."""
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            found = json.loads(line)
            row = found["row"] | {"created_at": datetime.fromisoformat(found["row"]["created_at"])}
            run_id, max_usd = int(found["run_id"]), float(found.get("max_usd", 0.0))
        except (ValueError, KeyError, TypeError):
            log.warning("%s:%d is incomplete and is skipped", path, number)
        else:
            yield run_id, RecoveredCall(row, max_usd)
