"""No space left where the logs are: the work goes on, and the log says what it lacks."""

import errno
import io
from pathlib import Path

import pytest

from app.access.identity import owner
from app.jobs import launching, processes
from db.store.secrets import RedactedStream
from db.store.settings import logs
from db.store.store import Store

TESTS = Path(__file__).resolve().parent.parent


class Disk(io.RawIOBase):
    """A file on a disk that can be full."""

    def __init__(self) -> None:
        self.is_full, self.kept = False, b""

    def writable(self) -> bool:
        return True

    def write(self, text: bytes) -> int:  # type: ignore[override]
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.kept += bytes(text)
        return len(text)


def test_what_a_full_disk_swallowed_is_counted_in_the_log_afterwards() -> None:
    disk = Disk()
    stream = RedactedStream(disk)  # type: ignore[arg-type]
    stream.write("one\n")
    disk.is_full = True
    stream.write("two\n")
    stream.write("three\n")
    disk.is_full = False
    stream.write("four\n")
    stream.write("five\n")
    assert disk.kept.decode().splitlines() == [
        *("one", "[10 characters are missing: the disk was full]", "four", "five"),
    ]


@pytest.mark.long
def test_a_disk_that_is_full_of_logs_does_not_end_the_work(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's log is /dev/full: every write says that there is no space left."""
    monkeypatch.setattr(processes, "ENTRY", "toy_jobs")
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    logs().mkdir(parents=True)
    (logs() / "job-1-1.log").symlink_to("/dev/full")
    told = launching.run_in_foreground(
        sqlite_store, "curate", {"steps": 2, "ending": "talks"}, actor=owner("me")
    )
    assert told.id == 1 and told.status == "done"
