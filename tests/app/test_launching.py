"""Jobs as processes: waiting for one, losing one, stopping one, ending with the parent."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from curation_runs import offline_run
from job_metrics import metric_points
from ray_nodes import IdleRay
from sqlalchemy.engine import make_url
from waiting import until

from app.access.identity import owner
from app.jobs import handed_over, launching, processes, ray_supervisor, supervisor, supervisors
from app.jobs.handed_over import forget, hand_over, with_handed_over
from app.jobs.ray_cluster import environment_of
from app.jobs.ray_supervisor import supervise_ray
from app.jobs.supervisor import slots, supervise, visible_gpus
from app.operations import acting
from app.operations import jobs as operations
from app.operations import runs as runs_operations
from curation.run.closing import RunWorked
from curation.run.engine import curate
from db import machine
from db.errors import BadInput, InfError, Refused
from db.events import list_events
from db.home import home
from db.jobs import jobs
from db.jobs.resources import parts_of
from db.jobs.runner import Cancelled, JobHandle
from db.run.runs import begin_run, reopen_run, stop_run
from db.store.reviving import end_open_jobs
from db.store.store import Store, open_store
from db.tables import Job, utc_now
from db.values import JOB_KINDS

TESTS = Path(__file__).resolve().parent.parent


@pytest.fixture
def toys(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose `curate` jobs are the toys of `tests/toy_jobs.py`."""
    monkeypatch.setattr(processes, "ENTRY", "toy_jobs")
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    return sqlite_store


def status(store: Store, job_id: int) -> str:
    with store.read() as session:
        return jobs.get_job(session, job_id).status


def progress(store: Store, job_id: int) -> str:
    with store.read() as session:
        return jobs.get_job(session, job_id).message


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_foreground_job_gives_its_result_and_its_numbers(toys: Store) -> None:
    seen: list[str] = []
    job = launching.run_in_foreground(
        toys, "curate", {"steps": 12}, actor=owner("me"), watch=lambda job: seen.append(job.message)
    )
    assert job.result is not None and job.result["counted"] == 12
    assert any(message.startswith("step") for message in seen)
    with toys.read() as session:
        losses = [point.value for point in metric_points(session, job.id)]
    assert losses == [1.0 / (step + 1) for step in range(12)]


def test_an_error_of_ours_is_told_in_its_own_words(toys: Store) -> None:
    with pytest.raises(InfError, match=r"line 3 of toys\.jsonl has no `name`: add one"):
        launching.run_in_foreground(toys, "curate", {"ending": "bad"}, actor=owner("me"))


def test_a_crash_is_told_with_its_last_lines(toys: Store) -> None:
    with pytest.raises(InfError, match="ZeroDivisionError: toys divided by none"):
        launching.run_in_foreground(toys, "curate", {"ending": "crash"}, actor=owner("me"))
    with toys.read() as session:
        assert "`jobs logs 1`" in launching.what_to_do(jobs.get_job(session, 1))


def test_a_process_that_is_killed_is_a_lost_job(toys: Store) -> None:
    with pytest.raises(InfError, match="ended with status -9"):
        launching.run_in_foreground(toys, "curate", {"ending": "killed"}, actor=owner("me"))
    assert status(toys, 1) == "lost"


@pytest.mark.long
@pytest.mark.parametrize("dies", ["once", "always"])
def test_the_first_of_several_workers_is_replaced_in_the_foreground_too(
    toys: Store, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    """None of them is special: one that dies again and again fails as they do."""
    config = {"workers": 2} | ({"steps": 30} if dies == "once" else {"ending": "killed"})
    killed: list[int] = []

    def kill(job: Job) -> None:
        if dies == "once" and job.pid and job.message and not killed:
            killed.append(job.pid)
            os.kill(job.pid, signal.SIGKILL)

    with ThreadPoolExecutor(1) as pool:
        supervised = partial(pool.submit, supervise, idle_seconds=3.0, places=slots(gpus=[]))
        monkeypatch.setattr(supervisors, "ensure_taken", lambda store, _: supervised(store))
        wait = partial(
            launching.run_in_foreground, toys, "curate", config, actor=owner("me"), watch=kill
        )
        if dies == "once":
            job = wait()
            assert (job.status, job.attempt, len(killed)) == ("done", 2, 1)
            assert job.result is not None and job.result["counted"] == 30
        else:
            with pytest.raises(InfError) as ended:
                wait()
            assert ended.value.code == "job_keeps_dying"
    assert status(toys, 2) == ("done" if dies == "once" else "failed")


def test_a_cancelled_job_stops_between_two_steps(toys: Store) -> None:
    def cancel_at_once(job) -> None:
        with toys.write() as session:
            jobs.request_stop(session, job.id)
            session.commit()

    with pytest.raises(Cancelled):
        launching.run_in_foreground(
            toys, "curate", {"steps": 600}, actor=owner("me"), watch=cancel_at_once
        )
    assert status(toys, 1) == "cancelled"


def test_a_job_that_does_not_listen_is_ended_after_the_grace(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "STOP_GRACE_SECONDS", 0.5)

    def cancel_at_once(job) -> None:
        if job.pid and not job.stop_requested:
            with toys.write() as session:
                jobs.request_stop(session, job.id)
                session.commit()

    with pytest.raises(Cancelled):
        launching.run_in_foreground(
            toys,
            "curate",
            {"steps": 600, "ending": "deaf"},
            actor=owner("me"),
            watch=cancel_at_once,
        )


@pytest.mark.long
def test_the_job_ends_with_the_command_that_waits_for_it(toys: Store) -> None:
    script = (
        "from app.access.identity import owner\n"
        "from app.jobs import launching, processes; from inf_studio import open_store\n"
        "processes.ENTRY = 'toy_jobs'\n"
        "launching.run_in_foreground(open_store(), 'curate', {'steps': 600}, actor=owner('me'))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])

    def pid() -> int | None:
        with toys.read() as session:
            found = jobs.list_jobs(session)
            return found[0].pid if found else None

    until(pid)
    child = pid()
    assert child is not None and runs(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: not runs(child))


@pytest.mark.long
def test_the_supervisor_takes_queued_jobs_in_order(toys: Store) -> None:
    with toys.write() as session:
        ids = [jobs.enqueue_job(session, "curate", {"steps": 1}).id for _ in range(3)]
        session.commit()
    assert supervise(toys, idle_seconds=0.5) == 3
    with toys.read() as session:
        ended = [jobs.get_job(session, job_id) for job_id in ids]
    assert [job.status for job in ended] == ["done"] * 3
    assert ended[0].finished_at <= ended[1].started_at <= ended[2].started_at


def test_one_supervisor_per_store(toys: Store) -> None:
    lock = supervisors.try_supervisor_lock(toys)
    assert lock is not None
    with pytest.raises(BadInput, match="already runs"):
        supervise(toys, idle_seconds=0)
    os.close(lock)


def test_nothing_is_queued_where_the_home_has_no_locks(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(Refused, match="No locks available") as refused:
        launching.launch(toys, "curate", {"steps": 1}, actor=owner("Ada"))
    assert str(home()) in refused.value.message
    with pytest.raises(Refused, match="No locks available"):
        supervise(toys, idle_seconds=0)
    with toys.read() as session:
        assert jobs.list_jobs(session) == []


def test_nothing_is_queued_where_a_store_elsewhere_is_locked_on_each_machine_alone(
    toys: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts, folder = tmp_path / "mountinfo", tmp_path / "shared"
    mounts.write_text(f"41 21 0:51 / {folder} rw - nfs files:/b rw,local_lock=posix\n")
    monkeypatch.setattr(machine, "MOUNTS", mounts)
    machine.locks_of.cache_clear()
    folder.mkdir()
    shutil.copy(make_url(toys.url).database or "", folder / "inf.db")
    store = open_store(f"sqlite:///{folder}/inf.db")
    with pytest.raises(Refused, match="local_lock=posix") as refused:
        launching.launch(store, "curate", {"steps": 1}, actor=owner("Ada"))
    assert refused.value.code == "folder_without_locks"
    with store.read() as session:
        assert jobs.list_jobs(session) == []
    store.close()
    machine.locks_of.cache_clear()


def test_a_job_whose_supervisor_died_is_shown_as_lost(toys: Store) -> None:
    with toys.write() as session:
        job_id = jobs.enqueue_job(session, "curate", {"steps": 600}).id
        job = jobs.claim_job(session, job_id)
        session.commit()
    child = launching.start_process(toys, job)
    until(lambda: status(toys, job_id) == "running")
    child.kill()
    child.wait()
    with toys.write() as session:
        job = jobs.get_job(session, job_id)
        assert jobs.is_this_process_alive(job) is False
        later = job.heartbeat_at + timedelta(seconds=30)
        assert jobs.mark_lost_jobs(session, now=later) == [job_id]
        session.commit()
    assert status(toys, job_id) == "lost"


def launched(store: Store, monkeypatch: pytest.MonkeyPatch, **config: object) -> int:
    """A job launched with a server and a key of its own; what supervises it has others."""
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://new.example/v1")
    monkeypatch.setenv("LAB_API_KEY", "the-key-of-now")
    job_id = launching.launch(store, "curate", config, actor=owner("me"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://old.example/v1")
    monkeypatch.setenv("LAB_API_KEY", "the-key-of-then")
    return job_id


AS_LAUNCHED = {"url": "http://new.example/v1", "key_length": 14, "other": None}


def started(store: Store, job_id: int) -> "subprocess.Popen[bytes]":
    """The process of a launched job, as an earlier supervisor started it."""
    with store.write() as session:
        job = jobs.claim_job(session, job_id, slot="curation")
        session.commit()
    assert job is not None
    child = launching.start_process(store, job)
    until(lambda: progress(store, job_id).startswith("step"))
    return child


def died(store: Store, child: "subprocess.Popen[bytes]", job_id: int) -> None:
    """Kill the process; its last heartbeat was a minute ago."""
    child.kill()
    child.wait()
    with store.write() as session:
        job = jobs.get_job(session, job_id)
        assert job.heartbeat_at is not None
        job.heartbeat_at -= timedelta(seconds=60)
        session.commit()


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_an_earlier_supervisor_started_is_replaced(
    toys: Store, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    more = {} if workers == 1 else {"joins": True}
    job_id = launched(toys, monkeypatch, steps=40, ending="tells", **more)
    child = started(toys, job_id)
    has_looked, look = threading.Event(), supervisor._inherited

    def looked(store: Store) -> Any:
        found = look(store)
        has_looked.set()
        return found

    monkeypatch.setattr(supervisor, "_inherited", looked)
    thread = threading.Thread(target=supervise, args=(toys,), kwargs={"idle_seconds": 1})
    thread.start()
    assert has_looked.wait(60)
    child.kill()
    child.wait()
    thread.join(60)
    job = launching.job_now(toys, job_id)
    assert (job.status, job.attempt, job.result) == ("done", 2, AS_LAUNCHED)


def held_still(store: Store, job_id: int) -> int:
    """The pid of a job's process that stands still, as in a paused container, for a minute."""
    until(lambda: progress(store, job_id).startswith("step"))
    pid = launching.job_now(store, job_id).pid
    assert pid is not None
    with store.write() as session:
        job = jobs.get_job(session, job_id)
        assert job.heartbeat_at is not None
        job.heartbeat_at -= timedelta(seconds=60)
        session.flush()  # it must not hold the lock of the store when it stops
        os.kill(pid, signal.SIGSTOP)
        session.commit()
    return pid


@pytest.mark.long
def test_a_living_worker_is_not_taken_for_dead_before_it_had_time_to_beat(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a laptop's sleep, where the supervisor or a page may look before it."""
    job_id = launched(toys, monkeypatch, steps=40, ending="tells")
    thread = threading.Thread(target=supervise, args=(toys,), kwargs={"idle_seconds": 1})
    thread.start()
    pid = held_still(toys, job_id)
    try:
        operations.list_some(owner("me"))
        time.sleep(2)
        assert status(toys, job_id) == "running"
    finally:
        os.kill(pid, signal.SIGCONT)
    thread.join(60)
    job = launching.job_now(toys, job_id)
    assert (job.status, job.attempt, job.result) == ("done", 1, AS_LAUNCHED)


@pytest.mark.long
def test_a_living_worker_that_stays_silent_is_killed_and_replaced(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "STOP_GRACE_SECONDS", 0.5)
    job_id = launched(toys, monkeypatch, steps=20, ending="tells")
    thread = threading.Thread(target=supervise, args=(toys,), kwargs={"idle_seconds": 1})
    thread.start()
    pid = held_still(toys, job_id)
    monkeypatch.setattr(jobs, "LOST_AFTER_SECONDS", 2.0)
    thread.join(60)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    job = launching.job_now(toys, job_id)
    assert (job.status, job.attempt, job.result) == ("done", 2, AS_LAUNCHED)


@pytest.mark.long
def test_after_a_reboot_a_run_goes_on_with_the_server_and_key_of_its_launch(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = launched(toys, monkeypatch, steps=10, ending="tells")
    died(toys, started(toys, job_id), job_id)
    supervise(toys, idle_seconds=1)
    job = launching.job_now(toys, job_id)
    assert (job.status, job.attempt, job.result) == ("done", 2, AS_LAUNCHED)
    assert not list((home() / "launched").iterdir())


@pytest.mark.parametrize("why", ["stopped", "run paused", "restored", "nothing left", "no worker"])
def test_a_dead_job_that_nobody_wants_or_whose_key_is_gone_does_not_start_by_itself(
    toys: Store, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    run_id = offline_run(toys)
    job_id = launched(toys, monkeypatch, steps=600, run_id=run_id)
    died(toys, started(toys, job_id), job_id)
    with toys.write() as session:
        job = jobs.get_job(session, job_id)
        if why == "stopped":
            job.stop_requested = True
        elif why == "run paused":
            stop_run(session, run_id)
        elif why == "restored":
            end_open_jobs(session, when="the backup was made")
        elif why == "no worker":
            job.kind = "train"
        session.commit()
    if why == "nothing left":
        forget(job)
    supervise(toys, idle_seconds=1)
    job = launching.job_now(toys, job_id)
    assert (job.status, job.attempt) == ("lost", 1)
    assert f"`jobs resume {job_id}`" in launching.what_to_do(job)
    assert not list((home() / "launched").iterdir())


@pytest.mark.parametrize("cancel", [False, True])
def test_a_run_that_is_stopped_is_begun_again_by_none_of_its_waiting_workers(
    toys: Store, monkeypatch: pytest.MonkeyPatch, cancel: bool
) -> None:
    """Of fifty workers forty waited for a place: each that a pause freed was theirs."""
    monkeypatch.setattr(acting, "open_store", lambda: toys)
    run_id = offline_run(toys)
    with toys.write() as session:
        waits = jobs.enqueue_job(session, "curate", {"run_id": run_id, "joins": True}).id
        session.commit()
    runs_operations.stop(owner("me"), run_id, cancel=cancel)
    assert status(toys, waits) == "cancelled"
    with toys.write() as session:  # one that had its place, and no process yet
        stopped = "cancelled" if cancel else "paused"
        assert begin_run(session, run_id, joins=True).status == stopped
        with session.begin_nested() as tried:
            reopen_run(session, run_id)
            assert begin_run(session, run_id, joins=True).status == "running"
            tried.rollback()
        late = jobs.enqueue_job(session, "curate", {"run_id": run_id, "joins": True}).id
        claimed = jobs.claim_job(session, late)
        session.commit()
    assert claimed is not None
    worked = curate(JobHandle(toys, claimed.id, claimed.attempt))
    assert isinstance(worked, RunWorked) and worked.calls.made == 0
    assert worked.status == stopped


@pytest.mark.parametrize("code", [-15, -11, 1])
@pytest.mark.parametrize(("kind", "ends"), [("curate", "lost"), ("train", "failed")])
def test_a_worker_whose_process_ends_without_a_report_is_lost(
    toys: Store, kind: str, ends: str, code: int
) -> None:
    """-15: while it imports; 1: SIGTERM while the store is away."""
    with toys.write() as session:
        job = jobs.claim_job(session, jobs.enqueue_job(session, kind, {}).id)
        session.commit()
    assert job is not None
    assert launching.close_row(toys, job, code).status == ends


def test_what_another_store_of_this_home_left_stays(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = launched(toys, monkeypatch, steps=600)
    with toys.write() as session:
        job = jobs.get_job(session, job_id)
        job.status, job.error_code, job.created_at = "lost", "job_silent", utc_now()
        session.commit()
    supervise(toys, idle_seconds=0.5)
    assert status(toys, job_id) == "lost" and len(list((home() / "launched").iterdir())) == 1


@pytest.mark.long
def test_a_worker_that_dies_at_once_again_and_again_fails_for_good(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = launched(toys, monkeypatch, steps=1, ending="killed")
    for _ in range(2):  # the next supervisor does not begin anew
        supervise(toys, idle_seconds=1)
        job = launching.job_now(toys, job_id)
        assert (job.status, job.attempt, job.error_code) == ("failed", 5, "job_keeps_dying")
    assert "died 5 times" in (job.error or "") and "too little memory" in (job.remedy or "")
    assert not list((home() / "launched").iterdir())


def queued_elsewhere(store: Store) -> int:
    with store.write() as session:
        job_id = jobs.enqueue_job(session, "curate", {}, launcher="http://head:8265").id
        session.commit()
    return job_id


def dies(store: Store, job_id: int, done: int) -> bool:
    """Whether a job that dies with so much done is queued again."""
    with store.write() as session:
        job = jobs.claim_job(session, job_id)
        assert job is not None
        job.done = done
        jobs.finish_job(session, job_id, job.attempt, "lost", error=jobs.SILENT)
        session.commit()
    return launching.settle(store, job_id)


def test_a_worker_that_gets_on_between_its_deaths_is_replaced_without_end(toys: Store) -> None:
    job_id = queued_elsewhere(toys)
    assert all(dies(toys, job_id, done) for done in range(20))
    again = [dies(toys, job_id, done) for done in (3, 19, 18, 19)]  # no progress: back and forth
    assert again == [True, True, True, False] and status(toys, job_id) == "failed"


def test_the_deaths_of_a_job_that_a_person_resumes_are_counted_anew(toys: Store) -> None:
    job_id = queued_elsewhere(toys)
    for _ in range(2):
        assert [dies(toys, job_id, 7) for _ in range(5)] == [True] * 4 + [False]
        assert launching.job_now(toys, job_id).error_code == "job_keeps_dying"
        with toys.write() as session:
            jobs.requeue_job(session, job_id)
            session.commit()


def test_a_worker_whose_deaths_take_its_supervisor_along_fails_for_good_too(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where memory runs out for the machine: each supervisor begins after a death."""
    job_id = launched(toys, monkeypatch, steps=600)
    for attempt in range(1, 6):
        died(toys, started(toys, job_id), job_id)
        monkeypatch.setattr(supervisor, "_start", lambda *_: None)
        with toys.write() as session:
            jobs.get_job(session, job_id).done = 0
            jobs.mark_lost_jobs(session)
            session.commit()
        supervise(toys, idle_seconds=0.1)
        job = launching.job_now(toys, job_id)
        assert (job.status, job.attempt) == ("queued" if attempt < 5 else "failed", attempt)
    assert job.error_code == "job_keeps_dying"


def test_a_worker_that_dies_on_the_cluster_is_replaced_as_often_as_its_run_goes_on(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_supervisor, "POLL_SECONDS", 0.02)

    def dies(job: Job) -> bool:
        """The first after more was done each time, until it works; the second at once."""
        with toys.write() as session:
            here = jobs.get_job(session, job.id)
            if job.id == going:
                here.done = job.attempt
            if job.attempt == 9:
                jobs.finish_job(session, job.id, 9, "done")
            session.commit()
        return True

    cluster = IdleRay(dies)
    with toys.write() as session:
        going, dying, stopped = (
            jobs.enqueue_job(session, "curate", {}, launcher=cluster.address).id for _ in range(3)
        )
        jobs.claim_job(session, stopped)
        jobs.finish_job(session, stopped, 1, "lost", error=jobs.SILENT)
        jobs.get_job(session, stopped).stop_requested = True
        session.commit()
    for _ in range(2):  # the next supervisor does not begin anew
        supervise_ray(toys, cluster, idle_seconds=0.5)
        found = [launching.job_now(toys, each) for each in (going, dying, stopped)]
        ended = [("done", 9), ("failed", 5), ("lost", 1)]
        assert [(job.status, job.attempt) for job in found] == ended
    assert found[1].error_code == "job_keeps_dying" and "its node died" in (found[1].error or "")
    assert Counter(job_id for job_id, _ in cluster.submitted) == {going: 9, dying: 5}


def test_jobs_that_were_lost_long_ago_do_not_start_again_by_themselves(toys: Store) -> None:
    """Where an earlier version gave them up, after four restarts: each new one may cost money."""
    cluster = IdleRay()
    with toys.write() as session:
        job_id = jobs.enqueue_job(session, "curate", {}, launcher=cluster.address).id
        job = jobs.claim_job(session, job_id)
        assert job is not None
        job.attempt = 5
        jobs.finish_job(session, job_id, 5, "lost", error=jobs.SILENT)
        jobs.get_job(session, job_id).finished_at = utc_now() - timedelta(hours=25)
        session.commit()
    assert supervise_ray(toys, cluster, idle_seconds=0) == 0
    assert (status(toys, job_id), cluster.submitted) == ("lost", [])


def test_the_clusters_supervisor_does_not_end_between_a_death_and_the_next_attempt(
    toys: Store,
) -> None:
    """On a loaded machine ending the lost attempt took longer than it waits for work."""

    def ends(job: Job) -> bool:
        with toys.write() as session:
            jobs.finish_job(session, job.id, job.attempt, "done")
            session.commit()
        return True

    cluster = IdleRay(ends)
    with toys.write() as session:
        job_id = jobs.enqueue_job(session, "train", {}, launcher=cluster.address).id
        jobs.claim_job(session, job_id)
        jobs.finish_job(session, job_id, 1, "lost", error=jobs.SILENT)
        session.commit()
    assert supervise_ray(toys, cluster, idle_seconds=0) == 1
    assert (status(toys, job_id), cluster.submitted) == ("done", [(job_id, 2)])


def test_a_supervisor_closes_only_the_attempt_that_it_watched(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process was taken for lost, and the job runs again elsewhere, when the process ends."""
    job_id = launched(toys, monkeypatch, steps=600)
    child = started(toys, job_id)
    watched = supervisor.Running(job_id, 1, child.pid, child)
    with toys.write() as session:
        jobs.finish_job(session, job_id, 1, "lost", error=jobs.SILENT)
        jobs.requeue_job(session, job_id)
        jobs.claim_job(session, job_id)
        session.commit()
    child.kill()
    until(lambda: child.poll() is not None)
    assert supervisor._is_over(toys, watched)
    assert (status(toys, job_id), launching.job_now(toys, job_id).attempt) == ("running", 2)


@pytest.mark.long
def test_a_job_waits_for_its_own_slot_only(toys: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with toys.write() as session:
        first, second, export = (
            jobs.enqueue_job(session, kind, {"steps": steps}).id
            for kind, steps in (("train", 10), ("train", 1), ("export", 1))
        )
        session.commit()
    assert supervise(toys, idle_seconds=0.5, places=slots(gpus=[])) == 3
    with toys.read() as session:
        ended = {job.id: job for job in jobs.list_jobs(session)}
    assert {job.status for job in ended.values()} == {"done"}
    assert ended[second].started_at >= ended[first].finished_at
    assert ended[export].started_at < ended[first].finished_at
    assert (ended[first].slot, ended[export].slot) == ("models", "files")


def test_two_trainings_never_see_the_same_gpu_and_nothing_else_sees_one() -> None:
    found = slots(gpus=["0", "GPU-7"])
    seen = {slot.name: slot.environment.get("CUDA_VISIBLE_DEVICES") for slot in found}
    joined = dict.fromkeys((slot.name for slot in found if slot.joins), "")
    assert seen == {"files": "", "curation": "", "gpu0": "0", "gpu1": "GPU-7"} | joined
    assert {kind for slot in found for kind in slot.kinds} == set(JOB_KINDS)


def test_every_launch_cancel_and_resume_is_in_the_audit_log_with_who_did_it(
    toys: Store, monkeypatch: pytest.MonkeyPatch, inf: Callable[..., Any]
) -> None:
    monkeypatch.setattr(supervisors, "ensure_supervisor", lambda store: None)
    queued = launching.launch(toys, "export", {}, actor=owner("cora"))
    run = launching.run_in_foreground(toys, "curate", {"steps": 1}, actor=owner("cli:rita"))
    monkeypatch.setattr(supervisors, "ensure_taken", lambda store, launcher: None)
    for action in ("cancel", "resume"):
        assert inf("jobs", action, queued).code == 0
    with toys.read() as session:
        rows, _ = list_events(session)
    told = [(row.actor, row.name, row.subject, row.data) for row in reversed(rows)]
    assert told[:2] == [
        ("cora", "job.launch", f"job {queued}", {"kind": "export", "via": "command"}),
        ("cli:rita", "job.launch", f"job {run.id}", {"kind": "curate", "via": "command"}),
    ]
    assert [row[1:3] for row in told[2:]] == [
        ("job.cancel", f"job {queued}"),
        ("job.resume", f"job {queued}"),
    ]
    assert all(row[0].startswith("cli:") for row in told[2:])


@pytest.mark.long
def test_two_launches_for_one_gpu_queue_and_both_see_it_alone(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisors, "ensure_supervisor", lambda store: None)
    first, second, export = (
        launching.launch(toys, kind, {"steps": 3}, actor=owner("me"))
        for kind in ("train", "train", "export")
    )
    assert supervise(toys, idle_seconds=0.5, places=slots(gpus=["GPU-7"])) == 3
    with toys.read() as session:
        ended = {job.id: job for job in jobs.list_jobs(session)}
    assert {job.status for job in ended.values()} == {"done"}
    assert ended[second].started_at >= ended[first].finished_at
    assert [ended[n].slot for n in (first, second, export)] == ["gpu0", "gpu0", "files"]
    seen = [ended[n].result["gpu"] for n in (first, second, export)]
    assert seen == ["GPU-7", "GPU-7", ""]


@pytest.mark.parametrize(
    ("visible", "gpus"), [("", []), ("-1", []), ("2,3", ["2", "3"]), ("GPU-a", ["GPU-a"])]
)
def test_only_gpus_this_machine_may_use_are_slots(
    monkeypatch: pytest.MonkeyPatch, visible: str, gpus: list[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert visible_gpus() == gpus


@pytest.mark.long
def test_a_new_supervisor_finds_the_job_that_the_last_one_left_running(toys: Store) -> None:
    with toys.write() as session:
        first = jobs.enqueue_job(session, "curate", {"steps": 25}).id
        job = jobs.claim_job(session, first, slot="curation")
        second = jobs.enqueue_job(session, "curate", {"steps": 1}).id
        session.commit()
    child = launching.start_process(toys, job)
    assert supervise(toys, idle_seconds=0.5) == 1
    assert child.wait() == 0
    with toys.read() as session:
        left, waited = jobs.get_job(session, first), jobs.get_job(session, second)
    assert (left.status, waited.status) == ("done", "done")
    assert waited.started_at >= left.finished_at


def test_stopping_a_job_ends_every_process_it_started(toys: Store) -> None:
    with toys.write() as session:
        job_id = jobs.enqueue_job(session, "curate", {"steps": 600, "ending": "parent"}).id
        session.commit()

    def cancel_when_it_has_a_child() -> None:
        until(lambda: progress(toys, job_id).startswith("child"))
        with toys.write() as session:
            jobs.request_stop(session, job_id)
            session.commit()

    helper = threading.Thread(target=cancel_when_it_has_a_child)
    helper.start()
    supervise(toys, idle_seconds=0.5)
    helper.join()
    assert status(toys, job_id) == "cancelled"
    assert not runs(int(progress(toys, job_id).split()[1]))


def test_a_log_folder_that_cannot_be_written_fails_the_job_in_words(
    toys: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened = Path.open

    def full(path: Path, mode: str = "r", *rest: object, **more: object) -> object:
        if mode.startswith(("a", "w")):
            raise OSError(28, "No space left on device")
        return opened(path, mode, *rest, **more)

    with toys.write() as session:
        job_id = jobs.enqueue_job(session, "curate", {"steps": 1}).id
        session.commit()
    monkeypatch.setattr(Path, "open", full)
    supervise(toys, idle_seconds=0.5)
    with toys.read() as session:
        job = jobs.get_job(session, job_id)
    assert job.status == "failed"
    assert "No space left on device" in (job.error or "")
    assert "`jobs resume 1`" in launching.what_to_do(job)


def test_a_heartbeat_says_what_the_job_uses(toys: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    job = launching.run_in_foreground(toys, "curate", {"steps": 12}, actor=owner("me"))
    (part,) = parts_of(job.resources)
    assert part["memory_mb"] > 10 and part["cpu_seconds"] > 0
    assert part["pid"] == job.pid


def test_a_queued_job_has_the_servers_and_keys_of_who_launched_it_not_the_supervisors(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://new.example/v1")
    monkeypatch.setenv("LAB_API_KEY", "the-key-of-now")
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)  # below, in this process
    job_id = launching.launch(toys, "curate", {"ending": "tells"}, actor=owner("me"))
    (left,) = (home() / "launched").iterdir()
    assert left.stat().st_mode & 0o777 == 0o600 and b"the-key-of-now" not in left.read_bytes()
    # the supervisor's own environment is of days ago
    monkeypatch.setenv("OPENAI_BASE_URL", "http://old.example/v1")
    for _ in range(2):  # a worker that was killed is started again
        again = with_handed_over(launching.job_now(toys, job_id), os.environ)
        assert again["OPENAI_BASE_URL"] == "http://new.example/v1"
    monkeypatch.setenv("LAB_API_KEY", "the-key-of-then")
    monkeypatch.setenv("OPENAI_API_KEY", "another-key")
    supervise(toys, idle_seconds=0.5)
    with toys.read() as session:
        result = jobs.get_job(session, job_id).result
    assert result == {"url": "http://new.example/v1", "key_length": 14, "other": None}
    assert not left.exists()


def test_a_job_on_a_cluster_has_its_launchers_server_and_no_key(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor, and the nodes, have the variables of days ago."""
    sent: list[dict[str, str]] = []

    def note(job: Job) -> bool:
        sent.append(environment_of(toys, job))
        with toys.write() as session:
            jobs.finish_job(session, job.id, job.attempt, "done")
            session.commit()
        return True

    cluster = IdleRay(note)
    monkeypatch.setenv("INF_RAY_ADDRESS", cluster.address)
    monkeypatch.setenv("HF_TOKEN", "a-token-of-now")
    launched(toys, monkeypatch)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://ann:open-sesame@new.example/v1")
    launching.launch(toys, "curate", {}, actor=owner("me"))
    assert b"-of-now" not in b"".join(each.read_bytes() for each in (home() / "launched").iterdir())
    supervise_ray(toys, cluster, idle_seconds=0.5)
    first, second = sent
    assert first["OPENAI_BASE_URL"] == "http://new.example/v1"
    assert first["AZURE_OPENAI_ENDPOINT"] == "", "a node's own would come first"
    assert not {"HF_TOKEN", "LAB_API_KEY", "OPENAI_API_KEY"} & (first.keys() | second.keys())
    assert "OPENAI_BASE_URL" not in second, "it has a password"
    assert not list((home() / "launched").iterdir())


def test_what_a_client_reads_besides_is_handed_over_and_stays_on_this_machine(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor would bill another organization, and go through another proxy."""
    of_launch = {
        "OPENAI_ORG_ID": "org-now",
        "OPENAI_PROJECT_ID": "project-now",
        "https_proxy": "http://ann:open-sesame@proxy.example",
        "SSL_CERT_FILE": "/etc/now.pem",
    }
    for name, value in of_launch.items():
        monkeypatch.setenv(name, value)
    here = launching.job_now(toys, launched(toys, monkeypatch))
    monkeypatch.setenv("INF_RAY_ADDRESS", IdleRay.address)
    there = launching.job_now(toys, launched(toys, monkeypatch))
    left = [each.read_bytes() for each in (home() / "launched").iterdir()]
    assert len(left) == 2 and b"open-sesame" not in b"".join(left)
    found = with_handed_over(here, dict.fromkeys(of_launch, "of then"))
    assert {name: found[name] for name in of_launch} == of_launch
    assert handed_over.sent_to_cluster(there)["OPENAI_ORG_ID"] == "org-now"
    assert not {"https_proxy", "SSL_CERT_FILE"} & handed_over.sent_to_cluster(there).keys()


def test_whoever_joins_a_clusters_run_here_has_its_own_key(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_RAY_ADDRESS", IdleRay.address)
    there = launching.job_now(toys, launched(toys, monkeypatch))
    monkeypatch.delenv("INF_RAY_ADDRESS")
    here = launching.job_now(toys, launched(toys, monkeypatch))
    with toys.write() as session:
        hand_over(session, here, like=[there])
    assert with_handed_over(here, {})["LAB_API_KEY"] == "the-key-of-then"


@pytest.mark.long
def test_what_an_earlier_version_left_is_read_or_deleted_and_other_files_are_passed_over(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It named files by the job's id alone."""
    over, same = launched(toys, monkeypatch, steps=1), launched(toys, monkeypatch, steps=1)
    supervise(toys, idle_seconds=0.5)
    ended = launching.job_now(toys, over).finished_at
    assert ended is not None
    job_id = launched(toys, monkeypatch, ending="tells")
    (left,) = (home() / "launched").iterdir()
    for each, written in ((over, ended.timestamp()), (same, time.time()), (job_id + 1, 0)):
        (left.parent / f"job-{each}.json").write_bytes(left.read_bytes())
        os.utime(left.parent / f"job-{each}.json", (written, written))
    left.rename(left.parent / f"job-{job_id}.json")
    (left.parent / "job-x-y.json").touch()
    supervise(toys, idle_seconds=0.5)
    assert launching.job_now(toys, job_id).result == AS_LAUNCHED
    names = {path.name for path in left.parent.iterdir()}
    others = {f"job-{same}.json", f"job-{job_id + 1}.json", "job-x-y.json"}
    assert names == others, "of the same number in another store, of none here, and nobody's"


def test_whoever_joins_a_worker_that_ends_meanwhile_leaves_its_own(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = launching.job_now(toys, launched(toys, monkeypatch, steps=1))
    forget(first)
    second = launching.job_now(toys, launched(toys, monkeypatch, steps=1))
    monkeypatch.setattr(handed_over, "was_left", lambda job: True)
    with toys.write() as session:
        hand_over(session, second, like=[first])
    assert with_handed_over(second, {})["OPENAI_BASE_URL"] == "http://old.example/v1"


def test_whoever_joins_a_run_in_the_foreground_has_its_server_and_key(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = offline_run(toys)
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)
    monkeypatch.setenv("LAB_API_KEY", "the-key-of-now")
    joined: list[int] = []

    def join(job: Job) -> None:
        if not joined:
            monkeypatch.setenv("LAB_API_KEY", "another")
            config = {"run_id": run_id, "joins": True}
            joined.append(launching.launch(toys, "curate", config, actor=owner("me")))

    config = {"steps": 5, "run_id": run_id}
    job = launching.run_in_foreground(toys, "curate", config, actor=owner("me"), watch=join)
    second = launching.job_now(toys, joined[0])
    assert with_handed_over(second, {})["LAB_API_KEY"] == "the-key-of-now"
    assert not handed_over.was_left(job)


def test_a_foreground_job_whose_command_was_killed_does_not_start_again_by_itself(
    toys: Store,
) -> None:
    with toys.write() as session:
        job = jobs.claim_job(session, jobs.enqueue_job(session, "curate", {}).id)
        assert job is not None
        hand_over(session, job)
        jobs.finish_job(session, job.id, 1, "lost", error=jobs.SILENT)
        session.commit()
    supervise(toys, idle_seconds=0.5)
    assert status(toys, job.id) == "lost" and not handed_over.was_left(job)


def test_whoever_waits_for_a_job_waits_for_the_store_too(
    toys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)
    job_id = launching.launch(toys, "curate", {"ending": "tells"}, actor=owner("me"))
    looks, read = 0, toys.read

    def away_twice() -> Any:
        nonlocal looks
        looks += 1
        if looks <= 2:
            raise InfError("the store is away", "wait", code="store_unreachable")
        return read()

    def end(job: Job) -> None:
        with toys.write() as session:
            session.get_one(Job, job.id).status = "done"
            session.commit()

    monkeypatch.setattr(toys, "read", away_twice)
    assert launching.wait_for(toys, job_id, 60, watch=end).status == "done" and looks > 2


@pytest.mark.parametrize("how", ["it comes back", "another Ctrl-C", "fail fast"])
@pytest.mark.parametrize("is_here", [True, False], ids=["foreground", "elsewhere"])
def test_a_stop_while_the_store_is_away_is_stored_when_it_is_back_or_named_as_not_stored(
    toys: Store, monkeypatch: pytest.MonkeyPatch, how: str, is_here: bool
) -> None:
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)
    write, tries, shown = toys.write, 0, list[str]()

    def away() -> Any:
        nonlocal tries
        tries += 1
        if how == "it comes back" and tries > 3:
            monkeypatch.setattr(toys, "write", write)
            return write()
        raise InfError("the store is away", "wait", code="store_unreachable")

    def watch(job: Job) -> None:
        shown.append(job.message)
        waits = "waiting for the store" in job.message
        is_first = toys.write != away and not tries and (not is_here or job.pid is not None)
        if is_first:
            monkeypatch.setattr(toys, "write", away)
        if is_first or (waits and how == "another Ctrl-C"):
            raise KeyboardInterrupt

    config = {"steps": 600, "fail_fast": how == "fail fast", "patience_minutes": 1}
    with pytest.raises(Cancelled) as ended:
        if is_here:
            launching.run_in_foreground(toys, "curate", config, actor=owner("me"), watch=watch)
        else:
            job_id = launching.launch(toys, "curate", config, actor=owner("me"))
            patience = 0 if how == "fail fast" else 60
            launching.wait_for(toys, job_id, patience, watch=watch)
    if how == "it comes back":
        assert status(toys, 1) == "cancelled"
        assert any("the stop is stored when it is back" in each for each in shown)
    else:
        assert ended.value.code == "stop_not_stored" and "`jobs cancel 1`" in str(ended.value)


@pytest.mark.parametrize("fail_fast", [True, False])
def test_a_command_that_waits_for_a_clusters_job_ends_with_the_store_or_shows_that_it_waits(
    toys: Store, monkeypatch: pytest.MonkeyPatch, fail_fast: bool
) -> None:
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)
    monkeypatch.setenv("INF_RAY_ADDRESS", IdleRay.address)
    read, shown, away_from = toys.read, [], 3
    monkeypatch.setattr(acting, "open_store", lambda: toys)

    def away() -> Any:
        nonlocal away_from
        away_from -= 1
        if away_from in range(-4, 0):
            raise InfError("the store is away", "wait", code="store_unreachable")
        return read()

    def watch(job: Job) -> None:
        shown.append(job.message)
        if away_from < -4:
            with toys.write() as session:
                session.get_one(Job, job.id).status = "done"
                session.commit()

    monkeypatch.setattr(toys, "read", away)
    config = {"fail_fast": True} if fail_fast else {"patience_minutes": 1}
    began = time.monotonic()
    with pytest.raises(InfError, match="away") if fail_fast else nullcontext():
        acting.in_foreground(owner("me"), "curate", config, watch=watch)
    waited = [line for line in shown if re.match("waiting for the store since .*next attemp", line)]
    assert len(waited) == (0 if fail_fast else 4) and time.monotonic() - began < 30
