"""What a job uses: each process tells its part, nobody writes over another's, and sums by hand."""

import subprocess
import sys

import psutil
import pytest

from db.errors import Refused
from db.jobs import jobs
from db.jobs.resources import (
    Meter,
    missing_gpu,
    missing_gpu_warning,
    parts_of,
    report_resources,
    sum_of,
)
from db.store.store import Store
from db.tables import Job

FIRST = {"host": "a", "node": "n1", "pid": 1, "cpus": 1.5, "cpu_seconds": 4.0, "memory_mb": 100}
SECOND = {"host": "b", "node": "n2", "pid": 7, "cpus": 0.5, "cpu_seconds": 3.5, "memory_mb": 50}
GPU = {"gpu": "H200", "gpu_id": "GPU-1", "gpu_mb": 900, "gpu_percent": 80}


@pytest.fixture
def running(store: Store) -> Job:
    with store.write() as session:
        jobs.enqueue_job(session, "train", {})
        job = jobs.claim_job(session)
        assert job is not None
        session.commit()
    return job


def used(store: Store, job: Job) -> dict[str, object]:
    with store.read() as session:
        return jobs.get_job(session, job.id).resources


def test_each_process_keeps_its_own_part_of_what_the_job_uses(store: Store, running: Job) -> None:
    with store.write() as session:
        jobs.note_resources(session, running.id, running.attempt, 1, SECOND)
        jobs.beat(session, running.id, running.attempt, used=FIRST)
        jobs.note_resources(session, running.id, running.attempt, 10, SECOND)
        jobs.beat(session, running.id, running.attempt, used=FIRST | {"memory_mb": 120})
        jobs.beat(session, running.id, running.attempt, done=3)
        session.commit()
    assert parts_of(used(store, running)) == [FIRST | {"memory_mb": 120}, SECOND, SECOND]


def test_a_process_of_an_attempt_that_was_given_up_tells_nothing(
    store: Store, running: Job
) -> None:
    with store.write() as session:
        jobs.note_resources(session, running.id, running.attempt, 1, SECOND)
        jobs.finish_job(session, running.id, running.attempt, "lost")
        jobs.requeue_job(session, running.id)
        jobs.claim_job(session, running.id)
        session.commit()
    with store.write() as session, pytest.raises(Refused):
        jobs.note_resources(session, running.id, running.attempt, 1, SECOND)
    assert used(store, running) == {}


def test_another_process_tells_what_it_uses_as_soon_as_it_begins(
    store: Store, running: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", store.url)
    with report_resources(running.id, running.attempt, 3, "n9"):
        pass
    (part,) = parts_of(used(store, running))
    assert (part["node"], part["pid"]) == ("n9", psutil.Process().pid)


def test_a_process_that_is_not_told_of_a_store_makes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INF_DATABASE_URL", raising=False)
    with report_resources(1, 1, 1, ""):
        pass


def test_parts_are_summed_and_a_gpu_that_two_share_is_one() -> None:
    """80 % and 80 % of the one GPU, 40 % of the other: the mean over two GPUs is 60 %."""
    assert sum_of([FIRST, SECOND]) == {
        **{"processes": 2, "nodes": 2, "cpus": 2.0, "cpu_seconds": 7.5, "memory_mb": 150},
    }
    other = GPU | {"gpu_id": "GPU-2", "gpu_mb": 100, "gpu_percent": 40}
    found = sum_of([FIRST | GPU, FIRST | GPU, FIRST | other, SECOND])
    assert (found["nodes"], found["gpus"], found["gpu_mb"], found["gpu_percent"]) == (
        *(2, 2, 1900, 60),
    )
    assert sum_of([]) == {} == sum_of(parts_of({}))


def test_a_job_from_before_there_were_parts_is_one_part() -> None:
    before = {"cpu_seconds": 4.0, "memory_mb": 100}
    assert sum_of(parts_of(before)) == before | {"processes": 1, "nodes": 1}


def test_a_child_that_tells_of_itself_is_not_counted_twice() -> None:
    held = "import sys; kept = b'x' * 60_000_000; print('there', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline()
        with_it, without = Meter(), Meter()
        without.left_out = (child.pid,)
        more = with_it.read()["memory_mb"] - without.read()["memory_mb"]
        child.stdin.close()
    assert 50 < more < 150


@pytest.mark.parametrize(
    ("given", "sees", "missing"),
    [("0", False, "0"), ("0", True, ""), ("", False, ""), ("-1", False, ""), (None, False, "")],
)
def test_a_gpu_that_was_given_and_is_not_there_is_told(
    given: str | None, sees: bool, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if given is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    monkeypatch.setattr("torch.cuda.is_available", lambda: sees)
    assert missing_gpu() == missing
    assert Meter().read().get("gpu_missing", "") == missing


def test_the_processes_without_their_gpu_are_named() -> None:
    blind = FIRST | {"gpu_missing": "0"}
    assert missing_gpu_warning([FIRST, SECOND]) == "" == missing_gpu_warning([])
    assert missing_gpu_warning([blind]).startswith(
        "The job was given a GPU that PyTorch does not see"
    )
    assert missing_gpu_warning([FIRST, blind, blind]).startswith(
        "Process 2, 3 of 3 was given a GPU"
    )
