"""What needs more space than a disk has ends in a sentence: where, how much, and what helps.

The system's own limit of a file's size (RLIMIT_FSIZE) stands for the full disk.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from db.errors import BadInput
from db.home import full_disk, space_in, temporary_folder
from db.jobs import jobs
from db.jobs.runner import JobHandle, run
from db.rows import Row
from db.store.store import Store

PROGRAM = Path(__file__).resolve().parents[1] / "no_space.py"


def said(*words: object) -> str:
    """What the program `no_space.py` prints."""
    command = [sys.executable, str(PROGRAM), *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stderr == "" and ran.returncode == 0
    return ran.stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize("what", ["texts", "vectors", "copies"])
def test_a_large_temporary_file_without_space_ends_in_one_sentence(
    what: str, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found, message, remedy = said(what).split("|")
    assert found == "disk_full"
    assert str(tmp_path if what == "copies" else own_home) in message and what in message
    assert "INF_HOME" in remedy and "TMPDIR" in remedy
    if what == "texts":
        assert 200_000 < int(message.split("at least ")[1].split()[0].replace(",", "")) < 300_000
    if what == "vectors":
        assert "320,000 bytes" in message
    assert not list(tmp_path.glob("inf-*[!e]")), "nothing is left"


@pytest.mark.long
def test_the_texts_of_a_file_are_checked_without_a_copy_of_them(
    own_home: Path, tmp_path: Path
) -> None:
    """Where the disk has no byte left a file's bad line is still reported."""
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "bees"}\n{"no": 1}\n' * 10_000)
    assert said("bad_file", 0, path).startswith("rows_invalid|10000 bad rows")


def test_a_job_that_finds_no_space_ends_without_a_traceback(sqlite_store: Store) -> None:
    with sqlite_store.write() as session:
        job_id = jobs.enqueue_job(session, "embed", {}).id
        job = jobs.claim_job(session, job_id)
        assert job is not None
        session.commit()

    def work(_: JobHandle) -> Row:
        Path("/dev/full").write_bytes(b"texts")
        raise AssertionError("it takes no byte")

    assert run(JobHandle(sqlite_store, job.id, job.attempt), work) == 1
    with sqlite_store.read() as session:
        ended = jobs.get_job(session, job_id)
    assert (ended.status, ended.error_code) == ("failed", "disk_full")
    assert ended.remedy and "INF_HOME" in ended.remedy and "Traceback" not in (ended.error or "")


def test_another_error_is_not_taken_for_a_full_disk() -> None:
    with pytest.raises(FileNotFoundError), space_in("/tmp", lambda: "texts"):
        Path("/nowhere/at/all").read_bytes()
    with pytest.raises(ValueError, match="no number"), temporary_folder("inf-"):
        raise ValueError("no number")
    assert full_disk(ValueError("no number")) is None


def test_a_file_s_own_name_is_where_the_space_is_missing() -> None:
    with pytest.raises(BadInput, match="/srv/data"), space_in("/tmp", lambda: "texts"):
        raise OSError(28, "No space left on device", "/srv/data/texts")
