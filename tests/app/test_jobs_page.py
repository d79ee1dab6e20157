"""The Jobs page: what a job of several processes uses, in all and each; what a waiting one is."""

from datetime import timedelta

import pytest
from app_pages import open_page, words

from app.components.jobs import used
from db import jobs
from db.store import Store
from db.tables import Job, utc_now

FIRST = {"host": "a", "node": "n1", "pid": 7, "cpus": 1.5, "cpu_seconds": 4.0, "memory_mb": 1000}
SECOND = {**FIRST, "host": "b", "node": "n2", "pid": 9, "cpus": 0.5, "memory_mb": 500}


@pytest.fixture
def running(sqlite_store: Store) -> Job:
    with sqlite_store.write() as session:
        jobs.enqueue_job(session, "train", {})
        job = jobs.claim_job(session)
        assert job is not None
        jobs.beat(session, job.id, job.attempt, used=FIRST)
        jobs.note_resources(session, job.id, job.attempt, 1, SECOND | {"gpu_missing": "0"})
        session.commit()
    return job


def test_a_job_of_several_processes_shows_the_sum_and_each_part(running: Job) -> None:
    at = open_page("jobs", job=str(running.id))
    assert not at.exception
    shown = words(at).replace("\\", "")
    assert "2.0 processors now" in shown and "1,500 MB memory" in shown
    assert "2 processes on 2 nodes together" in shown
    assert at.warning[0].value.startswith("Process 2 of 2 was given a GPU that PyTorch does not")
    parts = next(table.value for table in at.dataframe if "Where" in table.value)
    assert parts["Where"].tolist() == ["a, node n1, process 7", "b, node n2, process 9"]
    assert parts["Memory, MB"].tolist() == [1000, 500]
    assert parts["GPU"].tolist() == ["none", "not there"]


def test_what_a_job_used_is_told_by_hand() -> None:
    """4 + 4 seconds of processor in 10 seconds are 0.8 processors."""
    job = Job(kind="train", config={}, status="done")
    job.started_at = utc_now()
    job.finished_at = job.started_at + timedelta(seconds=10)
    gpu = {"gpu": "H200", "gpu_id": "x", "gpu_mb": 2000, "gpu_percent": 70}
    job.resources = {"0": FIRST | gpu, "1": FIRST | gpu}
    assert used(job) == (
        "0.8 processors on average · 2,000 MB memory · 1 GPU, 4,000 MB reserved, 70 % busy · "
        "2 processes together"
    )
    assert used(Job(kind="train", config={})) == ""


def test_a_job_that_waits_has_no_command_no_slot_and_no_attempt_yet(sqlite_store: Store) -> None:
    with sqlite_store.write() as session:
        job_id = jobs.enqueue_job(session, "train", {}, started_by="ben").id
        session.commit()
    at = open_page("jobs", job=str(job_id))
    assert not at.exception
    assert "none yet: the job waits" in [code.value for code in at.code]
    shown = words(at)
    assert "started by ben" in shown
    assert "foreground" not in shown and "attempt" not in shown
