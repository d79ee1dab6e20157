"""Two workers with one host name and separate process ids, as in two containers."""

import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import require
from curation_runs import add_dataset, claimed_job, stored_calls, wait_for, work_on
from openai_server import Server

from app.jobs import launching
from curation.run.starting import start_run
from db.jobs import jobs
from db.run.runs import get_run
from db.store.store import Store

pytestmark = pytest.mark.long

TESTS = Path(__file__).resolve().parents[1]
SPACE = ("unshare", "--pid", "--fork", "--mount-proc")
WORK = """
import sys
sys.path[:0] = [{tests!r}, {root!r}]
from curation_runs import _work
_work({store!r}, {job}, {attempt}, {server!r}, {home!r})
"""
BEAT = """
import os
from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.store.settings import owners_process
from db.store.store import open_store
owners_process(True)
store = open_store({store!r})
with store.write() as session:
    job = jobs.claim_job(session, {job})
    jobs.note_process(session, job.id, job.attempt, os.getpid(), "")
    session.commit()
JobHandle(store, job.id, job.attempt).beat_until_over()
"""


def missing_spaces() -> str | None:
    """Why no process space can be made here; None where one can."""
    if shutil.which("unshare") is None:
        return "no unshare (util-linux)"
    done = subprocess.run([*SPACE, "true"], capture_output=True, check=False, timeout=20)
    return f"unshare: {done.stderr.decode().strip()}" if done.returncode else None


@pytest.mark.parametrize(("recipe", "per_pair"), [("msmarco", 8), ("promptriever", 10)])
def test_workers_in_two_process_spaces_make_no_call_twice(
    store: Store, own_home: Path, monkeypatch: pytest.MonkeyPatch, recipe: str, per_pair: int
) -> None:
    """A third of all calls was made twice: each declared the other dead by its process id."""
    if missing := missing_spaces():
        require("unshare", missing)
    monkeypatch.setattr("curation.run.engine.check_leakage", lambda *_: {})
    add_dataset(store, pairs=40)
    # the second gets its part of the calls in flight a few seconds after it joined
    with Server(latency_seconds=0.15, schema="taken") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        asked: dict[str, Any] = {"dataset": "small", "provider": "openai", "concurrency": 4}
        with store.write() as session:
            run_id = start_run(session, **asked, recipe=recipe, settings=["model=small"]).id
            session.commit()
        handle = claimed_job(store, run_id)
        code = WORK.format(
            tests=str(TESTS),
            root=str(TESTS.parent),
            store=store.url,
            job=handle.id,
            attempt=handle.attempt,
            server=server.url,
            home=str(own_home),
        )
        environment = os.environ | {"INF_HOME": str(own_home)}
        elsewhere = subprocess.Popen([*SPACE, sys.executable, "-c", code], env=environment)
        try:
            wait_for(lambda: server.answered.total() > 4)
            result = work_on(store, run_id)
            assert elsewhere.wait(120) == 0
        finally:
            elsewhere.kill()
            elsewhere.wait()
        assert result["calls"]["made"] > 20, "both worked"
        assert server.answered.total() == stored_calls(store) == 40 * per_pair, (
            "no call is made twice"
        )
    with store.read() as session:
        assert get_run(session, run_id).status == "done"


def test_a_job_in_another_process_space_lives_by_its_lease_alone(sqlite_store: Store) -> None:
    """By host name and process id it was taken for dead as soon as a store was back."""
    if missing := missing_spaces():
        require("unshare", missing)
    silent: dict[int, float] = {}
    with sqlite_store.write() as session:
        job_id = jobs.enqueue_job(session, "curate", {}).id
        session.commit()

    def beaten() -> bool:
        job = launching.job_now(sqlite_store, job_id)
        return job.pid is not None and (job.heartbeat_at or job.created_at) > job.created_at

    def looked_at_after_an_outage() -> str:
        with sqlite_store.write() as session:
            job = jobs.get_job(session, job_id)
            job.heartbeat_at = job.created_at - timedelta(seconds=jobs.LOST_AFTER_SECONDS + 1)
            session.commit()
        launching.mark_lost(sqlite_store, silent)
        return launching.job_now(sqlite_store, job_id).status

    code = BEAT.format(store=sqlite_store.url, job=job_id)
    elsewhere = subprocess.Popen([*SPACE, sys.executable, "-c", code], cwd=TESTS.parent)
    try:
        wait_for(beaten)
        (process,) = psutil.Process(elsewhere.pid).children()
        process.suspend()
        assert looked_at_after_an_outage() == "running", "it may live, and gets as long again"
        process.resume()
        wait_for(beaten)
        launching.mark_lost(sqlite_store, silent)
        assert not silent
    finally:
        psutil.Process(elsewhere.pid).children()[0].kill()
        elsewhere.wait()
    assert looked_at_after_an_outage() == "running"
    silent[job_id] -= jobs.LOST_AFTER_SECONDS
    launching.mark_lost(sqlite_store, silent)
    assert launching.job_now(sqlite_store, job_id).status == "lost"
