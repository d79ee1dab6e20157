"""A model judge waits for a server or a store that is away as a run does."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Ran
from curation_runs import wait_for
from flaky_store import comes_and_goes
from openai_server import Server
from postgres_cluster import Cluster, missing_programs
from study_world import make_world, sampled_study

from curation.judging.request import JudgeStart
from curation.run.revalidation import judge
from db.errors import InfError, ProviderError
from db.jobs import jobs
from db.jobs.runner import Cancelled, JobHandle
from db.store.schema import upgrade
from db.store.store import Store, open_store

PROVIDER = "curation.providers.openai_server"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name, seconds in (("BACKOFF_SECONDS", 0.01), ("MAX_BACKOFF_SECONDS", 0.05)):
        monkeypatch.setattr(f"{PROVIDER}.{name}", seconds)
    monkeypatch.setattr(f"{PROVIDER}.SILENT_FOR_SECONDS", 0.5)
    monkeypatch.setattr(f"{PROVIDER}.PROBE_EVERY_SECONDS", (0.05, 0.2))
    with Server(latency_seconds=0.01) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def judge_job(store: Store, of: int | JudgeStart, **more: Any) -> JobHandle:
    """A running job that judges all of a run, or what the request says."""
    if isinstance(of, int):
        of = JudgeStart(run_id=of, judge="openai:small", **more)
    config = of.config()
    with store.write() as session:
        job = jobs.enqueue_job(session, "judge", config)
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
        return JobHandle(store, claimed.id, claimed.attempt)


def in_thread(handle: JobHandle) -> tuple[threading.Thread, list[Any]]:
    ended: list[Any] = []

    def work() -> None:
        try:
            ended.append(judge(handle))
        except InfError as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, ended


def message_of(handle: JobHandle) -> str:
    with handle.store.read() as session:
        return jobs.get_job(session, handle.id).message or ""


def waits(handle: JobHandle) -> bool:
    return "waiting for the server since" in message_of(handle)


def assert_paid_once(server: Server, items: int) -> None:
    prompts = [count for count in server.answered.values() if count]
    assert sum(prompts) - items <= 3, "a probe or two besides"
    assert sorted(prompts)[: items - 1] == [1] * (items - 1)


@pytest.mark.long
@pytest.mark.parametrize("how", ["503", "429", "gone"])
def test_a_judge_waits_for_its_server_shows_it_and_goes_on_by_itself(
    sqlite_store: Store, server: Server, inf: Callable[..., Ran], how: str
) -> None:
    run_id = make_world(sqlite_store, 60)
    if how == "gone":
        server.cut_after = 30
    else:
        server.down = (30, int(how), "")
    handle = judge_job(sqlite_store, run_id, patience_minutes=5)
    thread, ended = in_thread(handle)
    wait_for(lambda: waits(handle), 20)
    line = wait_for(
        lambda: next((each for each in inf("status").out.splitlines() if "waiting" in each), "")
    )
    assert "next attempt at" in line
    asked = server.statuses.total()
    time.sleep(1.0)
    assert thread.is_alive() and server.statuses.total() - asked < 20, "it probes, no more"
    server.down, server.cut_after = None, None
    thread.join(60)
    (done,) = ended
    assert done.judged == done.items > 64 and not done.unusable
    assert_paid_once(server, done.items)
    assert not waits(handle)


@pytest.mark.parametrize(("status", "code"), [(401, "no"), (402, ""), (404, "model_not_found")])
def test_what_waiting_does_not_mend_ends_the_judge_at_once(
    sqlite_store: Store, server: Server, status: int, code: str
) -> None:
    server.down = (30, 503, "")
    handle = judge_job(sqlite_store, make_world(sqlite_store, 60), patience_minutes=5)
    thread, ended = in_thread(handle)
    wait_for(lambda: waits(handle), 20)
    server.down = (0, status, code)
    thread.join(20)
    assert ended and isinstance(ended[0], ProviderError), ended


@pytest.mark.long
@pytest.mark.parametrize("patience", [{"fail_fast": True}, {"patience_minutes": 1 / 60}])
def test_without_patience_or_once_it_is_over_the_judge_ends(
    sqlite_store: Store, server: Server, patience: dict[str, Any]
) -> None:
    server.down = (30, 503, "")
    handle = judge_job(sqlite_store, make_world(sqlite_store, 60), **patience)
    with pytest.raises(ProviderError, match="no answer for") as ended:
        judge(handle)
    assert ended.value.code == "server_silent"
    server.down = None
    again = judge_job(sqlite_store, handle.config["run_id"])
    done = judge(again)
    assert done.judged + done.judged_before == done.items
    assert_paid_once(server, done.items)


def test_a_judge_that_waits_stops_on_request(sqlite_store: Store, server: Server) -> None:
    server.down = (30, 503, "")
    handle = judge_job(sqlite_store, make_world(sqlite_store, 60), patience_minutes=5)
    thread, ended = in_thread(handle)
    wait_for(lambda: waits(handle), 20)
    handle.stop()
    thread.join(10)
    assert ended and isinstance(ended[0], Cancelled)


def test_a_judge_that_was_answered_before_waits_at_its_start_and_a_new_one_does_not(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_world(sqlite_store, 60)
    with monkeypatch.context() as patched:
        patched.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        with pytest.raises(ProviderError) as ended:
            judge(judge_job(sqlite_store, run_id, patience_minutes=5))
        assert ended.value.code == "server_unreachable"
    server.down = (70, 401, "no")  # in the second batch
    with pytest.raises(ProviderError):
        judge(judge_job(sqlite_store, run_id))
    server.down = None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    handle = judge_job(sqlite_store, run_id, patience_minutes=5)
    thread, ended_after = in_thread(handle)
    wait_for(lambda: waits(handle), 20)
    handle.stop()
    thread.join(10)
    assert isinstance(ended_after[0], Cancelled)


@pytest.mark.parametrize("of", ["run", "study", "edits"])
def test_a_judge_begins_while_its_store_comes_and_goes(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    run_id = make_world(sqlite_store, 6)
    if of == "study":
        with sqlite_store.write() as session:
            study_id = sampled_study(session, run_id=run_id, items=3, overlap=1).id
            session.commit()
        config = JudgeStart(study_id=study_id, judge="openai:small", budget_usd=None)
    elif of == "run":
        config = JudgeStart(run_id=run_id, judge="openai:small")
    else:
        config = JudgeStart(run_id=run_id)
    handle = judge_job(sqlite_store, config)
    with comes_and_goes(sqlite_store, monkeypatch) as met:
        done = judge(handle)
    assert done.judge and met


@pytest.mark.long
def test_a_judge_goes_on_when_its_database_is_restarted(server: Server) -> None:
    if missing := missing_programs():
        pytest.skip(missing)
    server.latency_seconds = 0.1
    with Cluster() as cluster:
        store = open_store(cluster.create())
        upgrade(store)
        run_id = make_world(store, 60)
        handle = judge_job(store, run_id, patience_minutes=5)
        thread, ended = in_thread(handle)
        for at in (20, 90):
            wait_for(lambda at=at: server.answered.total() > at)
            cluster.restart(away_seconds=1.0)
        thread.join(60)
        (done,) = ended
        assert done.judged == done.items > 64
        assert server.answered.total() == done.items, "nothing is paid twice"
