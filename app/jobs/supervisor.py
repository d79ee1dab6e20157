"""The supervisor: starts queued jobs in the slots of this machine, stops and reaps them.

One runs per store and machine, detached; it may end at any time. Its jobs continue, and the next
supervisor finds them by their rows: they keep their slots until they end.

Three queues, so that training for hours does not block an export: `curation`, `files` and `models`
(`app.jobs.kinds` assigns each kind). The models queue has one slot per GPU (`gpu0`, `gpu1`, …; its
job sees only that GPU) or a single slot without GPUs. Jobs of the other queues see no GPU, so that
none is shared by accident.

Jobs that join a run (`inf runs join RUN --detach`) have places of their own: behind the run's
first worker they would wait until there is nothing left to do.
"""

import logging
import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from analysis.files.shared import drop_states, share_the_rest
from app.jobs import launching
from app.jobs.entry import require_own_files
from app.jobs.handed_over import left_of_ended, take_earlier
from app.jobs.kinds import kinds_of_slot, queues_taken
from app.jobs.processes import end_rest_of_group, is_alive_here, is_process_of
from app.jobs.supervisors import try_supervisor_lock
from db.errors import BadInput, InfError
from db.jobs import jobs
from db.jobs.gpus import query_gpus
from db.machine import end_group, process_exists, stop_process
from db.patience import PATIENCE_MINUTES, is_away, patiently
from db.store.store import Store
from db.tables import Job


@dataclass(frozen=True)
class Slot:
    """A place for one job at a time: its name, the kinds it takes, and their environment.

    `joins`: it takes jobs that join a run, and no others.
    """

    name: str
    kinds: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    joins: bool = False


def slots(gpus: list[str] | None = None) -> list[Slot]:
    """The slots of this machine, of the queues that it takes."""
    found = visible_gpus() if gpus is None else gpus
    model_kinds = kinds_of_slot("models")
    no_gpu = {"CUDA_VISIBLE_DEVICES": ""} if found else {}
    models = [
        Slot(f"gpu{number}", model_kinds, {"CUDA_VISIBLE_DEVICES": gpu})
        for number, gpu in enumerate(found)
    ]
    joined = [
        Slot(f"joined{number}", ("curate",), no_gpu, joins=True)
        for number in range(1, launching.MAX_JOINED + 1)
    ]
    of_queue = {
        "files": [Slot("files", kinds_of_slot("files"), no_gpu)],
        "curation": [Slot("curation", kinds_of_slot("curation"), no_gpu), *joined],
        "models": models or [Slot("models", model_kinds)],
    }
    taken = queues_taken()
    return [slot for queue, of in of_queue.items() if queue in taken for slot in of]


def visible_gpus() -> list[str]:
    """The GPUs this process may use, by number or UUID, as in CUDA_VISIBLE_DEVICES."""
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is not None:
        return [gpu.strip() for gpu in allowed.split(",") if gpu.strip() not in ("", "-1")]
    return [str(number) for number in query_gpus("index")]


POLL_SECONDS = 0.5
log = logging.getLogger("inf.jobs")


@dataclass
class Running:
    """A job in its slot. `child` is None for one that an earlier supervisor started."""

    job_id: int
    attempt: int
    pid: int
    child: "subprocess.Popen[bytes] | None" = None
    stop_by: float | None = None


def supervise(store: Store, *, idle_seconds: float, places: list[Slot] | None = None) -> int:
    """Run queued jobs, one per slot at a time, until there were none for `idle_seconds`.

    Returns how many jobs it ran. Raises BadInput if a supervisor of this store already runs.
    """
    lock = try_supervisor_lock(store)
    if lock is None:
        raise BadInput(
            "a supervisor of this store already runs on this machine",
            "there is nothing to do: it runs the queued jobs",
            code="supervisor_running_already",
        )
    places = slots() if places is None else places
    sharing = threading.Thread(target=_share_the_rest, args=(store,), daemon=True)
    sharing.start()  # what a machine has from before may take hours
    taken, idle_since = 0, time.monotonic()
    away_since: float | None = None
    silent: dict[int, float] = {}
    try:
        running = patiently(partial(_inherited, store), 60 * PATIENCE_MINUTES)
        while running or sharing.is_alive() or time.monotonic() - idle_since < idle_seconds:
            try:
                for name, one in list(running.items()):
                    if _is_over(store, one):
                        del running[name]
                        idle_since = time.monotonic()
                launching.mark_lost(store, silent)
                _settle(store, running)
                for place in _free(places, running):
                    if started := _start(store, place):
                        running[place.name] = started
                        taken += 1
            except (InfError, SQLAlchemyError) as error:
                if not is_away(error):
                    raise
                idle_since = time.monotonic()
                if away_since is None:
                    away_since = idle_since
                    log.warning("the store is away, its jobs wait: %s", error)
                if not running and idle_since - away_since > 60 * PATIENCE_MINUTES:
                    raise  # whoever launches a job next starts another one
            else:
                away_since = None
            time.sleep(POLL_SECONDS if running else POLL_SECONDS / 2)
    finally:
        os.close(lock)
    return taken


def _share_the_rest(store: Store) -> None:
    try:
        require_own_files(store)
        over = select(Job).where(Job.kind == "train", Job.status == "done")
        with store.read() as session:
            ended = [jobs.key_of(job) for job in session.scalars(over)]
        drop_states(ended)
        share_the_rest()
    except (InfError, SQLAlchemyError) as error:  # another store's files: so is each job refused
        log.warning("%s", error)


def _free(places: list[Slot], running: dict[str, Running]) -> list[Slot]:
    """The places without a job; of those for joining workers one, as each look is a write."""
    free = [place for place in places if place.name not in running]
    return [place for place in free if not place.joins] + [place for place in free if place.joins][
        :1
    ]


def _start(store: Store, place: Slot) -> Running | None:
    with store.write() as session:
        job = jobs.claim_job(
            session,
            kinds=place.kinds,
            slot=place.name,
            launcher=jobs.LOCAL,
            joins=place.joins,
        )
        session.commit()
    if job is None:
        return None
    try:
        child = launching.start_process(store, job, environment=place.environment)
    except (OSError, InfError) as error:  # disk full, no more processes, another file of keys
        if isinstance(error, OSError):
            error = InfError(str(error), "free disk or memory", code="job_not_started")
        failed = error.as_reason("could not be started")
        with store.write() as session:
            jobs.finish_job(session, job.id, job.attempt, "failed", error=failed)
            session.commit()
        return None
    log.info("job %s, attempt %s, is started as process %s", job.id, job.attempt, child.pid)
    return Running(job.id, job.attempt, child.pid, child)


def _inherited(store: Store) -> dict[str, Running]:
    """Jobs in slots of this machine that run without a supervisor."""
    with store.read() as session:
        take_earlier(session)
        found = jobs.list_jobs(session, statuses=("running",), launcher=jobs.LOCAL)
    return {
        job.slot: Running(job.id, job.attempt, job.pid)
        for job in found
        if job.slot and job.pid and is_alive_here(job)
    }


def _settle(store: Store, running: dict[str, Running]) -> None:
    """Settle the jobs that were launched here and are over: some died, perhaps with the machine."""
    running_ids = {one.job_id for one in running.values()}
    for job in left_of_ended(store, jobs.LOCAL):
        if job.id not in running_ids and launching.settle(store, job.id):
            log.info("job %s, attempt %s, was lost and is queued again", job.id, job.attempt)


def _is_over(store: Store, one: Running) -> bool:
    """Check a running job: stop it if requested, reap it when it has ended."""
    with store.read() as session:
        job = jobs.get_job(session, one.job_id)
    code = one.child.poll() if one.child else None
    is_alive = code is None if one.child else process_exists(one.pid) and is_process_of(job)
    if not is_alive:
        end_rest_of_group(one.pid)
        if job.attempt == one.attempt:  # else it was taken for lost, and runs again
            launching.close_row(store, job, code)
            launching.settle(store, job.id)  # also one that was launched elsewhere
        return True
    if one.stop_by is None and (job.stop_requested or job.status in jobs.OVER):
        one.stop_by = time.monotonic() + launching.STOP_GRACE_SECONDS
        if job.status == "running":  # otherwise it is ending or was marked lost
            stop_process(one.pid)
    if one.stop_by is not None and time.monotonic() > one.stop_by:
        end_group(one.pid, by_force=True)
    return False
