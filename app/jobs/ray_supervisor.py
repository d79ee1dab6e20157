"""The supervisor of a Ray cluster's jobs: hands queued ones over, watches, stops, starts again.

Like the local one it holds nothing: what runs is told by the rows and by the cluster, so it may
end at any time and the next one goes on. The jobs table is the truth: an attempt whose node died is
closed as lost and queued again with the next number, and only that number may write.
"""

import logging
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from app.jobs import launching
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
from db.store.settings import logs
from db.store.store import Store
from db.tables import Job

log = logging.getLogger("inf.ray")
POLL_SECONDS = 1.0
LOG_SECONDS = 5.0
START_SECONDS = 300.0


@dataclass
class Watched:
    """What this process remembers of an attempt: when it was seen, asked to stop, its log read."""

    job: Job
    since: float = field(default_factory=time.monotonic)
    stop_by: float | None = None
    log_read: float = 0.0


def supervise_ray(store: Store, cluster: RayCluster, *, idle_seconds: float) -> int:
    """Look after this cluster's jobs until none was there for `idle_seconds`.

    Returns how many it handed over. Raises BadInput where another does so already.
    """
    require_reachable_store(store, cluster.address)
    lock = try_supervisor_lock(store, cluster.address)
    if lock is None:
        raise BadInput("a supervisor of this store and cluster already runs on this machine")
    resources = Resources.from_environment()
    watched: dict[str, Watched] = {}
    handed, idle_since = 0, time.monotonic()
    try:
        while True:
            handed += _hand_over(store, cluster, resources)
            running = _jobs_here(store, cluster, "running")
            for job in running:
                one = watched.setdefault(submission_of(store, job), Watched(job))
                try:
                    _look_after(store, cluster, job, one)
                except InfError as error:  # the cluster does not answer: its jobs go on meanwhile
                    log.warning("%s", error)
            for name in watched.keys() - {submission_of(store, job) for job in running}:
                _keep_last_words(store, cluster, watched.pop(name).job, name)
            _start_lost_ones_again(store, cluster)
            if running:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since >= idle_seconds:
                return handed
            time.sleep(POLL_SECONDS)
    finally:
        os.close(lock)


def _jobs_here(store: Store, cluster: RayCluster, status: str) -> list[Job]:
    with store.read() as session:
        return jobs.list_jobs(session, statuses=(status,), launcher=cluster.address, limit=10_000)


def _hand_over(store: Store, cluster: RayCluster, resources: Resources) -> int:
    """Every queued job goes to the cluster, which has a queue of its own. Returns how many."""
    handed = 0
    while True:
        with store.write() as session:
            job = jobs.claim_job(session, slot="ray", launcher=cluster.address)
            session.commit()
        if job is None:
            return handed
        handed += 1
        try:
            cluster.submit(store, job, resources)
        except InfError as error:
            _close(store, job, "failed", f"it could not be handed over: {error}")
            continue
        log.info("job %s, attempt %s, is handed over", job.id, job.attempt)


def _look_after(store: Store, cluster: RayCluster, job: Job, one: Watched) -> None:
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
        _beat(store, job, message="waits for free resources of the cluster")
    elif state == RUNNING and job.pid is None and _age(one) < START_SECONDS:
        _beat(store, job)  # the process starts; from then on its heart beats by itself
    elif state == OVER:
        _bury(store, job, cluster.last_words(name))
    elif state == UNKNOWN and job.pid is None:
        _beat(store, job)  # a supervisor ended between taking the job and handing it over
        cluster.submit(store, job, Resources.from_environment())
    elif state == UNKNOWN:
        _bury(store, job, "the cluster does not know this job: it was started anew")


def _age(one: Watched) -> float:
    return time.monotonic() - one.since


def _stop(store: Store, cluster: RayCluster, job: Job, name: str, state: str, one: Watched) -> None:
    """Gently first: the job reads the wish at its next heartbeat; then Ray ends what is left."""
    if state in (OVER, UNKNOWN):
        _close(store, job, "cancelled", "stopped on request; resume goes on from here")
        return
    if one.stop_by is None:
        one.stop_by = time.monotonic() + launching.STOP_GRACE_SECONDS
    if state == WAITING or time.monotonic() > one.stop_by:
        cluster.stop(name)


def _bury(store: Store, job: Job, words: str) -> None:
    """The cluster's end of a job whose row still runs: its node or its process died."""
    tail = launching.log_tail(launching.job_now(store, job.id))
    _close(store, job, "lost", f"its process ended without a word: {words}\n{tail}".strip())


def _start_lost_ones_again(store: Store, cluster: RayCluster) -> None:
    """A lost attempt is ended in the cluster and queued again, a few times.

    Not one that somebody wanted stopped.
    """
    with store.write() as session:
        jobs.mark_lost_jobs(session)
        session.commit()
    for job in _jobs_here(store, cluster, "lost"):
        if job.attempt >= launching.MAX_ATTEMPTS or job.stop_requested:
            continue
        name = submission_of(store, job)
        try:
            if cluster.state(name) in (WAITING, RUNNING):
                cluster.stop(name)
        except InfError as error:
            log.warning("%s", error)
            continue
        with store.write() as session:
            jobs.requeue_job(session, job.id)
            session.commit()
        log.info("job %s, attempt %s, was lost and is queued again", job.id, job.attempt)


def _beat(store: Store, job: Job, **progress: str) -> None:
    with store.write() as session:
        try:
            jobs.beat(session, job.id, job.attempt, **progress)
        except Refused:
            return  # it ended meanwhile
        session.commit()


def _close(store: Store, job: Job, status: str, error: str) -> None:
    with store.write() as session:
        try:
            jobs.finish_job(session, job.id, job.attempt, status, error=error)
        except Refused:
            return  # it wrote its end itself
        session.commit()


def _keep_last_words(store: Store, cluster: RayCluster, job: Job, name: str) -> None:
    """The whole log of an attempt that is over: it has said more since its log was last read."""
    try:
        _keep_log(store, job, cluster.log(name))
    except InfError as error:
        log.warning("%s", error)


def _keep_log(store: Store, job: Job, text: str) -> None:
    """The job's log in our folder, where every page and command reads it.

    Of a node that died nothing can be read any more: what was copied before stays.
    """
    if not text:
        return
    logs().mkdir(parents=True, exist_ok=True)
    path = Path(logs() / f"job-{job.id}-{job.attempt}.log")
    path.write_text(text)
    if job.log_path != str(path):
        with store.write() as session:
            jobs.note_log(session, job.id, job.attempt, str(path))
            session.commit()
