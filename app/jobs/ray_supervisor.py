"""The supervisor of a Ray cluster's jobs: submits queued ones, watches, stops and retries them.

Like the local one it keeps no state: the rows and the cluster say what runs, so it may end at any
time and the next one continues. The jobs table is authoritative: an attempt whose node died is
closed as lost and queued again with the next attempt number, and only that number may write.
"""

import logging
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from analysis.files.shared import share_log
from app.jobs import launching
from app.jobs.handed_over import left_of_ended
from app.jobs.places import is_of_another_launch
from app.jobs.ray_cluster import (
    OVER,
    RUNNING,
    UNKNOWN,
    WAITING,
    RayCluster,
    Resources,
    require_reachable_store,
    submission_of,
)
from app.jobs.supervisors import try_supervisor_lock
from db.errors import BadInput, InfError, Refused
from db.jobs import jobs
from db.patience import PATIENCE_MINUTES, is_away, patiently
from db.store.settings import log_of_attempt, logs
from db.store.store import Store
from db.tables import Job

log = logging.getLogger("inf.ray")
STOPPED = InfError("stopped on request", "resume to continue", code="job_stopped")
POLL_SECONDS = 1.0
LOG_SECONDS = 5.0
START_SECONDS = 300.0


@dataclass
class Watched:
    """What this process remembers of an attempt: when first seen, stop deadline, last log read."""

    job: Job
    since: float = field(default_factory=time.monotonic)
    stop_by: float | None = None
    log_read: float = 0.0


def supervise_ray(store: Store, cluster: RayCluster, *, idle_seconds: float) -> int:
    """Supervise this cluster's jobs until there were none for `idle_seconds`.

    Returns how many it submitted. Raises BadInput if another supervisor already runs.
    """
    require_reachable_store(store, cluster.address)
    lock = try_supervisor_lock(store, cluster.address)
    if lock is None:
        raise BadInput(
            "a supervisor of this store and cluster already runs on this machine",
            "there is nothing to do: it runs the queued jobs",
            code="supervisor_running_already",
        )
    resources = Resources.from_environment()
    watched: dict[str, Watched] = {}
    silent: dict[int, float] = {}
    submitted, idle_since = 0, time.monotonic()
    try:
        while True:
            new, is_working = patiently(
                partial(_round, store, cluster, resources, watched, silent),
                60 * PATIENCE_MINUTES,
            )
            submitted += new
            if is_working:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since >= idle_seconds:
                return submitted
            time.sleep(POLL_SECONDS)
    finally:
        os.close(lock)


def _round(
    store: Store,
    cluster: RayCluster,
    resources: Resources,
    watched: dict[str, Watched],
    silent: dict[int, float],
) -> tuple[int, bool]:
    """Submit, look after each running job, and retry lost ones; of those that run no longer the log
    is kept. How many were submitted, and whether any runs or is to run again."""
    submitted = _submit_queued(store, cluster, resources)
    running = _jobs_here(store, cluster, "running")
    for job in running:
        one = watched.setdefault(submission_of(store, job), Watched(job))
        try:
            _watch(store, cluster, job, one)
        except InfError as error:  # the cluster does not answer; its jobs continue
            if is_away(error):
                raise
            log.warning("%s", error)
    for name in watched.keys() - {submission_of(store, job) for job in running}:
        _keep_final_log(store, cluster, watched.pop(name).job, name)
    is_retrying = _retry_lost(store, cluster, silent)
    return submitted, bool(running) or is_retrying


def _jobs_here(store: Store, cluster: RayCluster, status: str) -> list[Job]:
    with store.read() as session:
        return jobs.list_jobs(session, statuses=(status,), launcher=cluster.address, limit=10_000)


def _submit_queued(store: Store, cluster: RayCluster, resources: Resources) -> int:
    """Submit the queued jobs to the cluster, which has its own queue, but for those whose launch is
    in another INF_HOME. Returns how many."""
    submitted = 0
    queued = reversed(_jobs_here(store, cluster, "queued"))
    for ours in _launched_here(store, queued):
        with store.write() as session:
            job = jobs.claim_job(session, ours.id, slot="ray", launcher=cluster.address)
            session.commit()
        if job is None:
            continue
        submitted += 1
        try:
            cluster.submit(store, job, resources)
        except InfError as error:
            _close(store, job, "failed", error.as_reason("could not be submitted"))
            continue
        log.info("job %s, attempt %s, is submitted", job.id, job.attempt)
    return submitted


def _launched_here(store: Store, found: Iterable[Job]) -> list[Job]:
    """Those of the jobs that this process may submit: no other INF_HOME has their launch."""
    with store.read() as session:
        return [job for job in found if not is_of_another_launch(session, job)]


def _watch(store: Store, cluster: RayCluster, job: Job, one: Watched) -> None:
    name = submission_of(store, job)
    state = cluster.state(name)
    if state in (RUNNING, OVER) and (
        state == OVER or time.monotonic() - one.log_read >= LOG_SECONDS
    ):
        one.log_read = time.monotonic()
        _keep_log(store, job, cluster.log(name))
    if job.stop_requested:
        _stop(store, cluster, job, name, state, one)
    elif state == WAITING:
        _beat(store, job, message="waiting for free resources of the cluster")
    elif state == RUNNING and job.pid is None and _age(one) < START_SECONDS:
        _beat(store, job)  # the process is starting; later it sends its own heartbeat
    elif state == OVER:
        _close_lost(store, job, cluster.end_message(name))
    elif state == UNKNOWN and job.pid is None:
        if not _launched_here(store, [job]):
            return  # the supervisor there submits it, or its row is lost and it is queued again
        _beat(store, job)  # a supervisor ended between claiming and submitting it
        cluster.submit(store, job, Resources.from_environment())
    elif state == UNKNOWN:
        _close_lost(store, job, "the cluster does not know this job: it was restarted")


def _age(one: Watched) -> float:
    return time.monotonic() - one.since


def _stop(store: Store, cluster: RayCluster, job: Job, name: str, state: str, one: Watched) -> None:
    """First let the job stop at its next heartbeat; after the grace period stop it through Ray."""
    if state in (OVER, UNKNOWN):
        _close(store, job, "cancelled", STOPPED)
        return
    if one.stop_by is None:
        one.stop_by = time.monotonic() + launching.STOP_GRACE_SECONDS
    if state == WAITING or time.monotonic() > one.stop_by:
        cluster.stop(name)


def _close_lost(store: Store, job: Job, reason: str) -> None:
    """Close a job that ended in the cluster while its row still runs: node or process died."""
    tail = launching.log_tail(launching.job_now(store, job.id))
    message = f"its process ended unexpectedly: {reason}\n{tail}".strip()
    _close(store, job, "lost", InfError(message, code="job_process_ended"))


def _retry_lost(store: Store, cluster: RayCluster, silent: dict[int, float]) -> bool:
    """End lost attempts in the cluster and queue their jobs again, as `launching.settle` does; what
    was left for the others that ended it deletes. Whether any were lost."""
    launching.mark_lost(store, silent)
    lost = _jobs_here(store, cluster, "lost")
    with store.read() as session:
        wanted = [job for job in lost if launching.is_wanted(session, job)]
    again = {job.id for job in wanted}
    for job in left_of_ended(store, cluster.address):
        if job.id not in again:
            launching.settle(store, job.id)
    for job in wanted:
        name = submission_of(store, job)
        try:
            if cluster.state(name) in (WAITING, RUNNING):
                cluster.stop(name)
        except InfError as error:
            log.warning("%s", error)
            continue
        if launching.settle(store, job.id):
            log.info("job %s, attempt %s, was lost and is queued again", job.id, job.attempt)
    return bool(wanted)


def _beat(store: Store, job: Job, **progress: Any) -> None:
    with store.write() as session:
        try:
            jobs.beat(session, job.id, job.attempt, **progress)
        except Refused:
            return  # it has ended meanwhile
        session.commit()


def _close(store: Store, job: Job, status: str, error: InfError) -> None:
    with store.write() as session:
        try:
            jobs.finish_job(session, job.id, job.attempt, status, error=error)
        except Refused:
            return  # it closed its row itself
        session.commit()


def _keep_final_log(store: Store, cluster: RayCluster, job: Job, name: str) -> None:
    """Copy the complete log of an ended attempt: it may have grown since the last read."""
    try:
        _keep_log(store, job, cluster.log(name))
    except InfError as error:
        log.warning("%s", error)


def _keep_log(store: Store, job: Job, text: str) -> None:
    """Copy the job's log to our folder, where pages and commands read it.

    After a node has died its log cannot be read: the earlier copy stays.
    """
    if not text:
        return
    logs().mkdir(parents=True, exist_ok=True)
    path = log_of_attempt(job.id, job.attempt)
    content = text.encode()
    if not path.is_file() or path.read_bytes() != content:
        path.write_bytes(content)
        share_log(path)
    if job.log_path != str(path):
        with store.write() as session:
            jobs.note_log(session, job.id, job.attempt, str(path))
            session.commit()
