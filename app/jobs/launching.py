"""Launching jobs: write the row, then start a process for it (`app.jobs.entry`), never run it here.

`run_in_foreground` waits for a child that ends with this process; `launch` queues the row and makes
sure that a supervisor runs (`app.jobs.supervisor`), which starts queued jobs, each in its own
process group.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session

from analysis.files.shared import newer_log, share_log
from app.access.identity import Actor
from app.access.permissions import admit
from app.jobs import supervisors
from app.jobs.handed_over import forget, hand_over, with_handed_over
from app.jobs.kinds import KINDS
from app.jobs.places import require_own, take_budget_of
from app.jobs.processes import (
    PROCESS_DEFAULTS,
    SAFE_PATH,
    command_of,
    end_rest_of_group,
    is_alive_here,
)
from db.errors import BadInput, InfError
from db.events import record_event
from db.home import files_root, home
from db.jobs import jobs
from db.jobs.runner import Cancelled
from db.machine import (
    KILLED,
    end_group,
    new_owner,
    own_group,
    require_locks,
    require_store_locks,
    stop_process,
)
from db.patience import is_away, patience_of, patiently
from db.store.scope import unscoped
from db.store.secrets import inherited, redacted
from db.store.settings import log_of_attempt, logs
from db.store.store import Store
from db.tables import Job, Run, utc_now

STOP_GRACE_SECONDS = 15.0
MAX_DEATHS = 5  # of a job's process, while no more is done
POLL_SECONDS = 0.25
WANTED_FOR = timedelta(days=1)
MAX_JOINED = max(8, os.cpu_count() or 1)  # at a time on this machine; a worker uses up to a core


def launch(
    store: Store, kind: str, config: dict[str, Any], *, actor: Actor, after: int | None = None
) -> int:
    """Queue a job, write the audit entry, and make sure that a supervisor runs. Returns its id.

    The id is greater than `after`. Raises Refused without the permission of the kind, where the
    config names what is an admin's, and where files of `INF_HOME` or the store cannot be locked;
    NotFound where it names what the actor may not see.
    """
    require_locks(home())
    if store.is_sqlite:
        require_store_locks(Path(str(make_url(store.url).database)))
    launcher = chosen_launcher()
    with unscoped(), store.write() as session:
        job, *more = _admitted(session, kind, config, actor, launcher=launcher, after=after)
        # whoever joins a run works with its server and key
        run_id = config.get("run_id") if config.get("joins") else None
        like = jobs.live_of_run(session, run_id) if run_id else ()
        for each in (job, *more):
            hand_over(session, each, like)
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
    is_one_machines = session.get_bind().dialect.name == "sqlite"
    joins, here = bool(config.get("joins")), place.get("launcher", jobs.LOCAL) == jobs.LOCAL
    joined = more + joins  # the first worker of a run that starts joins none
    free = MAX_JOINED
    if joined and is_one_machines and here:
        free -= jobs.count_joined(session)
    if joined > free and is_one_machines and here:
        most = max(free, 0) + (not joins)
        first = f"start {most} at most" if most else "wait until one of them has ended"
        raise BadInput(
            f"{joined} workers cannot join a run at a time on this machine, which has places for "
            f"{MAX_JOINED}, {max(free, 0)} of them free",
            f"{first}; with PostgreSQL other machines take further ones, or a Ray cluster",
            code="too_many_workers",
        )
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


def wait_for(
    store: Store,
    job_id: int,
    patience: float,
    *,
    watch: Callable[[Job], None] = lambda job: None,
    sharing: Sequence[int] = (),
) -> Job:
    """Wait for a queued job, wherever it runs; Ctrl-C requests a stop of it and of those that share
    its work. Returns the ended row.

    Raises as `run_in_foreground`. A lost job is waited for while its launcher may retry it, a store
    that is away for `patience` seconds.
    """
    now: Job | None = None

    def read() -> tuple[Job, bool]:
        with store.read() as session:
            job = jobs.get_job(session, job_id)
            is_again = job.status == "lost" and is_wanted(session, job)
            return job, job.status not in jobs.OVER or is_again

    def tell(message: str) -> None:
        assert now is not None
        now.message = message
        watch(now)

    while True:
        try:
            now, goes_on = patiently(read, patience, tell=tell if now else None)
            if not goes_on:
                return ended_well(now)
            watch(now)
            time.sleep(POLL_SECONDS * 4)
        except KeyboardInterrupt:
            _request_stop(store, [job_id, *sharing], patience, tell if now else None)


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

    Where others share its work, the supervisor replaces it as it does them. Raises InfError with
    the job's error if it failed, Cancelled if it was stopped.
    """
    with store.write() as session:
        first, *more = _admitted(session, kind, config, actor)
        job = jobs.claim_job(session, first.id)
        assert job is not None
        for each in more:
            hand_over(session, each)
        if KINDS[kind].shared:
            with suppress(OSError, InfError):  # for those who join: this process has its own
                hand_over(session, job)
        session.commit()
    if more:
        supervisors.ensure_taken(store, jobs.LOCAL)
    try:
        child, sharing = start_process(store, job, ends_with_us=True), [each.id for each in more]
        ended = _wait(store, job, child, watch, sharing)
        if sharing and ended.status == "lost":
            return wait_for(store, job.id, patience_of(config), watch=watch, sharing=sharing)
        return ended_well(ended)
    finally:
        forget(job)


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
    variables = PROCESS_DEFAULTS | with_handed_over(job, inherited()) | SAFE_PATH
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
            end_group(child.pid, by_force=False)  # first: the store may be away
            try:
                _request_stop(store, [job.id, *sharing], patience, tell)
            except Cancelled:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(STOP_GRACE_SECONDS)
                end_group(child.pid, by_force=True)
                child.wait()
                raise


def _request_stop(
    store: Store, job_ids: Sequence[int], patience: float, tell: Callable[[str], None] | None
) -> None:
    """Store that the jobs are to stop, once the store is back where it is away.

    Raises Cancelled with the command that does it later after another Ctrl-C or with the patience:
    until it is stored, a job goes on or is started again.
    """

    def request() -> None:
        with store.write() as session:
            for each in job_ids:
                jobs.request_stop(session, each)
            session.commit()

    def waiting(message: str) -> None:
        assert tell is not None
        tell(f"{message}; the stop is stored when it is back")

    try:
        patiently(request, patience, tell=waiting if tell else None)
    except (KeyboardInterrupt, Exception) as error:
        if not (isinstance(error, KeyboardInterrupt) or is_away(error)):
            raise
        raise Cancelled(
            "the store is away, so the stop is not stored: what works in the background goes on, "
            "or is started again",
            "once the store is back: " + ", ".join(f"`jobs cancel {each}`" for each in job_ids),
            code="stop_not_stored",
        ) from error


def close_row(store: Store, job: Job, code: int | None) -> Job:
    """The ended row; if the process died without closing it, close it here.

    A job whose process was killed is lost: it can be resumed from what it stored. So is one whose
    process is gone and whose status (None) an earlier supervisor would have got, and of a shared
    kind one that any signal ended, or (1) whose end could not be stored.
    """
    attempt = job.attempt
    share_log(log_of_attempt(job.id, attempt))
    job = job_now(store, job.id)
    if job.status == "running" and job.attempt == attempt:
        how = "is gone" if code is None else f"ended with status {code}"
        message = f"the process {how}; log: {job.log_path}"
        if code == KILLED:
            message += "\n(killed, often because memory ran out)"
        is_lost = code in (None, KILLED) or (KINDS[job.kind].shared and (code < 0 or code == 1))
        status = "cancelled" if job.stop_requested else "lost" if is_lost else "failed"
        error = InfError(f"{message}\n{log_tail(job)}", code="job_process_ended")
        with store.write() as session:
            jobs.finish_job(session, job.id, job.attempt, status, error=error)
            session.commit()
        job = job_now(store, job.id)
    return job


def mark_lost(store: Store, silent: dict[int, float]) -> None:
    """Mark jobs without a recent heartbeat as lost.

    After a sleep, or when the store is back, whoever asks may be there before a living worker
    beats: where its process may live, it gets as long again. `silent` has, by job, when it was
    first found silent here.
    """
    with store.read() as session:
        found = [jobs.get_job(session, each) for each in jobs.silent_jobs(session)]
    for each in silent.keys() - {job.id for job in found}:
        del silent[each]
    now = time.monotonic()
    spared = {
        job.id
        for job in found
        if now - silent.setdefault(job.id, now) < jobs.LOST_AFTER_SECONDS
        and is_alive_here(job) is not False
    }
    if len(spared) < len(found):
        with store.write() as session:
            jobs.mark_lost_jobs(session, spared=spared)
            session.commit()


def living_here(session: Session, silent: Iterable[int]) -> set[int]:
    """The silent jobs whose process runs on this machine: its supervisor is to judge them."""
    found = [jobs.get_job(session, each) for each in silent]
    return {job.id for job in found if is_alive_here(job)}


def settle(store: Store, job_id: int) -> bool:
    """Queue a lost job again, or delete what was left for it if it is over for good. Whether it is
    queued again.

    The row counts how often its process died since most was done, as its supervisor may die with
    it: at MAX_DEATHS the job fails. A person's resume begins anew.
    """
    with store.write() as session:
        job = jobs.get_job(session, job_id, lock=True)
        if job.status not in jobs.OVER:
            return False
        is_again = job.status == "lost" and is_wanted(session, job)
        if is_again:
            most, died = job.shown.get(jobs.DEATHS, (-1, 0))
            died = 1 if job.done > most else died + 1
            is_again = died < MAX_DEATHS
            if is_again:
                jobs.requeue_job(session, job_id, deaths=(max(most, job.done), died))
            else:
                jobs.give_up(session, job_id, _keeps_dying(job, died))
        if not is_again:
            forget(job)  # under the lock: a resume that comes next leaves it anew
        session.commit()
    return is_again


def is_wanted(session: Session, job: Job) -> bool:
    """Whether a lost job is to go on: nobody stopped it or its run, and no restore ended it, which
    has no code. A cluster's that was lost long ago may have been given up by an earlier version."""
    if job.stop_requested or job.error_code is None:
        return False
    if job.launcher == jobs.LOCAL:
        # without a slot its command shows the end, unless others share its work
        is_alone = job.slot is None and int(job.config.get("workers") or 1) == 1
        if is_alone or not KINDS[job.kind].shared:
            return False
    elif job.finished_at is not None and job.finished_at < utc_now() - WANTED_FOR:
        return False
    run = session.get(Run, job.config.get("run_id") or 0)
    return run is None or run.status in ("created", "running", "done")


def _keeps_dying(job: Job, died: int) -> InfError:
    return InfError(
        f"its process died {died} times while no more was done, at last: {job.error}",
        "find the cause in its log, such as too little memory",
        code="job_keeps_dying",
    )


def waiting_for(job: Job) -> str:
    """What a queued job waits for: another server, or a place here; "" where it has one."""
    if job.status != "queued":
        return ""
    if jobs.is_elsewhere(job):
        server = f"the server {job.host}" if job.host else "another server"
        return (
            f"waiting for {server}: its files, or its launch's settings, are in the INF_HOME there"
        )
    if job.config.get("joins") and job.launcher == jobs.LOCAL:
        return (
            f"waiting for one of the {MAX_JOINED} places of a machine for workers that join a run"
        )
    return ""


def what_to_do(job: Job) -> str:
    """What to do about a job that did not end well, first the remedy of its error, or about one
    with files elsewhere; "" for others."""
    if jobs.is_elsewhere(job) and waiting_for(job):
        found = "A server or worker that has that INF_HOME runs it."
        if not files_root():
            return found
        return (
            f"{found} One that is of the environment's server goes on here, by the variables of "
            "here, once it is cancelled and resumed."
        )
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
    is_there = job.log_path is not None and jobs.log_here(job) is None
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
