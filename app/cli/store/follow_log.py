"""Following a job's log while it is written: the last lines first, then each new one."""

import time
from collections.abc import Callable
from pathlib import Path

from analysis.files.shared import newer_log
from app.jobs.launching import log_elsewhere, log_of
from db.jobs import jobs
from db.store.secrets import redacted
from db.tables import Job

POLL_SECONDS = 0.5
CHUNK_BYTES = 1 << 20
TAIL_BYTES = 64_000


def follow_log(now: Callable[[], Job], lines: int, *, write: Callable[[str], object]) -> str:
    """Write the last `lines` of the log and every further line until the job has ended.

    `now` returns the job's row as it is. Returns the status it ended with. A job that is queued is
    waited for; one that is resumed meanwhile has a new log, which is followed next.
    """
    job, name, place = now(), "", 0
    path: Path | None = None
    while True:
        if job.log_path and job.log_path != name:
            path = log_of(job)
            place = _start(job, path, None if name else lines, write)
            name = job.log_path
        is_over = job.status in jobs.OVER  # read before the log: its last lines come before
        if path is not None:
            place = _write_new(newer_log(path), place, write, rest=is_over)
        if is_over:
            return job.status
        time.sleep(POLL_SECONDS)
        job = now()


def _start(job: Job, path: Path | None, lines: int | None, write: Callable[[str], object]) -> int:
    """Write the last lines of what is there (None: all); returns where the new ones begin."""
    if path is None:
        write(log_elsewhere(job))
        return 0
    if not path.is_file():
        write(f"the log is on {job.host}: {path}" if job.host else "the log is not there yet")
        return 0
    if lines is None:
        return 0
    with path.open("rb") as file:
        start = max(0, path.stat().st_size - TAIL_BYTES)
        file.seek(start)
        read = file.read(TAIL_BYTES)
    end = read.rfind(b"\n") + 1
    tail = redacted(read[:end].decode("utf-8", "replace")).splitlines()
    if tail and lines:
        write("\n".join(tail[-lines:]))
    return start + end


def _write_new(path: Path, place: int, write: Callable[[str], object], *, rest: bool) -> int:
    """Write the whole lines from `place` on, with the `rest` also an unfinished one.

    Only whole lines: a secret or a character that is written in two parts is redacted or decoded
    as one.
    """
    if not path.is_file():
        return place
    with path.open("rb") as file:
        file.seek(place)
        while piece := file.read(CHUNK_BYTES):
            end = len(piece) if rest and len(piece) < CHUNK_BYTES else piece.rfind(b"\n") + 1
            if end == 0 and len(piece) < CHUNK_BYTES:
                break
            end = end or len(piece)  # one line longer than a chunk
            write(redacted(piece[:end].decode("utf-8", "replace")).rstrip("\n"))
            place += end
            file.seek(place)
    return place
