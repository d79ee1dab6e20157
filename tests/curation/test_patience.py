"""A run waits for a server or a store that went away, shows it, and goes on by itself."""

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from conftest import ROOT, Ran, require
from curation_runs import (
    add_dataset,
    claimed_job,
    run_curation,
    stored_calls,
    texts_of,
    wait_for,
)
from lossy_proxy import LossyProxy
from openai_server import Server, answer_to
from postgres_cluster import Cluster, missing_programs
from ray_nodes import IdleRay
from sqlalchemy import event, make_url, select, update
from sqlalchemy.exc import SQLAlchemyError

from app.jobs import launching, processes, supervisor
from app.jobs.ray_supervisor import supervise_ray
from curation.providers.probe import PROBE_TOKENS
from curation.recipe.completion import Page
from curation.recipe.prices import Price, save_price
from curation.run.engine import curate
from curation.run.starting import start_run
from db.errors import InfError, ProviderError
from db.jobs import jobs
from db.modules import run_module
from db.patience import clock_time, is_away, known_absence, patiently
from db.run.runs import get_run
from db.run.workers import add_worker, worker_totals
from db.store.schema import upgrade
from db.store.settings import logs
from db.store.store import Store, open_store
from db.tables import RunWorker, utc_now

TESTS = Path(__file__).resolve().parent.parent
ASKED: dict[str, Any] = {
    "dataset": "small",
    "provider": "openai",
    "settings": ["model=small"],
    "concurrency": 4,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    # a report of a run's end: it takes longer than the run
    monkeypatch.setattr("curation.run.engine.check_leakage", lambda *_: {})
    with Server(latency_seconds=0.005) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for name, seconds in (("BACKOFF_SECONDS", 0.01), ("MAX_BACKOFF_SECONDS", 0.05)):
            monkeypatch.setattr(f"curation.providers.openai_server.{name}", seconds)
        monkeypatch.setattr("curation.providers.openai_server.PROBE_EVERY_SECONDS", (0.05, 0.2))
        yield server


def new_run(store: Store, **more: Any) -> int:
    with store.write() as session:
        run_id = start_run(session, **(ASKED | more)).id
        session.commit()
    return run_id


def in_thread(
    store: Store, run_id: int, patience_minutes: float
) -> tuple[threading.Thread, list[Any]]:
    """A worker in a thread; its result, or what it raised."""
    ended: list[Any] = []

    def work() -> None:
        try:
            ended.append(
                curate(claimed_job(store, run_id, patience_minutes=patience_minutes)).as_json()
            )
        except InfError as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, ended


@pytest.mark.long
@pytest.mark.parametrize("how", ["503", "gone"])
def test_a_server_that_goes_away_is_waited_for_and_the_run_is_that_of_no_outage(
    store: Store, server: Server, inf: Callable[..., Ran], how: str
) -> None:
    add_dataset(store, pairs=10)
    undisturbed = new_run(store, seed=1)
    curate(claimed_job(store, undisturbed))
    run_id = new_run(store, seed=1, fresh=True)
    before = server.answered.total()
    if how == "503":
        server.down = (before + 30, 503, "")
    else:
        server.cut_after = before + 30
    thread, ended = in_thread(store, run_id, 5)

    def trouble() -> Any:
        with store.read() as session:
            found = worker_totals(session, run_id).trouble
        return found if found.waiting_for else None

    shown = wait_for(trouble, 20)
    assert shown.waiting_since is not None and shown.waiting_until is not None
    assert shown.waiting_since <= shown.waiting_until
    reason = "out of order" if how == "503" else "cut"
    assert reason in shown.waiting_for

    def line() -> str:
        return next((each for each in inf("status").out.splitlines() if "waiting" in each), "")

    line_of_status = wait_for(line, 20)
    assert f"waiting for the server since {clock_time(shown.waiting_since)}" in line_of_status
    assert "next attempt at" in line_of_status and reason in line_of_status
    asked = server.statuses.total()
    time.sleep(1.5)
    assert thread.is_alive() and server.statuses.total() - asked < 30, "it probes, no more"
    server.down, server.cut_after = None, None
    thread.join(60)
    assert ended and ended[0]["status"] == "done", ended
    assert texts_of(store, run_id) == texts_of(store, undisturbed)
    assert server.answered.total() - before <= 80 + 6, "nothing is asked twice but what was cut"
    with store.read() as session:
        assert worker_totals(session, run_id).trouble.waiting_for is None


@pytest.mark.long
def test_a_network_that_cuts_the_validation_alone_drops_no_group(
    sqlite_store: Store, server: Server
) -> None:
    """Its prompts are the long ones; others are answered meanwhile, and say nothing about it."""
    add_dataset(sqlite_store, pairs=16)
    undisturbed = run_curation(sqlite_store, **ASKED)
    before = server.answered.total()
    is_cut = True

    async def reply(request: web.Request, _: Any, prompt: str, __: int) -> web.Response | None:
        is_late = server.answered.total() - before > 30
        if not (is_cut and is_late and answer_to(prompt)[0] == "validation"):
            return None
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    server.reply = reply
    run_id = new_run(sqlite_store, fresh=True)
    thread, ended = in_thread(sqlite_store, run_id, 5)

    def last_error() -> str | None:
        with sqlite_store.read() as session:
            return worker_totals(session, run_id).trouble.last_error

    error = wait_for(last_error)
    assert "cut" in error and "imed out" not in error
    time.sleep(4)
    assert thread.is_alive(), ended
    is_cut = False
    thread.join(60)
    assert ended and ended[0]["status"] == "done" and not ended[0]["dropped"], ended
    assert texts_of(sqlite_store, run_id) == texts_of(sqlite_store, undisturbed["run_id"])


def test_what_lasts_longer_than_the_patience_ends_the_run_with_its_cause(
    store: Store, server: Server
) -> None:
    add_dataset(store, pairs=6)
    server.down = (20, 503, "")
    run_id = new_run(store)
    began = time.monotonic()
    with pytest.raises(ProviderError, match=r"no answer for .*out of order"):
        curate(claimed_job(store, run_id, patience_minutes=2 / 60))
    assert 2 <= time.monotonic() - began < 20
    with store.read() as session:
        assert get_run(session, run_id).status == "failed"


@pytest.mark.parametrize(("status", "code"), [(401, "no"), (402, ""), (404, "model_not_found")])
def test_what_waiting_does_not_mend_stops_the_run_at_once_also_while_it_waits(
    sqlite_store: Store, server: Server, status: int, code: str
) -> None:
    add_dataset(sqlite_store, pairs=6)
    server.down = (20, 503, "")
    run_id = new_run(sqlite_store)
    thread, ended = in_thread(sqlite_store, run_id, 5)

    def waits() -> bool:
        with sqlite_store.read() as session:
            return worker_totals(session, run_id).trouble.waiting_for is not None

    wait_for(waits, 20)
    server.down = (0, status, code)
    thread.join(20)
    assert ended and isinstance(ended[0], ProviderError), ended


@pytest.mark.long
@pytest.mark.parametrize(("requested", "limit"), [(0.6, None), (600, 0.6)])
def test_a_server_that_is_away_is_called_again_when_it_says_within_the_limit(
    sqlite_store: Store, server: Server, requested: float, limit: float | None
) -> None:
    add_dataset(sqlite_store, pairs=6)
    limits = [] if limit is None else [f"max_retry_after_seconds={limit}"]
    run_id = new_run(sqlite_store, settings=["model=small", *limits])
    moments: list[float] = []
    probes, is_away = 0, True

    async def reply(_: web.Request, body: dict[str, Any], __: str, ___: int) -> web.Response | None:
        nonlocal probes
        if not is_away:
            return None
        moments.append(time.monotonic())
        probes += body.get("max_tokens") == PROBE_TOKENS
        headers = {"Retry-After": str(requested)}
        return web.json_response({"error": {"message": "later"}}, status=503, headers=headers)

    server.reply = reply
    thread, ended = in_thread(sqlite_store, run_id, 0.5)
    try:
        wait_for(lambda: probes >= 3, 20)
    finally:
        is_away = False
        thread.join(40)
    assert ended and not isinstance(ended[0], InfError) and ended[0]["status"] == "done", ended
    gaps = [after - before for before, after in pairwise(moments[-3:])]
    assert min(gaps) > 0.55, gaps


SIGN_IN = "<html><title>Sign in - Example Portal</title><form><input type=password></form></html>"
RESTARTING = "<html><title>One moment</title>We are restarting. <a href=/login>Log in</a></html>"


def sends_page(server: Server, html: str, *, after: int) -> None:
    async def reply(*_: Any) -> web.Response | None:
        is_page = server.answered.total() >= after
        return web.Response(text=html, content_type="text/html") if is_page else None

    server.reply = reply


@pytest.mark.parametrize("while_it_waits", [False, True])
def test_a_page_to_sign_in_with_status_200_stops_the_run_at_once(
    sqlite_store: Store, server: Server, while_it_waits: bool
) -> None:
    add_dataset(sqlite_store, pairs=6)
    run_id = new_run(sqlite_store)
    if while_it_waits:
        server.down = (20, 503, "")
    else:
        sends_page(server, SIGN_IN, after=20)
    thread, ended = in_thread(sqlite_store, run_id, 5)

    def waits() -> bool:
        with sqlite_store.read() as session:
            return worker_totals(session, run_id).trouble.waiting_for is not None

    if while_it_waits:
        wait_for(waits, 20)
        sends_page(server, SIGN_IN, after=0)
    thread.join(20)
    (error,) = ended
    assert error.code == "server_wants_sign_in"
    assert "Sign in - Example Portal" in str(error) and server.url in str(error)
    with sqlite_store.read() as session:
        assert get_run(session, run_id).status == "failed"
    server.reply, server.down = None, None
    assert curate(claimed_job(sqlite_store, run_id)).as_json()["status"] == "done"
    assert server.answered.total() <= 48 + 3, "no answer is paid twice"


def test_another_page_with_status_200_is_waited_for(sqlite_store: Store, server: Server) -> None:
    add_dataset(sqlite_store, pairs=6)
    run_id = new_run(sqlite_store)
    sends_page(server, RESTARTING, after=20)
    thread, ended = in_thread(sqlite_store, run_id, 5)

    def reason() -> str:
        with sqlite_store.read() as session:
            return worker_totals(session, run_id).trouble.waiting_for or ""

    assert "One moment" in wait_for(reason, 20)
    server.reply = None
    thread.join(30)
    assert ended and ended[0]["status"] == "done", ended


def test_a_server_that_sent_nothing_but_pages_is_not_waited_for(
    sqlite_store: Store, server: Server
) -> None:
    """As none that does not respond at a run's start: its address is the likelier cause."""
    add_dataset(sqlite_store, pairs=6)
    sends_page(server, RESTARTING, after=0)
    with pytest.raises(ProviderError, match="One moment") as ended:
        curate(claimed_job(sqlite_store, new_run(sqlite_store), patience_minutes=5))
    assert ended.value.code == "server_sends_pages"


@pytest.mark.parametrize(
    ("page", "asks"),
    [
        (SIGN_IN, True),
        ("<!doctype html><TITLE>\n Log in\n</TITLE>", True),
        ("<html><title>Sign&nbsp;in to your account</title>", True),
        ("<html><title>Anmelden</title>", True),
        (
            '<html><form method="post"><input type="hidden" name="SAMLRequest" value="x"></form>',
            True,
        ),
        ('<meta http-equiv="refresh" content="0; url=https://id.example/login?next=/v1">', True),
        ("<script>window.location.href = 'https://id.example/oauth2/authorize'</script>", True),
        ("<script>location.replace('/sso/start')</script>", True),
        (RESTARTING, False),
        ("<html><body><h1>502 Bad Gateway</h1></body></html>", False),
        ('<meta http-equiv="refresh" content="30"><title>Maintenance</title>', False),
        ("<html><title>Planning in progress</title><a href='/sign-in'>Sign in</a>", False),
    ],
)
def test_a_page_asks_to_sign_in_by_its_form_its_target_or_its_title(page: str, asks: bool) -> None:
    assert Page(page).asks_to_sign_in is asks


def test_a_run_that_was_answered_before_waits_at_its_start_and_a_new_one_does_not(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=6)
    monkeypatch.setattr("curation.providers.openai_server.PROBE_EVERY_SECONDS", (0.05, 0.2))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    run_id = new_run(sqlite_store)
    with pytest.raises(ProviderError, match="no server responds"):
        curate(claimed_job(sqlite_store, run_id, patience_minutes=5))
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        server.down = (10, 401, "no")
        with pytest.raises(ProviderError):
            curate(claimed_job(sqlite_store, run_id))
        port = server.port
    thread, ended = in_thread(sqlite_store, run_id, 5)
    time.sleep(1)
    assert thread.is_alive(), ended
    server = Server()
    server.port = port
    with server:
        thread.join(60)
    assert ended and ended[0]["status"] == "done", ended


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    if missing := missing_programs():
        pytest.skip(missing)
    with Cluster() as cluster:
        yield cluster


@pytest.mark.long
def test_workers_go_on_when_their_database_is_restarted(
    cluster: Cluster, server: Server, sqlite_store: Store
) -> None:
    """Two workers, three restarts; equal to a run without."""
    add_dataset(sqlite_store, pairs=30)
    undisturbed = run_curation(sqlite_store, **ASKED)
    store = open_store(cluster.create())
    upgrade(store)
    add_dataset(store, pairs=30)
    server.latency_seconds = 0.05
    run_id = new_run(store)
    before = server.answered.total()
    workers = [in_thread(store, run_id, 5) for _ in range(2)]
    for at in (20, 80, 140):
        wait_for(lambda at=at: server.answered.total() - before > at)
        cluster.restart(away_seconds=1.0)
    for thread, _ in workers:
        thread.join(90)
    assert all(ended and isinstance(ended[0], dict) for _, ended in workers), workers
    with store.read() as session:
        assert get_run(session, run_id).status == "done"
    assert texts_of(store, run_id) == texts_of(sqlite_store, undisturbed["run_id"])
    assert server.answered.total() - before == stored_calls(store) == 240, "nothing is paid twice"


@pytest.mark.long
def test_a_job_whose_process_starts_while_the_store_is_away_waits_for_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replaced worker: the database went away after its job was claimed."""
    monkeypatch.setattr(processes, "ENTRY", "toy_jobs")
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    store = open_store(cluster.create())
    upgrade(store)
    with store.write() as session:
        queued = jobs.enqueue_job(session, "curate", {"steps": 1})
        job = jobs.claim_job(session, queued.id)
        session.commit()
    assert job is not None
    cluster.stop()
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(launching.start_process, store, job)
        log = logs() / f"job-{job.id}-1.log"
        wait_for(lambda: log.exists() and "waiting for the store" in log.read_text())
        cluster.start()
        assert starting.result(60).wait(60) == 0, log.read_text()
    with store.read() as session:
        assert jobs.get_job(session, job.id).status == "done"


@pytest.mark.long
@pytest.mark.parametrize("at_start", [True, False])
def test_a_supervisor_without_a_running_job_ends_with_its_patience(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, at_start: bool
) -> None:
    """It would look for a database that was dropped as long as the machine is up."""
    store = open_store(cluster.create())
    upgrade(store)
    monkeypatch.setattr(supervisor, "PATIENCE_MINUTES", 0.02)
    goes = threading.Timer(0.0 if at_start else 1.0, cluster.stop)
    goes.start()
    if at_start:
        goes.join()
    began = time.monotonic()
    with pytest.raises((InfError, SQLAlchemyError)) as ended:
        supervisor.supervise(store, idle_seconds=600)
    cluster.start()
    assert is_away(ended.value) and time.monotonic() - began > 0.5


@pytest.mark.long
def test_a_database_host_that_vanished_is_noticed_within_half_a_minute(cluster: Cluster) -> None:
    """Its packets are dropped; by the kernel's own times it would take hours."""
    alone = ("unshare", "--map-root-user", "--net")
    done = subprocess.run([*alone, "true"], capture_output=True, check=False)
    if done.returncode:
        require("unshare", f"no network of its own: {done.stderr.decode().strip()}")
    database = make_url(cluster.create()).database
    words = [sys.executable, TESTS / "vanished_host.py", cluster.folder, database]
    told = subprocess.run([*alone, *words], stdout=subprocess.PIPE, check=True, timeout=200)
    found = json.loads(told.stdout.splitlines()[-1])
    assert {how: away for how, (_, away) in found.items()} == dict.fromkeys(found, True)
    seconds = {how: after for how, (after, _) in found.items()}
    assert seconds.keys() == {"sending", "waiting", "connecting"}
    assert max(seconds.values()) < 36 and seconds["connecting"] < 16, seconds


@pytest.mark.long
def test_the_locks_of_a_client_that_vanished_are_free_within_half_a_minute() -> None:
    """By the kernel's own times, after two hours: nobody could take of the run's budget."""
    alone = ("unshare", "--net")
    done = subprocess.run([*alone, "true"], capture_output=True, check=False)
    if done.returncode:
        require("unshare", f"no network of its own: {done.stderr.decode().strip()}")
    words = [sys.executable, TESTS / "vanished_host.py"]
    told = subprocess.run([*alone, *words], stdout=subprocess.PIPE, check=True, timeout=300)
    assert float(told.stdout.splitlines()[-1]) < 45


@pytest.mark.long
def test_rays_supervisor_waits_for_a_store_that_is_away_and_goes_on(cluster: Cluster) -> None:
    store, ray = open_store(cluster.create()), IdleRay()
    upgrade(store)
    with ThreadPoolExecutor(1) as pool:
        supervised = pool.submit(supervise_ray, store, ray, idle_seconds=4.0)
        time.sleep(1)
        cluster.stop()
        time.sleep(3)  # several of its rounds
        assert not supervised.done()
        cluster.start()
        with store.write() as session:
            job_id = jobs.enqueue_job(session, "curate", {}, launcher=ray.address).id
            session.commit()
        wait_for(lambda: ray.submitted == [(job_id, 1)], 20)
        with store.write() as session:
            jobs.request_stop(session, job_id)
            session.commit()
        assert supervised.result(60) == 1
    with store.read() as session:
        assert jobs.get_job(session, job_id).status == "cancelled"


@pytest.mark.long
def test_a_budget_counts_each_answer_once_when_a_commit_is_cut_off_from_its_answer(
    cluster: Cluster, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is done, and the connection is lost before its acknowledgement arrives."""
    store = open_store(cluster.create())
    upgrade(store)
    add_dataset(store, pairs=8)
    save_price("small", Price(1.0, 2.0))
    server.usage = (1000, 100)
    settings = ["model=small", "max_output_tokens=200"]
    run_id = new_run(store, settings=settings, budget_usd=5.0)
    commits = 0

    def lose(connection: Any) -> None:
        nonlocal commits
        commits += 1
        if commits % 7 == 3:
            driver = connection.connection.dbapi_connection
            driver.execute("COMMIT")
            cluster.end_session(driver.info.backend_pid)

    event.listen(store.engine, "commit", lose)
    try:
        result = curate(claimed_job(store, run_id, patience_minutes=1)).as_json()
    finally:
        event.remove(store.engine, "commit", lose)
    assert result["status"] == "done" and result["kept"] == 8
    assert commits > 20 and stored_calls(store) == 64
    assert result["spent_usd"] == pytest.approx(64 * (1000 * 1.0 + 100 * 2.0) / 1e6)
    with store.read() as session:
        assert session.scalars(select(RunWorker.leased_usd)).all() == [0.0]


@pytest.mark.long
@pytest.mark.parametrize("arrives", [True, False], ids=["its answer is lost", "it is lost"])
def test_packets_that_are_dropped_in_the_middle_of_a_commit_pay_and_count_nothing_twice(
    cluster: Cluster, server: Server, sqlite_store: Store, arrives: bool
) -> None:
    """The worker cannot know whether the commit was done, and is told that the connection ended."""
    add_dataset(sqlite_store, pairs=8)
    undisturbed = run_curation(sqlite_store, **ASKED)
    url = cluster.create()
    direct = open_store(url)
    upgrade(direct)
    add_dataset(direct, pairs=8)
    save_price("small", Price(1.0, 2.0))
    server.usage, before = (1000, 100), server.answered.total()
    settings = ["model=small", "max_output_tokens=200"]
    run_id = new_run(direct, settings=settings, budget_usd=5.0)
    socket_file = cluster.folder / ".s.PGSQL.5432"
    with LossyProxy(socket_file, every=7, arrives=arrives) as proxy:
        through = f"postgresql+psycopg://inf@127.0.0.1:{proxy.port}/{make_url(url).database}"
        store = open_store(through)
        result = curate(claimed_job(store, run_id, patience_minutes=1)).as_json()
        store.close()
    assert proxy.lost >= 3, "a commit in seven"
    assert result["status"] == "done" and result["kept"] == 8
    assert server.answered.total() - before == stored_calls(direct) == 64
    assert result["spent_usd"] == pytest.approx(64 * (1000 * 1.0 + 100 * 2.0) / 1e6)
    assert texts_of(direct, run_id) == texts_of(sqlite_store, undisturbed["run_id"])
    with direct.read() as session:
        assert session.scalars(select(RunWorker.leased_usd)).all() == [0.0]


def test_an_unreachable_store_is_named_and_since_when_workers_here_wait_for_it(
    cluster: Cluster, inf_process: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(cluster.create())
    monkeypatch.setenv("INF_DATABASE_URL", store.url)
    with store.read() as session:
        session.connection()
    cluster.stop()
    named = r"the store postgresql\+psycopg://inf@/\S+ cannot"
    with pytest.raises(InfError, match=named) as error, store.read() as session:
        session.connection()
    assert error.value.code == "store_unreachable"
    shown = inf_process("status", INF_DATABASE_URL=store.url)
    assert shown.code == 1 and "cannot be reached (" in shown.err and "Traceback" not in shown.err

    def look() -> None:
        with store.read() as session:
            session.connection()

    messages: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        workers = [pool.submit(patiently, look, 60, tell=messages.append) for _ in range(2)]
        wait_for(lambda: len(messages) > 12, 20)
        shown = inf_process("status", INF_DATABASE_URL=store.url)
        cluster.start()
        assert [worker.result(30) for worker in workers] == [None, None]
    (since,) = {re.findall(r"since (\S+),", message)[0] for message in messages}
    line = rf"cannot be reached since {since}, next attempt at [\d:]{{8}} \(\w"
    assert shown.code == 1 and re.search(line, shown.err), shown.err
    assert known_absence(store.url) is None, "it is back"


def test_a_file_that_another_program_holds_is_named_in_status_and_with_the_run(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=2)
    ended = run_curation(sqlite_store, **ASKED | {"provider": "offline"})["run_id"]
    with sqlite_store.write() as session:
        run_id = start_run(session, dataset="small", provider="offline", settings=[]).id
        add_worker(session, run_id, "a worker")  # no heartbeat of it can be stored for a while
        session.execute(update(RunWorker).values(heartbeat_at=utc_now() - timedelta(minutes=1)))
        session.commit()
    monkeypatch.setattr("db.store.store.BUSY_TIMEOUT_SECONDS", 0.1)
    held = open_store(f"{sqlite_store.url}?timeout=0.1")

    def write() -> None:
        with held.write() as session:
            session.connection()

    def trouble(of: int = run_id) -> Any:
        with sqlite_store.read() as session:
            return worker_totals(session, of).trouble

    with (
        sqlite3.connect(make_url(sqlite_store.url).database) as other,
        ThreadPoolExecutor() as pool,
    ):
        other.execute("BEGIN IMMEDIATE")
        waiting = pool.submit(patiently, write, 60)
        shown = wait_for(lambda: trouble().waiting_for and trouble(), 10)
        line = inf("status").out
        assert not trouble(ended).waiting(), "no worker of it waits"
        other.rollback()
        waiting.result(30)
    other.close()
    wanted = r"waiting for the store since (\S+), next attempt at \S+ \(database is locked\)"
    found = re.match(wanted, shown.waiting())
    assert found and f"work here waits for it since {found[1]}, next attempt at" in line
    assert "(database is locked)" in line
    assert not trouble().waiting() and "waits for it" not in inf("status").out


def test_nothing_is_said_of_a_store_that_none_waits_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of another store of this INF_HOME, and where the one that waited gave up or was killed."""
    url = f"sqlite:///{tmp_path}/one.db"
    code = (
        "from db.errors import InfError\nfrom db.patience import patiently\n"
        "def away(): raise InfError('away', code='store_unreachable')\n"
        "patiently(away, 60)"
    )

    def away() -> None:
        raise InfError("away", code="store_unreachable")

    monkeypatch.setenv("INF_DATABASE_URL", url)
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as worker:
        known = wait_for(lambda: known_absence(url), 20)
        other = known_absence(f"sqlite:///{tmp_path}/two.db")
        for _ in range(20):  # who gives up at once deletes no note of who waits
            with pytest.raises(InfError):
                patiently(away, 0.0)
            assert known_absence(url) is not None
        worker.kill()
    assert known.reason == "away" and other is None
    assert known_absence(url) is None, "it was killed"
    with pytest.raises(InfError):
        patiently(away, 0.5)
    assert known_absence(url) is None, "its patience is over"


@pytest.mark.long
def test_the_command_writes_a_line_every_ten_seconds_and_survives_its_database(
    cluster: Cluster, tmp_path: Path
) -> None:
    """A process as a script starts it: no terminal, `--json`; its server is silent for a while."""
    url = cluster.create()
    store = open_store(url)
    upgrade(store)
    add_dataset(store, pairs=20)
    with Server(latency_seconds=0.2) as server:
        server.cut_after = 60
        environment = os.environ | {
            "INF_HOME": str(tmp_path),
            "INF_DATABASE_URL": url,
            "OPENAI_BASE_URL": server.url,
        }
        command = [sys.executable, *run_module("app.cli.main"), "curate", "small"]
        command += ["--provider", "openai", "--set", "model=small", "--json"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        child = subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes)
        lines: list[tuple[float, str]] = []
        assert child.stderr is not None and child.stdout is not None
        stream = child.stderr

        def read() -> None:
            lines.extend((time.monotonic(), line) for line in stream)

        reader = threading.Thread(target=read)
        reader.start()
        wait_for(lambda: any("waiting for the server since" in line for _, line in lines), 120)
        cluster.restart(away_seconds=15.0)
        wait_for(lambda: any("waiting for the store since" in line for _, line in lines), 5)
        time.sleep(20)
        server.cut_after = None
        result = json.loads(child.stdout.read())
        reader.join(60)
        stream.close()
        child.stdout.close()
        assert child.wait(60) == 0
    assert result["status"] == "done" and result["kept"] == 20
    gaps = [after - before for (before, _), (after, _) in pairwise(lines)]
    assert max(gaps) <= 10.5, gaps
    waiting = next(line for _, line in lines if "waiting for the server" in line)
    assert "kept" in waiting and "calls made" in waiting and "cut by the server" in waiting
    assert "timed out" not in "".join(line for _, line in lines)
