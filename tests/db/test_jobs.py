"""The queue: one process per claim, a lost attempt cannot write, a stop reaches the job."""

from datetime import timedelta

import pytest
from job_metrics import metric_points

from db.errors import BadInput, InfError, NotFound, Refused
from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.store.store import Store
from db.tables import MetricPoint, utc_now


def queued(store: Store, kind: str = "curate") -> int:
    with store.write() as session:
        job_id = jobs.enqueue_job(session, kind, {"x": 1}).id
        session.commit()
    return job_id


def claim(store: Store, job_id: int | None = None):
    with store.write() as session:
        job = jobs.claim_job(session, job_id)
        session.commit()
    return job


def test_the_oldest_queued_job_is_claimed_once(store: Store) -> None:
    first, second = queued(store), queued(store)
    assert [claim(store).id, claim(store).id, claim(store)] == [first, second, None]


def test_an_unknown_kind_is_refused_by_name(store: Store) -> None:
    with store.write() as session, pytest.raises(BadInput, match="no job kind 'bake'"):
        jobs.enqueue_job(session, "bake", {})


def test_a_missing_job_is_named(store: Store) -> None:
    with store.read() as session, pytest.raises(NotFound, match="no job 99"):
        jobs.get_job(session, 99)


def test_a_lost_attempt_cannot_write_over_its_successor(store: Store) -> None:
    job = claim(store, queued(store))
    with store.write() as session:
        later = utc_now() + timedelta(seconds=jobs.LOST_AFTER_SECONDS + 1)
        assert jobs.mark_lost_jobs(session, now=later) == [job.id]
        jobs.requeue_job(session, job.id)
        session.commit()
    again = claim(store, job.id)
    assert again.attempt == job.attempt + 1
    with store.write() as session, pytest.raises(Refused):
        jobs.finish_job(session, job.id, job.attempt, "done")
    with store.write() as session:
        jobs.finish_job(session, job.id, again.attempt, "done", result={"kept": 3})
        session.commit()
        assert jobs.get_job(session, job.id).result == {"kept": 3}


def test_a_beating_job_is_not_lost(store: Store) -> None:
    job = claim(store, queued(store))
    with store.write() as session:
        assert jobs.beat(session, job.id, job.attempt, done=2, total=5) is False
        assert jobs.mark_lost_jobs(session) == []


def test_a_stop_cancels_what_waits_and_asks_what_runs(store: Store) -> None:
    waiting, running = queued(store), claim(store, queued(store))
    with store.write() as session:
        assert jobs.request_stop(session, waiting).status == "cancelled"
        assert jobs.request_stop(session, running.id).status == "running"
        session.flush()
        assert jobs.beat(session, running.id, running.attempt) is True


def test_a_running_job_is_not_queued_again(store: Store) -> None:
    job = claim(store, queued(store))
    with store.write() as session, pytest.raises(Refused, match="cancel it first"):
        jobs.requeue_job(session, job.id)


def test_a_step_reported_twice_keeps_the_last_value(store: Store) -> None:
    job_id = queued(store, "train")
    with store.write() as session:
        jobs.record_metrics(session, job_id, 1, {"loss": 2.0})
        jobs.record_metrics(session, job_id, 1, {"loss": 1.5, "lr": 0.1})
        session.commit()
        points = [(p.name, p.step, p.value) for p in metric_points(session, job_id)]
    assert points == [("loss", 1, 1.5), ("lr", 1, 0.1)]


@pytest.mark.parametrize("back", ["at the next step", "at the end"])
def test_metrics_of_an_outage_are_stored_when_the_store_is_back(
    store: Store, monkeypatch: pytest.MonkeyPatch, back: str
) -> None:
    """Neither the work nor its steps end or wait for a store that is away."""
    if back == "at the next step":
        monkeypatch.setattr("db.jobs.runner.AWAY_SECONDS", 0.0)
    job = claim(store, queued(store))
    handle = JobHandle(store, job.id, job.attempt)
    handle.metrics(1, {"loss": 3.0})

    def away() -> None:
        raise InfError("the store cannot be reached", code="store_unreachable")

    with monkeypatch.context() as outage:
        outage.setattr(store, "write", away)
        handle.metrics(2, {"loss": 2.0})
        handle.metrics(3, {"loss": 1.0})
    if back == "at the next step":
        handle.metrics(3, {"loss": 1.5})
    else:
        handle.finish({"status": "done", "result": {}})
    last = 1.5 if back == "at the next step" else 1.0
    with store.read() as session:
        stored = [(each.step, each.value) for each in metric_points(session, job.id)]
    assert stored == [(1, 3.0), (2, 2.0), (3, last)]


def test_metrics_that_no_store_would_take_end_the_work(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = claim(store, queued(store))
    handle = JobHandle(store, job.id, job.attempt)

    def broken() -> None:
        raise InfError("replaced", code="store_replaced")

    monkeypatch.setattr(store, "write", broken)
    with pytest.raises(InfError, match="replaced"):
        handle.metrics(1, {"loss": 3.0})


def test_a_long_series_is_thinned_and_keeps_its_ends(store: Store) -> None:
    with store.write() as session:
        job = jobs.enqueue_job(session, "train", {})
        for step in range(1, 1001):
            session.add(MetricPoint(job_id=job.id, name="loss", step=step * 10, value=1.0 / step))
        jobs.record_metrics(session, job.id, 5, {"ndcg@10": 0.5})
        session.flush()
        found = jobs.metric_series(session, [job.id], max_points=50)[job.id]
    assert 50 <= len(found["loss"]) <= 51
    assert found["loss"][0] == (10, 1.0)
    assert found["loss"][-1] == (10_000, 1.0 / 1000)
    assert found["ndcg@10"] == [(5, 0.5)]


def test_a_job_that_ends_before_its_process_is_noted_keeps_its_end_and_gets_its_log(
    store: Store,
) -> None:
    """Its launcher notes the process after it has begun: a quick job has ended by then."""
    with store.write() as session:
        job = jobs.enqueue_job(session, "export", {})
        jobs.claim_job(session, job.id)
        jobs.finish_job(session, job.id, 1, "done", result={"groups": 1})
        jobs.note_process(session, job.id, 1, 17, "/nowhere/job-1-1.log")
        jobs.note_process(session, job.id, 0, 18, "/nowhere/job-1-0.log")
        session.commit()
    with store.read() as session:
        job = jobs.get_job(session, job.id)
        assert (job.status, job.pid, job.log_path) == ("done", 17, "/nowhere/job-1-1.log")
