"""Launching jobs: write the row, then start a process for it (`app.jobs.entry`), never run it here.

`run_in_foreground` waits for a child that ends with this process; `launch` queues the row and makes
sure that a supervisor runs (`app.jobs.supervisor`), which starts queued jobs, each in its own
process group.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from analysis.files.shared import newer_log, share_log
from app.access.identity import Actor
from app.access.permissions import admit
from app.jobs import supervisors
from app.jobs.handed_over import hand_over, with_handed_over
from app.jobs.kinds import KINDS
from app.jobs.places import require_own, take_budget_of
from app.jobs.processes import (
    PROCESS_DEFAULTS,
    SAFE_PATH,
    command_of,
    end_rest_of_group,
)
from db.errors import InfError
from db.events import record_event
from db.home import home
from db.jobs import jobs
from db.jobs.runner import Cancelled
from db.machine import KILLED, end_group, new_owner, own_group, require_locks, stop_process
from db.patience import PATIENCE_MINUTES, patience_of, patiently
from db.store.scope import unscoped
from db.store.secrets import inherited, redacted
from db.store.settings import log_of_attempt, logs
from db.store.store import Store
from db.tables import Job

STOP_GRACE_SECONDS = 15.0
MAX_ATTEMPTS = 5  # of a job whose cluster node dies; of a worker, while nothing is done
POLL_SECONDS = 0.25


def launch(
    store: Store, kind: str, config: dict[str, Any], *, actor: Actor, after: int | None = None
) -> int:
    """Queue a job, write the audit entry, and make sure that a supervisor runs. Returns its id.

    The id is greater than `after`. Raises Refused without the permission of the kind, where the
    config names what is an admin's, and where files of `INF_HOME` cannot be locked; NotFound where
    it names what the actor may not see.
    """
    require_locks(home())
    launcher = chosen_launcher()
    with unscoped(), store.write() as session:
        job, *more = _admitted(session, kind, config, actor, launcher=launcher, after=after)
        if launcher == jobs.LOCAL:  # a cluster's nodes have their own
            for each in (job, *more):
                hand_over(each.id)
        session.commit()
    supervisors.ensure_taken(store, launcher)
    return job.id


def _admitted(
    session: Session, kind: str, config: dict[str, Any], actor: Actor, **place: Any
) -> list[Job]:
    """The new row of a job that the actor may launch, and of those that share its work, with their
    audit entries. Raises as `launch`."""
    now = admit(session, actor, KINDS[kind].permission)
    require_own(session, now, kind, config)
    more = int(config.get("workers") or 1) - 1 if KINDS[kind].shared else 0
    further = {key: value for key, value in config.items() if key != "workers"} | {"joins": True}
    found = [
        jobs.enqueue_job(session, kind, each, started_by=now.name, **place)
        for each in (config, *[further] * more)
    ]
    for job in found:
        take_budget_of(session, now, job, is_new=True)
        record_event(session, now.name, "job.launch", job.id, kind=kind)
    return found


def chosen_launcher() -> str:
    """`local`, or the address of the Ray cluster that INF_RAY_ADDRESS names."""
    return os.environ.get("INF_RAY_ADDRESS", "").rstrip("/") or jobs.LOCAL


def wait_for(store: Store, job_id: int, *, watch: Callable[[Job], None] = lambda job: None) -> Job:
    """Wait for a queued job, wherever it runs; Ctrl-C requests a stop. Returns the ended row.

    Raises as `run_in_foreground`. A lost job is waited for while its launcher may retry it.
    """

    def now() -> Job:
        return patiently(lambda: job_now(store, job_id), 60 * PATIENCE_MINUTES)

    while (job := now()).status not in jobs.OVER or _will_be_retried(job):
        try:
            watch(job)
            time.sleep(POLL_SECONDS * 4)
        except KeyboardInterrupt:
            with store.write() as session:
                jobs.request_stop(session, job_id)
                session.commit()
    return ended_well(job)


def _will_be_retried(job: Job) -> bool:
    is_wanted = not job.stop_requested and job.attempt < MAX_ATTEMPTS
    return job.status == "lost" and job.launcher != jobs.LOCAL and is_wanted


def ended_well(job: Job) -> Job:
    """The job if it is done. Raises InfError with its error, Cancelled if it was stopped."""
    if job.status != "done":
        kind = Cancelled if job.status == "cancelled" else InfError
        message = job.error or f"job {job.id} ended as {job.status}"
        raise kind(message, what_to_do(job), code=job.error_code or f"job_{job.status}")
    return job


def run_in_foreground(
    store: Store,
    kind: str,
    config: dict[str, Any],
    *,
    actor: Actor,
    watch: Callable[[Job], None] = lambda job: None,
) -> Job:
    """Run a job as a child of this process and wait; returns the ended row.

    Raises InfError with the job's error if it failed, Cancelled if it was stopped.
    """
    with store.write() as session:
        first, *more = _admitted(session, kind, config, actor)
        job = jobs.claim_job(session, first.id)
        assert job is not None
        for each in more:
            hand_over(each.id)
        session.commit()
    if more:
        supervisors.ensure_taken(store, jobs.LOCAL)
    child = start_process(store, job, ends_with_us=True)
    return ended_well(_wait(store, job, child, watch, [each.id for each in more]))


def start_process(
    store: Store,
    job: Job,
    *,
    ends_with_us: bool = False,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start the process of a claimed job, its output going to its log file."""
    logs().mkdir(parents=True, exist_ok=True)
    log_path = log_of_attempt(job.id, job.attempt)
    variables = PROCESS_DEFAULTS | with_handed_over(job.id, inherited()) | SAFE_PATH
    variables |= {"INF_DATABASE_URL": store.url, "PYTHONUNBUFFERED": "1"}
    variables |= environment or {}
    if ends_with_us:
        variables["INF_LIFELINE"] = new_owner()
    with log_path.open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, *command_of(job)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=variables,
            **own_group(),
        )

    def note() -> None:
        with store.write() as session:
            jobs.note_process(session, job.id, job.attempt, child.pid, str(log_path))
            session.commit()

    patiently(note, patience_of(job.config))
    return child


def _wait(
    store: Store,
    job: Job,
    child: subprocess.Popen[bytes],
    watch: Callable[[Job], None],
    sharing: Sequence[int],
) -> Job:
    """Wait for the child; Ctrl-C stops it and the jobs that share its work."""
    deadline: float | None = None
    now, patience = job, patience_of(job.config)

    def tell(message: str) -> None:
        now.message = message
        watch(now)

    while True:
        try:
            code = child.poll()
            now = patiently(lambda: job_now(store, job.id), patience, tell=tell)
            watch(now)
            if code is not None:
                end_rest_of_group(child.pid)
                ended = partial(close_row, store, now, code)
                return patiently(ended, patience, tell=tell)
            if now.stop_requested and deadline is None:
                deadline = time.monotonic() + STOP_GRACE_SECONDS
                stop_process(child.pid)
            if deadline is not None and time.monotonic() > deadline:
                end_group(child.pid, by_force=True)
            time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            with store.write() as session:
                for each in (job.id, *sharing):
                    jobs.request_stop(session, each)
                session.commit()
            end_group(child.pid, by_force=False)


def close_row(store: Store, job: Job, code: int | None) -> Job:
    """The ended row; if the process died without closing it, close it here.

    A job whose process was killed is lost: it can be resumed from what it stored. So is one whose
    process is gone and whose status (None) an earlier supervisor would have got.
    """
    attempt = job.attempt
    share_log(log_of_attempt(job.id, attempt))
    job = job_now(store, job.id)
    if job.status == "running" and job.attempt == attempt:
        how = "is gone" if code is None else f"ended with status {code}"
        message = f"the process {how}; log: {job.log_path}"
        if code == KILLED:
            message += "\n(killed, often because memory ran out)"
        ended = "lost" if code in (None, KILLED) else "failed"
        status = "cancelled" if job.stop_requested else ended
        error = InfError(f"{message}\n{log_tail(job)}", code="job_process_ended")
        with store.write() as session:
            jobs.finish_job(session, job.id, job.attempt, status, error=error)
            session.commit()
        job = job_now(store, job.id)
    return job


def replace_dead(store: Store, job_id: int, deaths: "Counter[tuple[int, int]]") -> None:
    """Queue one of several workers again whose process was killed.

    `deaths` counts them by job and by what was done; a worker that dies MAX_ATTEMPTS times while
    nothing more is done stays lost.
    """
    job = job_now(store, job_id)
    is_of_several = KINDS[job.kind].shared and (
        job.config.get("joins") or int(job.config.get("workers") or 1) > 1
    )
    if not is_of_several or job.status != "lost":
        return
    deaths[job.id, job.done] += 1
    if deaths[job.id, job.done] < MAX_ATTEMPTS:
        with store.write() as session:
            jobs.requeue_job(session, job_id)
            session.commit()


def what_to_do(job: Job) -> str:
    """What to do about a job that did not end well, first the remedy of its error, or about one
    with files elsewhere; "" for others."""
    if job.status == "queued" and jobs.is_elsewhere(job):
        return "Its files are in another INF_HOME: a server or worker that has it runs it."
    if job.status == "lost":
        return f"Resume it from what it stored with `jobs resume {job.id}`."
    if job.status != "failed":
        return job.remedy or ""
    first = (job.remedy or "fix the cause").rstrip(".")
    return (
        f"{first}. Resume from what it stored with `jobs resume {job.id}`; "
        f"the full log is in `jobs logs {job.id}`."
    )


def log_elsewhere(job: Job) -> str:
    """Where the log of a job is that another INF_HOME has; "" for others."""
    is_there = job.log_path is not None and jobs.is_elsewhere(job)
    return f"the log is in the INF_HOME of another server ({job.host})" if is_there else ""


def log_of(job: Job) -> Path | None:
    """The path of the job's log, with what another machine wrote of it; None without one here."""
    path = jobs.log_here(job)
    return newer_log(path) if path is not None else None


def log_tail(job: Job, lines: int = 12, max_bytes: int = 64_000) -> str:
    """The last lines of a job's log with secrets redacted, "" without a log."""
    path = log_of(job)
    if path is None or not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - max_bytes))
        text = redacted(file.read().decode("utf-8", "replace"))
    return "\n".join(text.splitlines()[-lines:])


def job_now(store: Store, job_id: int) -> Job:
    """The current row of the job."""
    with store.read() as session:
        return jobs.get_job(session, job_id)
