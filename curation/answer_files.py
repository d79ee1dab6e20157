"""Answers that are paid and not yet in the store, in files that outlive the process.

A commit waits for the writer's turn and for the disk: tens of milliseconds, or seconds behind
another program's lock. A line at the end of a file is there at once, and what a process has written
stays when the process is killed. So each answer is a line here before anything else is done with
it. When it is committed the line is no longer needed, and a file without a needed line is removed.
Whoever next works on the store stores what dead workers left, before it claims their groups.

The files are `$INF_HOME/answers/STORE/OWNER.NUMBER.jsonl`, STORE a hash of the store's address. A
line is {"run_id", "row"}, the row as `db.calls.add_calls` takes it. They outlive the process, not a
loss of power, and stay on their machine: a worker elsewhere that takes over asks again.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy.engine import make_url

from db.calls import add_left_calls
from db.settings import home
from db.store import Store

log = logging.getLogger("inf.curate")
LONGEST_FILE = 2**20  # bytes; then the next file begins


class AnswerFiles:
    """The files of one worker. Used by one thread."""

    def __init__(self, store: Store, run_id: int, owner: str) -> None:
        self._folder, self._run_id, self._owner = folder_of(store), run_id, owner
        self._number, self._file, self._length = 0, -1, 0
        self._needed: dict[int, int] = {}  # number of a file → lines that are not committed
        self._broken = False

    def append(self, row: dict[str, Any]) -> int:
        """Keep an answer; the number of the file that holds it, to be told at `release`.

        Where the disk takes no more, a warning says so once: the answer is then as safe as its
        commit.
        """
        line = json.dumps({"run_id": self._run_id, "row": row}, default=str) + "\n"
        try:
            self._write(line.encode())
        except OSError as error:
            if not self._broken:
                log.warning(
                    "answers cannot be kept in %s until they are committed (%s): a kill may now "
                    "cost those of the last commit",
                    self._folder,
                    error,
                )
            self._broken = True
        else:
            self._needed[self._number] += 1
            return self._number
        return -1

    def release(self, numbers: Iterable[int]) -> None:
        """The answers in these files, one for each number, are committed."""
        for number in numbers:
            if number in self._needed:
                self._needed[number] -= 1
        for number in [one for one, lines in self._needed.items() if not lines]:
            if number != self._number:
                self._remove(number)

    def close(self) -> None:
        """End; a file whose answers are not committed stays for whoever comes next."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        for number in [one for one, lines in self._needed.items() if not lines]:
            self._remove(number)

    def _write(self, line: bytes) -> None:
        if self._file < 0 or self._length > LONGEST_FILE:
            self._begin()
        written = os.write(self._file, line)
        self._length += written
        if written < len(line):
            raise OSError("the disk is full")

    def _begin(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            if not self._needed[self._number]:
                self._remove(self._number)
        self._number += 1
        self._folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._file = os.open(self._path(self._number), flags, 0o600)
        self._needed[self._number], self._length = 0, 0

    def _path(self, number: int) -> Path:
        return self._folder / f"{quote(self._owner, safe='')}.{number}.jsonl"

    def _remove(self, number: int) -> None:
        self._path(number).unlink(missing_ok=True)
        del self._needed[number]


def folder_of(store: Store) -> Path:
    """Where the answers for a store are kept: no two stores share a folder."""
    url = make_url(store.url)
    if store.is_sqlite and url.database:
        place = str(Path(url.database).resolve())
    else:
        place = url.render_as_string(hide_password=True)
    return home() / "answers" / hashlib.sha256(place.encode()).hexdigest()[:16]


def store_left_answers(store: Store, is_over: Callable[[str], bool]) -> int:
    """Store what workers that are over had not committed; how many answers that was."""
    stored = 0
    for path in sorted(folder_of(store).glob("*.jsonl")):
        owner = unquote(path.name.rsplit(".", 2)[0])
        if not is_over(owner):
            continue
        by_run: dict[int, list[dict[str, Any]]] = {}
        for run_id, row in _lines(path):
            by_run.setdefault(run_id, []).append(row)
        with store.write() as session:
            stored += sum(add_left_calls(session, run_id, rows) for run_id, rows in by_run.items())
            session.commit()
        path.unlink(missing_ok=True)
    if stored:
        log.info("%d answers that a killed worker had not committed are stored", stored)
    return stored


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The answers of a file; a line that a kill tore off is told and passed over."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:  # another worker was faster
        return
    for number, line in enumerate(lines, start=1):
        try:
            found = json.loads(line)
            row = found["row"] | {"created_at": datetime.fromisoformat(found["row"]["created_at"])}
            run_id = int(found["run_id"])
        except (ValueError, KeyError, TypeError):
            log.warning("%s:%d is no whole answer and is passed over", path, number)
        else:
            yield run_id, row
