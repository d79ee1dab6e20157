"""The Jobs page: what a job of several processes uses, in all and each; what a waiting one is."""

from datetime import timedelta
from typing import Any

import pytest
from app_pages import open_page, words
from sqlalchemy import Engine, event, insert

from app.jobs_page.card import used
from db.jobs import jobs
from db.store.store import Store
from db.tables import Job, MetricPoint, utc_now

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
    assert "2.0 CPU cores now" in shown and "1,500 MB memory" in shown
    assert "2 processes on 2 nodes in total" in shown
    assert at.warning[0].value.startswith("Process 2 of 2 was given a GPU that PyTorch does not")
    parts = next(table.value for table in at.dataframe if "Where" in table.value)
    assert parts["Where"].tolist() == ["a, node n1, process 7", "b, node n2, process 9"]
    assert parts["Memory, MB"].tolist() == [1000, 500]
    assert parts["GPU"].tolist() == ["–", "missing"]


def test_the_resource_use_of_a_job_worked_by_hand() -> None:
    """4 + 4 CPU seconds in 10 seconds are 0.8 CPU cores."""
    job = Job(kind="train", config={}, status="done")
    job.started_at = utc_now()
    job.finished_at = job.started_at + timedelta(seconds=10)
    gpu = {"gpu": "H200", "gpu_id": "x", "gpu_mb": 2000, "gpu_percent": 70}
    job.resources = {"0": FIRST | gpu, "1": FIRST | gpu}
    assert used(job) == (
        "0.8 CPU cores on average · 2,000 MB memory · 1 GPU, 4,000 MB reserved, 70 % busy · "
        "2 processes in total"
    )
    assert used(Job(kind="train", config={})) == ""


@pytest.mark.parametrize("view", ["jobs", "train"])
def test_the_pages_look_up_the_numbers_of_a_curve_and_never_read_them_all(
    sqlite_store: Store, view: str
) -> None:
    """What holds at 2,000,000 numbers too: every question about them goes by the
    index, and of 30,000 at most about 1,000 of each name come back."""
    with sqlite_store.write() as session:
        for _ in range(500):
            jobs.enqueue_job(session, "train", {})
        job = jobs.claim_job(session)
        assert job is not None
        points = [
            {"job_id": job.id, "name": name, "step": step, "value": 1.0, "created_at": utc_now()}
            for name in ("loss", "learning_rate", "tokens_per_second")
            for step in range(10_000)
        ]
        session.execute(insert(MetricPoint), points)
        session.commit()
    asked: list[tuple[str, Any]] = []

    def listen(_c: object, _u: object, statement: str, values: Any, _x: object, _m: object) -> None:
        if "metric_point" in statement:
            asked.append((statement, values))

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        assert not open_page(view, job=str(job.id)).exception
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    assert bool(asked) == (view == "train")
    with sqlite_store.engine.connect() as connection:
        for statement, values in asked:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
            told = [row[-1] for row in plan if "metric_point" in row[-1]]
            assert told and all(each.startswith("SEARCH metric_point USING") for each in told), told
    with sqlite_store.read() as session:
        series = jobs.metric_series(session, [job.id])[job.id]
    assert [len(values) <= 1001 for values in series.values()] == [True] * 3


def test_a_job_that_waits_has_no_command_no_slot_and_no_attempt_yet(sqlite_store: Store) -> None:
    with sqlite_store.write() as session:
        job_id = jobs.enqueue_job(session, "train", {}, started_by="ben").id
        session.commit()
    at = open_page("jobs", job=str(job_id))
    assert not at.exception
    assert "No process yet." in [code.value for code in at.code]
    shown = words(at)
    assert "started by ben" in shown
    assert "foreground" not in shown and "attempt" not in shown
