"""A release made in parts: a killed or stopped export goes on, and gives the very same release."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from exporting import export, load_afresh
from records_world import group_ids, make_run

from curation.release.parts import LEDGER
from curation.release.rows import configs_of
from db.jobs import jobs
from db.jobs.runner import Cancelled, JobHandle
from db.modules import run_module
from db.review.reviews import reject_group
from db.shape import INF_IR
from db.store.store import Store


def parts_done(folder: Path) -> int:
    """Finished parts of the unfinished release beside `out`."""
    ledgers = folder.glob(f".out.unfinished-*/{LEDGER}")
    return sum(ledger.read_bytes().count(b"\n") - 1 for ledger in ledgers)


def start_export(store: Store, **config: object) -> subprocess.Popen[bytes]:
    """The job in a process of its own, as `inf export` starts it."""
    with store.write() as session:
        job_id = jobs.enqueue_job(session, "export", {"dataset": "books"} | config).id
        jobs.claim_job(session, job_id)
        session.commit()
    return subprocess.Popen(
        [sys.executable, *run_module("app.jobs.entry"), str(job_id), "1"], stderr=subprocess.DEVNULL
    )


def test_parts_are_numbered_and_read_as_one_split(sqlite_store: Store, tmp_path: Path) -> None:
    make_run(sqlite_store, kept=5, dropped=0, unwritten=0)
    told = export(sqlite_store, tmp_path / "out", groups_per_part=2)
    assert sorted(path.name for path in (tmp_path / "out" / "data").iterdir()) == [
        f"books-0000{number}-of-00003.parquet" for number in range(3)
    ]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "README.md",
        "croissant.json",
        "data",
        "judgments",
        "provenance",
        "release.json",
        "triplets",
    ]
    read = load_afresh(tmp_path / "out", tmp_path)["books"]["rows"]
    assert [row["query_id"] for row in read] == [f"q{number}" for number in range(5)]
    assert "path: data/books-*-of-00003.parquet" in (tmp_path / "out" / "README.md").read_text()
    jsonl = export(sqlite_store, tmp_path / "jsonl", groups_per_part=2, format="jsonl")
    assert jsonl["content_sha256"] == told["content_sha256"]


@pytest.mark.long
def test_an_export_killed_again_and_again_goes_on_and_gives_the_same_release(
    sqlite_store: Store, tmp_path: Path
) -> None:
    make_run(sqlite_store, kept=1500, dropped=0, unwritten=0)
    config = {"held_out": 0.2, "groups_per_part": 50, "split_by": "dataset"}
    whole = export(sqlite_store, tmp_path / "whole", **config)
    chance, kept = random.Random(0), 0
    for _ in range(3):
        child = start_export(sqlite_store, out=str(tmp_path / "out"), **config)
        wanted = kept + chance.randint(2, 6)
        deadline = time.monotonic() + 60
        while child.poll() is None and parts_done(tmp_path) < wanted:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        child.kill()
        assert child.wait() == -signal.SIGKILL, "the kill landed before the end"
        assert not (tmp_path / "out").exists()
        assert parts_done(tmp_path) >= wanted, "and what was finished before is kept"
        kept = parts_done(tmp_path)
    first = next(tmp_path.glob(".out.unfinished-*/data/*.part-00000.parquet"))
    written = first.stat().st_mtime_ns
    again = export(sqlite_store, tmp_path / "out", **config)
    assert again["content_sha256"] == whole["content_sha256"]
    assert again["splits"] == whole["splits"] == {"books": 1200, "books_held_out": 300}
    (kept_file,) = (tmp_path / "out" / "data").glob(f"{first.name.split('.')[0]}-00000-of-*")
    assert kept_file.stat().st_mtime_ns == written, "a finished part is not written again"
    manifests = [
        json.loads((tmp_path / name / "release.json").read_text()) for name in ("out", "whole")
    ]
    assert manifests[0]["files"] == manifests[1]["files"]
    assert manifests[0]["counts"] == manifests[1]["counts"]
    assert not list(tmp_path.glob(".*unfinished*"))


def test_a_stopped_export_keeps_its_parts_unless_the_store_has_changed(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(sqlite_store, kept=6, dropped=0, unwritten=0)
    asked = iter([None, None, Cancelled("stopped", code="stopped")])

    def check(handle: JobHandle) -> None:
        found = next(asked)
        if found is not None:
            raise found

    with monkeypatch.context() as patched:
        patched.setattr(JobHandle, "check", check)
        with pytest.raises(Cancelled):
            export(sqlite_store, tmp_path / "out", groups_per_part=2)
    (left,) = tmp_path.glob(".out.unfinished-*")
    assert parts_done(tmp_path) == 2
    left.rename(tmp_path / ".out.unfinished-999999999")  # as if that process were gone
    with sqlite_store.write() as session:
        reject_group(session, group_ids(sqlite_store, run_id)[0], reason="vague", reviewed_by="ada")
        session.commit()
    told = export(sqlite_store, tmp_path / "out", groups_per_part=2, format="jsonl")
    assert told["groups"] == 5 and not list(tmp_path.glob(".*unfinished*"))
    files = sorted((tmp_path / "out" / "data").iterdir())
    asked_for = [
        json.loads(line)["query_id"] for file in files for line in file.read_text().splitlines()
    ]
    assert asked_for == ["q1", "q2", "q3", "q4", "q5"]


def test_parts_of_a_version_with_other_columns_are_written_again(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(sqlite_store, kept=6, dropped=0, unwritten=0)
    asked = iter([None, None, Cancelled("stopped", code="stopped")])

    def check(handle: JobHandle) -> None:
        found = next(asked)
        if found is not None:
            raise found

    columns = configs_of(INF_IR)["provenance"]
    with monkeypatch.context() as patched:
        patched.setattr(JobHandle, "check", check)
        older = {name: kind for name, kind in columns.items() if name != "confidence"}
        patched.setitem(configs_of(INF_IR), "provenance", older)
        with pytest.raises(Cancelled):
            export(sqlite_store, tmp_path / "out", groups_per_part=2)
    (left,) = tmp_path.glob(".out.unfinished-*")
    assert parts_done(tmp_path) == 2
    left.rename(tmp_path / ".out.unfinished-999999999")  # as if that process were gone
    export(sqlite_store, tmp_path / "out", groups_per_part=2)
    files = sorted((tmp_path / "out" / "provenance").iterdir())
    assert len(files) == 3
    assert {tuple(pq.read_schema(file).names) for file in files} == {tuple(columns)}


@pytest.mark.parametrize("proc", [True, False], ids=["linux", "macos-like"])
def test_an_export_of_a_living_process_is_left_alone(
    sqlite_store: Store, tmp_path: Path, proc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS has no /proc: judged by it, every owner looked dead."""
    if not proc:
        exists = Path.exists
        monkeypatch.setattr(
            Path, "exists", lambda path: not str(path).startswith("/proc") and exists(path)
        )
    make_run(sqlite_store)
    other = tmp_path / f".out.unfinished-{os.getppid()}"
    other.mkdir()
    export(sqlite_store, tmp_path / "out")
    assert other.is_dir()
