"""Jobs and the app that started them: killed, reopened; a crash is told with what to do."""

import os
import signal
import time
from pathlib import Path

import pytest
from app_pages import open_page, words
from curation_runs import add_dataset
from held_job import held_still
from live_server import serving
from openai_server import Server
from trainer_release import write_release
from waiting import until

from app.access.identity import owner
from app.jobs import launching, processes, supervisors
from curation.run.starting import RunWork, start_run
from db.jobs import jobs
from db.store.store import Store
from db.tables import Job

pytestmark = pytest.mark.long

TESTS = Path(__file__).resolve().parent.parent
STEPS = 60


def wait_until_over(store: Store, job_id: int) -> Job:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with store.read() as session:
            job = jobs.get_job(session, job_id)
        if job.status in jobs.OVER:
            return job
        time.sleep(0.1)
    raise AssertionError(f"job {job_id} never ended")


@pytest.mark.long
def test_a_job_outlives_the_app_that_is_killed_and_the_reopened_page_shows_it(
    sqlite_store: Store, tmp_path: Path
) -> None:
    release = write_release(tmp_path / "release", 10)
    settings = {"base_model": "tiny-random-bert", "max_steps": str(STEPS), "rows_per_batch": "4"}
    settings["natural_probe"] = "off"
    with serving(tmp_path / "served") as server:
        config = {"release": str(release), "settings": settings}
        job_id = launching.launch(sqlite_store, "train", config, actor=owner("ann"))
        with held_still(sqlite_store, job_id, least=2) as job:
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
            at = open_page("jobs", job=str(job_id))
            assert not at.exception
            shown = words(at)
            assert f"Job {job_id}" in shown and "running" in shown
            assert job.pid and Path(f"/proc/{job.pid}").exists()
    ended = wait_until_over(sqlite_store, job_id)
    assert (ended.status, ended.attempt) == ("done", 1)
    assert ended.result is not None and ended.result["steps"] == STEPS
    assert ended.message.startswith("loss ")
    assert "done" in words(open_page("jobs", job=str(job_id)))


@pytest.mark.long
def test_a_run_of_a_rebooted_machine_goes_on_when_its_server_starts_as_it_was_launched(
    sqlite_store: Store, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker and its supervisor are gone; the new server's environment names another server."""
    add_dataset(sqlite_store, pairs=6)
    with Server(key="sk-of-the-launch") as there, Server() as wrong:
        there.hold_after = 10
        monkeypatch.setenv("OPENAI_BASE_URL", there.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-launch")
        monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)
        with sqlite_store.write() as session:
            asked = {"dataset": "small", "provider": "openai", "settings": ["model=small"]}
            run_id = start_run(session, **asked).id
            session.commit()
        config = RunWork(run_id=run_id).config()
        job_id = launching.launch(sqlite_store, "curate", config, actor=owner("ann"))
        with sqlite_store.write() as session:
            job = jobs.claim_job(session, job_id, slot="curation")
            session.commit()
        assert job is not None
        worker = launching.start_process(sqlite_store, job)
        until(lambda: there.answered.total() >= 10, 90)
        worker.kill()
        worker.wait()
        there.hold_after = None
        monkeypatch.setenv("OPENAI_BASE_URL", wrong.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-server")
        with serving(own_home):
            until(lambda: launching.job_now(sqlite_store, job_id).attempt == 2, 60)
            until(lambda: launching.job_now(sqlite_store, job_id).status == "done", 120)
        assert (wrong.answered.total(), len(there.answered)) == (0, 6 * 8)


def test_a_job_whose_code_raises_is_failed_with_its_last_lines_and_what_to_do(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "ENTRY", "toy_jobs")
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    with pytest.raises(Exception, match="divided by none"):
        launching.run_in_foreground(
            sqlite_store, "curate", {"steps": 1, "ending": "crash"}, actor=owner("ann")
        )
    shown = words(open_page("jobs", job="1"))
    for said in ("failed", "toy_jobs.py", "toys divided by none", "with “Resume” on the Jobs page"):
        assert said in shown
