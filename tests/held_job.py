"""Holding a job's process still, so that a test can act while it runs, however fast it is."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from db.errors import Refused
from db.jobs import jobs
from db.store.store import Store
from db.tables import Job

WAIT_SECONDS = 240
GAP_SECONDS = 0.02


def wait_for_steps(store: Store, job_id: int, least: int) -> Job:
    """Until the job has stored so many numbers of its loss, then its process is stopped (SIGSTOP).

    The writer's lock is held nearly all the time, so that the job cannot run away, and while the
    process is stopped, so that it does not stop with the lock in its own hand.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        with store.write() as session:
            session.connection()
            job = jobs.get_job(session, job_id)
            points = jobs.metric_series(session, [job_id], names=("loss",)).get(job_id, {})
            if len(points.get("loss", [])) >= least:
                assert job.status == "running" and job.pid, f"too late: it is {job.status}"
                os.kill(job.pid, signal.SIGSTOP)
                return job
            assert job.status not in jobs.OVER, f"it ended before: {job.error}"
        time.sleep(GAP_SECONDS)
    raise AssertionError(f"job {job_id} never stored {least} losses")


def next_training_held(store: Store, least: int) -> "Future[Job]":
    """The next training to begin, stopped after `least` steps; the waiting begins now.

    It waits in a thread: a page that is drawn slowly must not let the training run to its end.
    """
    with store.read() as session:
        known = {job.id for job in jobs.list_jobs(session, kind="train")}

    def wait() -> Job:
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            with store.read() as session:
                found = [
                    job.id
                    for job in jobs.list_jobs(session, kind="train", statuses=("running",))
                    if job.id not in known
                ]
            if found:
                return wait_for_steps(store, found[0], least)
            time.sleep(GAP_SECONDS)
        raise AssertionError("no training began")

    pool = ThreadPoolExecutor(1)
    held = pool.submit(wait)
    pool.shutdown(wait=False)
    return held


@contextmanager
def held_still(store: Store, job_id: int, *, least: int) -> Iterator[Job]:
    """The job's process stopped after `least` steps, and kept so."""
    with kept_still(store, wait_for_steps(store, job_id, least)) as job:
        yield job


@contextmanager
def kept_still(store: Store, job: Job) -> Iterator[Job]:
    """A stopped job's heart is kept beating by us.

    At the end it goes on, once it has been told to stop where that was asked for.
    """
    assert job.pid
    over = threading.Event()
    beating = threading.Thread(target=_beat_until, args=(store, job, over))
    beating.start()
    try:
        yield job
        _wait_until_told(store, job)
    finally:
        os.kill(job.pid, signal.SIGCONT)
        over.set()
        beating.join()


def _beat_until(store: Store, job: Job, over: threading.Event) -> None:
    while not over.wait(1.0):
        with store.write() as session:
            try:
                jobs.beat(session, job.id, job.attempt)
            except Refused:
                return
            session.commit()


def _wait_until_told(store: Store, job: Job) -> None:
    """Until the supervisor's SIGTERM waits for the process, where a stop was asked for."""
    with store.read() as session:
        asked = jobs.get_job(session, job.id).stop_requested
    deadline = time.monotonic() + WAIT_SECONDS
    while asked and not _is_pending(job.pid or 0, signal.SIGTERM) and time.monotonic() < deadline:
        time.sleep(0.05)


def _is_pending(pid: int, number: signal.Signals) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    pending = next(line for line in lines if line.startswith("ShdPnd"))
    return bool(int(pending.split()[1], 16) & (1 << (number - 1)))
