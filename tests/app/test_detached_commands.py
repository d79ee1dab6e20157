"""`--detach` of restore, study create and hub pull, and of the workers of a run."""

import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, count_rows, run_job_here
from curation_runs import add_dataset, offline_run, wait_for
from openai_server import Server
from sqlalchemy import delete, func, select
from study_world import make_world

from app.cli.main import main
from app.jobs import processes, supervisors
from app.jobs.launching import MAX_JOINED
from app.jobs.supervisor import slots, supervise
from db.events import list_events
from db.jobs import jobs
from db.run.runs import funnel, get_run
from db.run.workers import add_worker
from db.store.backup import greatest_job_id, write_backup
from db.store.store import Store
from db.tables import Job, RunWorker

TESTS = Path(__file__).resolve().parent.parent


@pytest.fixture
def queue_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No supervisor: the tests run the queued jobs."""
    monkeypatch.setattr(supervisors, "ensure_taken", lambda store, launcher: None)


def detached(*words: object) -> int:
    """The exit status of a command that queues a job."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, words), "--detach"])
    return int(ended.value.code or 0)


def run_queued(store: Store) -> Job:
    """Run the oldest queued job here; its ended row."""
    with store.write() as session:
        job = jobs.claim_job(session)
        session.commit()
    assert job is not None
    run_job_here(store, job)
    with store.read() as session:
        return jobs.get_job(session, job.id)


def made_backup(store: Store, path: Path) -> dict[str, Any]:
    """A backup of a store with a world and three jobs, one of them queued."""
    make_world(store, groups=3)
    with store.write() as session:
        for _ in range(3):
            job = jobs.enqueue_job(session, "backup", {})
        jobs.claim_job(session, 1)
        jobs.finish_job(session, 1, 1, "done")
        assert job.id == 3
        session.commit()
    return write_backup(store, path)


def test_a_restore_is_a_job_that_stays_beside_those_of_the_backup(
    store: Store, tmp_path: Path, queue_only: None
) -> None:
    file = tmp_path / "all of it.zip"
    manifest = made_backup(store, file)
    make_world(store, groups=2, name="made later")
    assert greatest_job_id(file) == 3
    assert detached("restore", file, "--replace") == 0
    with store.write() as session:  # the open ones would be run first
        for number in (2, 3):
            jobs.request_stop(session, number)
        session.commit()
    ended = run_queued(store)
    assert (ended.id, ended.kind, ended.status) == (4, "restore", "done"), ended.error
    assert ended.result is not None
    assert ended.result["content_sha256"] == manifest["content_sha256"]
    assert count_rows(store, "dataset") == 1
    with store.write() as session:
        assert {job.id: job.status for job in jobs.list_jobs(session)} == {
            1: "done",
            2: "cancelled",
            3: "cancelled",
            4: "done",
        }
        assert list_events(session)[0][0].name == "restore"
        assert jobs.enqueue_job(session, "backup", {}).id == 5


def test_a_restore_into_an_empty_store_needs_no_replace(
    sqlite_store: Store, tmp_path: Path, queue_only: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "b.zip"
    made_backup(sqlite_store, file)
    monkeypatch.setenv("INF_DATABASE_URL", f"sqlite:///{tmp_path / 'new.db'}")
    assert detached("restore", file) == 0
    new = Store()
    assert run_queued(new).status == "done"
    assert count_rows(new, "dataset") == 1
    assert detached("restore", file) == 0
    refused = run_queued(new)
    assert refused.status == "failed" and "`replace=`" in (refused.remedy or "")
    assert count_rows(new, "dataset") == 1
    new.close()


def test_a_restore_job_is_refused_while_another_runs(
    sqlite_store: Store, tmp_path: Path, queue_only: None
) -> None:
    file = tmp_path / "b.zip"
    made_backup(sqlite_store, file)
    with sqlite_store.write() as session:
        jobs.claim_job(session, 2)
        jobs.request_stop(session, 3)
        session.commit()
    assert detached("restore", file, "--replace") == 0
    ended = run_queued(sqlite_store)
    assert ended.status == "failed" and "jobs are running (2)" in (ended.error or "")


def test_a_restore_job_whose_number_the_backup_has_changes_nothing(
    sqlite_store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "b.zip"
    made_backup(sqlite_store, file)
    with sqlite_store.write() as session:
        session.execute(delete(Job))
        jobs.enqueue_job(session, "restore", {"path": str(file), "replace": True})
        session.commit()
    ended = run_queued(sqlite_store)
    assert ended.status == "failed" and "detach=yes" in (ended.remedy or "")
    assert count_rows(sqlite_store, "dataset") == 1


@pytest.mark.parametrize("name", ["no such.zip", "not a backup.zip"])
def test_what_is_no_backup_is_refused_before_a_job_is_queued(
    sqlite_store: Store, tmp_path: Path, queue_only: None, name: str
) -> None:
    (tmp_path / "not a backup.zip").write_text("hello")
    assert detached("restore", tmp_path / name) == 1
    assert count_rows(sqlite_store, "job") == 0


def test_a_study_is_created_by_a_job_once_also_if_it_is_resumed(
    store: Store, tmp_path: Path, queue_only: None
) -> None:
    make_world(store, groups=6, name="two words 世界")
    guidelines = tmp_path / "guide.md"
    guidelines.write_text("Judge well. ü")
    words = ("study", "create", "--dataset", "two words 世界", "--items", 3, "--overlap", 2)
    assert detached(*words, "--strata", "scenario", "--guidelines", guidelines) == 0
    ended = run_queued(store)
    assert ended.status == "done" and ended.result is not None, ended.error
    assert (ended.result["items"], ended.result["overlap"]) == (3, 2)
    with store.write() as session:  # as if it had been killed after it created the study
        job = jobs.get_job(session, ended.id)
        job.status = "lost"
        jobs.requeue_job(session, ended.id)
        session.commit()
    again = run_queued(store)
    assert again.result == ended.result and count_rows(store, "study") == 1


def test_an_unknown_dataset_queues_nothing(sqlite_store: Store, queue_only: None) -> None:
    assert detached("study", "create", "--dataset", "x", "--items", 3, "--overlap", 1) == 1
    assert count_rows(sqlite_store, "job") == 0


def test_a_pull_is_a_job(
    sqlite_store: Store, queue_only: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the Hub's answers in a folder; the real protocol is tested with the command."""
    from curation.hub import pull as pulling

    class Api:
        def dataset_info(self, repo: str, revision: str | None) -> Any:
            return type("Info", (), {"sha": "abc", "card_data": None})

        def snapshot_download(self, repo: str, *, local_dir: str, **_: Any) -> None:
            rows = '{"query_id": "q1", "query": "who", "passage_id": "p1", "passage": "me"}\n'
            (Path(local_dir) / "rows.jsonl").write_text(rows)

    monkeypatch.setattr(pulling, "reading_api", Api)
    assert detached("hub", "pull", "some/data", "--dataset", "two words", "--licence", "mit") == 0
    ended = run_queued(sqlite_store)
    assert ended.status == "done" and ended.result is not None, ended.error
    assert (ended.result["imported"], ended.result["commit"]) == (1, "abc")
    assert count_rows(sqlite_store, "pair") == 1


@pytest.fixture
def run_id(sqlite_store: Store) -> int:
    return offline_run(sqlite_store)


def test_a_joining_worker_does_not_wait_for_the_slot_of_the_run(
    sqlite_store: Store, run_id: int, queue_only: None, capsys: Any
) -> None:
    with sqlite_store.write() as session:
        first = jobs.enqueue_job(session, "curate", {"run_id": run_id}).id
        other = jobs.enqueue_job(session, "curate", {"run_id": run_id}).id
        session.commit()
    assert detached("curate", "--worker", run_id, "--concurrency", 2) == 0
    places = {place.name: place for place in slots(gpus=[])}
    claimed = {}
    with sqlite_store.write() as session:
        for name in ("curation", "joined1", "joined2"):
            place = places[name]
            job = jobs.claim_job(session, kinds=place.kinds, slot=name, joins=place.joins)
            claimed[name] = None if job is None else job.id
        assert jobs.get_job(session, other).status == "queued"
        joined = jobs.get_job(session, claimed["joined1"] or 0)
        assert joined.config == {"run_id": run_id, "concurrency": 2, "joins": True}
    assert claimed == {"curation": first, "joined1": other + 1, "joined2": None}
    assert sum(place.joins for place in places.values()) == MAX_JOINED


def test_more_workers_than_a_machine_has_places_for_are_refused_or_wait_for_another(
    store: Store, queue_only: None, capsys: Any
) -> None:
    """512 were accepted, and eight began. Other machines take further ones of a PostgreSQL."""
    run_id = offline_run(store)
    too_many = ("join", MAX_JOINED + 1), ("resume", MAX_JOINED + 2)
    for word, workers in too_many:
        code = detached("runs", word, run_id, "--workers", workers)
        assert code == store.is_sqlite
        assert (f"start {workers - 1} at most" in capsys.readouterr().err) == store.is_sqlite
    if store.is_sqlite:
        assert count_rows(store, "job") == 0
        assert detached("runs", "resume", run_id, "--workers", 4) == 0
        assert detached("runs", "join", run_id, "--workers", MAX_JOINED - 2) == 1, "three joined"
        assert f"start {MAX_JOINED - 3} at most" in capsys.readouterr().err
        assert detached("runs", "join", run_id, "--workers", MAX_JOINED - 3) == 0
        assert detached("runs", "join", run_id) == 1
        assert "wait until one of them has ended" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["status"])
    assert f"one of the {MAX_JOINED} places of a machine" in capsys.readouterr().out


@pytest.mark.long
def test_the_supervisor_runs_a_joining_worker_beside_the_first(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "ENTRY", "toy_jobs")
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    with sqlite_store.write() as session:
        ids = [
            jobs.enqueue_job(session, "curate", {"steps": 60} | more).id
            for more in ({}, {"joins": True}, {"joins": True}, {})
        ]
        session.commit()
    supervise(sqlite_store, idle_seconds=0.5, places=slots(gpus=[]))
    with sqlite_store.read() as session:
        rows = [jobs.get_job(session, one) for one in ids]
    assert [row.slot for row in rows] == ["curation", "joined1", "joined2", "curation"]
    starts = [row.started_at for row in rows]
    end = rows[0].finished_at
    assert end is not None and all(start is not None for start in starts)
    assert starts[1] < end and starts[2] < end <= starts[3]  # type: ignore[operator]


def test_the_workers_of_a_run_are_jobs_of_their_own(sqlite_store: Store, queue_only: None) -> None:
    add_dataset(sqlite_store, pairs=3)
    asked = ("runs", "create", "small", "--provider", "offline", "--fail-fast")
    assert detached(*asked, "--workers", 3) == 0
    assert detached("runs", "join", 1, "--workers", 2) == 0
    with sqlite_store.read() as session:
        rows = sorted(jobs.list_jobs(session), key=lambda job: job.id)
    first, patience = {"run_id": 1, "workers": 3}, {"fail_fast": True}
    assert [job.config for job in rows] == [
        first | patience,
        *[{"run_id": 1, "joins": True} | patience] * 2,
        {"run_id": 1, "workers": 2, "joins": True},
        {"run_id": 1, "joins": True},
    ]


def test_a_launch_reports_the_workers_that_its_concurrency_leaves_idle(
    sqlite_store: Store, queue_only: None, inf: Callable[..., Ran], capsys: Any
) -> None:
    """Queued, joined and in the foreground, in text and in JSON."""
    add_dataset(sqlite_store, pairs=3)
    start = ("runs", "create", "small", "--provider", "offline", "--concurrency", 2, "--workers")
    assert detached(*start, 3, "--json") == 0
    assert json.loads(capsys.readouterr().out)["idle"].startswith("1 of 3 workers idle")
    assert detached(*start, 2, "--json") == 0
    assert "idle" not in json.loads(capsys.readouterr().out)
    with sqlite_store.write() as session:
        for owner in ("one", "two"):
            add_worker(session, 2, owner)
        session.commit()
    assert detached("runs", "join", 2) == 0
    assert "1 of 3 workers idle" in capsys.readouterr().out
    assert "1 of 3 workers idle" in inf(*start, 3).out
    assert json.loads(inf(*start, 3, "--json").out)["idle"].startswith("1 of 3 workers idle")


def silence(store: Store, job_id: int) -> None:
    """Mark a job lost as if it had not beaten for a minute."""
    with store.write() as session:
        job = jobs.get_job(session, job_id)
        assert job.heartbeat_at is not None
        job.heartbeat_at -= timedelta(seconds=60)
        session.flush()
        assert jobs.mark_lost_jobs(session) == [job_id]
        session.commit()


@pytest.mark.long
@pytest.mark.parametrize(
    ("workers", "sent"),
    [(3, signal.SIGKILL), (1, signal.SIGKILL), (1, signal.SIGTERM), (1, None)],
)
def test_a_worker_that_is_ended_from_outside_is_replaced_and_the_run_ends_by_itself(
    sqlite_store: Store,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
    sent: signal.Signals | None,
) -> None:
    """SIGTERM is what a machine sends that shuts down; None: it lives and is taken for dead, as
    after a sleep. Nobody stopped the run."""
    add_dataset(sqlite_store, pairs=40)
    calls = 40 * 8
    with Server() as server, ThreadPoolExecutor(1) as pool:
        server.hold_after = 30
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setattr(supervisors, "ensure_taken", lambda store, launcher: None)
        asked = ("runs", "create", "small", "--provider", "openai", "--set", "model=small")
        assert detached(*asked, "--workers", workers, "--concurrency", 6) == 0
        supervised = pool.submit(supervise, sqlite_store, idle_seconds=2.0, places=slots(gpus=[]))

        def working() -> list[Job]:
            with sqlite_store.read() as session:
                count = session.scalar(select(func.count()).select_from(RunWorker))
                return jobs.list_jobs(session) if count == workers else []

        found = wait_for(working)
        for victim in found:  # the first one, too, each on its own
            if sent is None:
                silence(sqlite_store, victim.id)
            else:
                os.kill(victim.pid or 0, sent)
            if sent in (signal.SIGTERM, None):
                server.hold_after = None  # it completes the calls in flight

            def replaced(victim: Job = victim) -> bool:
                with sqlite_store.read() as session:
                    return jobs.get_job(session, victim.id).attempt == 2

            wait_for(replaced)
        server.hold_after = None
        supervised.result(300)
        assert len(server.answered) == calls
        assert server.answered.total() <= calls + workers * 6, "asked again: what was in flight"
    with sqlite_store.read() as session:
        assert get_run(session, 1).status == "done" and funnel(session, 1).finished == 40
        assert {job.status for job in jobs.list_jobs(session)} == {"done"}
