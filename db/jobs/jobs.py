"""The job queue: rows only. `app.jobs.launching` launches them, `db.jobs.runner` runs them.

A job is claimed before its process starts; every later write carries the attempt of that claim, so
that a process that was declared lost cannot overwrite its successor's results.
"""

import os
import socket
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import delete, false, func, literal, or_, select, update
from sqlalchemy.orm import Session

from db.clock import silent_since, store_now
from db.errors import BadInput, InfError, NotFound, Refused
from db.events import record_event
from db.home import as_stored, files_root, home_id, home_ids, is_of_this_machine
from db.machine import process_exists, process_space
from db.store.bulk import continue_numbering
from db.store.secrets import redacted, refuse_secrets
from db.tables import Base, Job, MetricPoint, utc_now
from db.values import JOB_KINDS

HEARTBEAT_SECONDS = 3.0
LOST_AFTER_SECONDS = 20.0
LOCAL = "local"
DEATHS = "deaths"  # in `shown`: the most that was done, how often its process died since
OVER = ("done", "failed", "cancelled", "lost")
SILENT = InfError(
    "the process stopped without a report (killed, or the machine went down)", code="job_silent"
)


def enqueue_job(
    session: Session,
    kind: str,
    config: dict[str, Any],
    *,
    started_by: str = "",
    launcher: str = LOCAL,
    after: int | None = None,
) -> Job:
    """Add a queued job, with an id greater than `after`. Does not commit.

    Raises BadInput for an unknown kind, Refused for a config that holds a secret.
    """
    if kind not in JOB_KINDS:
        raise BadInput(
            f"no job kind {kind!r}", f"one of {', '.join(JOB_KINDS)}", code="job_kind_unknown"
        )
    refuse_secrets(config)
    home = home_ids()[0]
    job = Job(kind=kind, config=config, started_by=started_by, launcher=launcher, home=home)
    if is_of_this_machine(config):
        keep_here(job)
    if after is not None:
        job.id = max(after, session.scalar(select(func.max(Job.id))) or 0) + 1
    session.add(job)
    session.flush()
    if after is not None:
        continue_numbering(session, Base.metadata.tables[Job.__tablename__])
    return job


def keep_here(job: Job) -> None:
    """Let this INF_HOME alone run a job, on this machine where that is not shared."""
    job.home, job.host = home_id(), socket.gethostname()


def get_job(session: Session, job_id: int, *, lock: bool = False) -> Job:
    """The job as it is now; with `lock` until the end of the transaction. Raises NotFound."""
    job = session.get(Job, job_id, populate_existing=True, with_for_update=lock or None)
    if job is None:
        raise NotFound(f"no job {job_id}", "`jobs list` shows all", code="job_unknown")
    return job


def key_of(job: Job) -> str:
    """What its files are known by: a store restored from a backup gives its number to another."""
    return f"job-{job.id}-{job.created_at:%Y%m%dT%H%M%S%f}"


def list_jobs(
    session: Session,
    *,
    kind: str | None = None,
    statuses: Sequence[str] = (),
    launcher: str | None = None,
    config: Mapping[str, str | int] | None = None,
    limit: int = 100,
    offset: int = 0,
) -> list[Job]:
    """Jobs, newest first; `config`: those whose config has these values."""
    query = select(Job).order_by(Job.id.desc()).limit(limit).offset(offset)
    if kind:
        query = query.where(Job.kind == kind)
    if statuses:
        query = query.where(Job.status.in_(statuses))
    if launcher is not None:
        query = query.where(Job.launcher == launcher)
    for name, value in (config or {}).items():
        held = Job.config[name]
        found = held.as_integer() if isinstance(value, int) else held.as_string()
        query = query.where(found == as_stored(value))
    return list(session.scalars(query))


def live_of_run(session: Session, run_id: int) -> list[Job]:
    """The queued and running jobs that work on a run, newest first."""
    is_live = ("queued", "running")
    return list_jobs(
        session, kind="curate", statuses=is_live, config={"run_id": run_id}, limit=10_000
    )


def ids_of_run(session: Session, run_id: int) -> list[int]:
    """All jobs that work or worked on a run, oldest first."""
    at_work = Job.kind == "curate", Job.config["run_id"].as_integer() == run_id
    return list(session.scalars(select(Job.id).where(*at_work).order_by(Job.id)))


def count_joined(session: Session) -> int:
    """How many local jobs that join a run are queued or running."""
    is_local = Job.status.in_(("queued", "running")), Job.launcher == LOCAL
    query = select(func.count()).where(*is_local, Job.config["joins"].as_boolean())
    return session.scalars(query).one()


def pushed_release(session: Session, release_id: int) -> tuple[str, str, bool] | None:
    """(Hub repository, commit, whether public and on main) that a release was pushed to last.

    None if it was pushed to none.
    """
    query = select(Job).where(Job.kind == "push", Job.status == "done").order_by(Job.id.desc())
    for job in session.scalars(query):
        commit = (job.result or {}).get("commit")
        if job.config.get("release_id") == release_id and commit:
            aside = job.config.get("pull_request") or job.config.get("branch")
            is_public = bool(job.config.get("public")) and not aside
            return str(job.config["repo"]), str(commit), is_public
    return None


def claim_job(
    session: Session,
    job_id: int | None = None,
    *,
    kinds: Sequence[str] = (),
    slot: str | None = None,
    launcher: str | None = None,
    joins: bool | None = None,
) -> Job | None:
    """Claim the oldest queued job (of these kinds, for this launcher), or the given one.

    A local launcher's jobs are claimed where their files are: in their INF_HOME.

    `joins`: only jobs that join a run another job began (their config has `joins`), or only others.

    The job's status becomes `running`. Returns None if there is none or another process claimed it
    first. Does not commit.
    """
    query = select(Job).where(Job.status == "queued").order_by(Job.id).limit(1)
    if job_id is not None:
        query = query.where(Job.id == job_id)
    if kinds:
        query = query.where(Job.kind.in_(kinds))
    if launcher is not None:
        query = query.where(Job.launcher == launcher)
    if launcher == LOCAL:
        query = query.where(or_(Job.home.is_(None), Job.home.in_(home_ids())))
    if joins is not None:
        joining = func.coalesce(Job.config["joins"].as_boolean(), false())
        query = query.where(joining if joins else ~joining)
    # skip_locked: two supervisors that claim at the same moment get two jobs, none waits
    job = session.scalars(query.with_for_update(skip_locked=True)).first()
    if job is None:
        return None
    now = store_now(session)
    job.status, job.attempt, job.host = "running", job.attempt + 1, socket.gethostname()
    job.started_at = job.heartbeat_at = now
    job.pid, job.finished_at, job.stop_requested = None, None, False
    job.error = job.error_code = job.remedy = None
    job.slot, job.resources = slot, {}
    session.flush()
    return job


def note_process(session: Session, job_id: int, attempt: int, pid: int, log_path: str) -> None:
    """Store which process runs the job and where it logs, also where it has ended already. Does
    not commit."""
    session.execute(
        update(Job)
        .where(Job.id == job_id, Job.attempt == attempt)
        .values(pid=pid, space=process_space(), log_path=log_path)
    )


def is_elsewhere(job: Job) -> bool:
    """Whether the job's files are where this process does not reach them: in another INF_HOME."""
    return job.home is not None and job.home not in home_ids()


def log_here(job: Job) -> Path | None:
    """The path of the job's log; None without one, and where another INF_HOME alone has it."""
    is_here = files_root() or not is_elsewhere(job)
    return Path(job.log_path) if job.log_path and is_here else None


def note_place(session: Session, job_id: int, attempt: int) -> None:
    """Store that this process runs the job, when its launcher cannot know it. Does not commit."""
    place = {"pid": os.getpid(), "space": process_space(), "host": socket.gethostname()}
    _update(session, job_id, attempt, **place)


def note_log(session: Session, job_id: int, attempt: int, log_path: str) -> None:
    """Store the path of the job's log, also for one that has just ended. Does not commit."""
    session.execute(
        update(Job).where(Job.id == job_id, Job.attempt == attempt).values(log_path=log_path)
    )


def beat(
    session: Session,
    job_id: int,
    attempt: int,
    *,
    used: dict[str, Any] | None = None,
    **progress: Any,
) -> bool:
    """Renew the heartbeat; store `done`, `total`, `message` if given, and what rank 0 has `used`.

    Returns whether a stop was requested. Raises Refused if the attempt is no longer current. Does
    not commit.
    """
    if used is not None:
        progress["resources"] = _with_part(session, job_id, 0, used)
    if "message" in progress:
        progress["message"] = redacted(progress["message"])
    _update(session, job_id, attempt, heartbeat_at=store_now(session), **progress)
    return bool(session.scalar(select(Job.stop_requested).where(Job.id == job_id)))


def note_resources(
    session: Session, job_id: int, attempt: int, rank: int, used: dict[str, Any]
) -> None:
    """Store what one process of a job uses; the other processes' entries stay.

    Raises Refused if the attempt is no longer current. Does not commit.
    """
    _update(session, job_id, attempt, resources=_with_part(session, job_id, rank, used))


def _with_part(session: Session, job_id: int, rank: int, used: dict[str, Any]) -> dict[str, Any]:
    """All parts with this one replaced; locks the row until the end of the transaction."""
    # locked: the processes of a job renew their parts of one JSON value at the same time
    query = select(Job.resources).where(Job.id == job_id).with_for_update()
    return {**(session.scalar(query) or {}), str(rank): used}


def show_work(session: Session, job_id: int, attempt: int, **parts: Any) -> None:
    """Store what the job shows of its work, replacing the given parts. Does not commit."""
    _update(session, job_id, attempt, shown={**get_job(session, job_id).shown, **parts})


def finish_job(
    session: Session,
    job_id: int,
    attempt: int,
    status: str,
    *,
    result: dict[str, Any] | None = None,
    error: InfError | None = None,
) -> None:
    """End the job: `status` is one of OVER. Secrets are removed from the error. Does not commit."""
    values: dict[str, Any] = {"status": status, "result": result, "finished_at": utc_now()}
    if error is not None:
        values |= _of_error(error)
    if status == "done" and not (result or {}).get("paused"):
        values["done"] = func.coalesce(Job.total, Job.done)  # progress may lag by half a second
    _update(session, job_id, attempt, **values)
    _record_end(session, job_id, status, error)


def request_stop(session: Session, job_id: int) -> Job:
    """Cancel a queued job at once; request a running one to stop. Does not commit."""
    job = get_job(session, job_id)
    if job.status == "queued":
        job.status, job.finished_at = "cancelled", utc_now()
        _record_end(session, job_id, "cancelled")
    elif job.status == "running":
        job.stop_requested = True
    return job


def requeue_job(session: Session, job_id: int, *, deaths: tuple[int, int] | None = None) -> Job:
    """Queue an ended job again; its handler continues from what is stored.

    `deaths`: what it goes on to count, else it begins anew.

    Raises Refused if it is queued or running, or done without having been paused at a budget.
    Does not commit.
    """
    job = get_job(session, job_id, lock=True)
    if job.status not in OVER:
        raise Refused(f"job {job_id} is {job.status}", "cancel it first", code="job_not_over")
    if job.status == "done" and not (job.result or {}).get("paused"):
        raise Refused(
            f"job {job_id} is done: there is nothing to resume",
            "run it again as a new job",
            code="job_done",
        )
    job.status, job.finished_at, job.stop_requested = "queued", None, False
    others = {name: part for name, part in job.shown.items() if name != DEATHS}
    job.shown = others if deaths is None else others | {DEATHS: list(deaths)}
    job.error = job.error_code = job.remedy = None
    return job


def give_up(session: Session, job_id: int, error: InfError) -> None:
    """Let a lost job fail: it does not start again by itself. Does not commit."""
    lost = update(Job).where(Job.id == job_id, Job.status == "lost")
    session.execute(lost.values(status="failed", **_of_error(error)))
    _record_end(session, job_id, "failed", error)


def silent_jobs(session: Session, *, now: datetime | None = None) -> list[int]:
    """The ids of running jobs without a recent heartbeat; none just after the store's own start."""
    limit = silent_since(session, LOST_AFTER_SECONDS, now=now)
    if limit is None:
        return []
    query = select(Job.id).where(Job.status == "running", Job.heartbeat_at < limit)
    return list(session.scalars(query))


def mark_lost_jobs(
    session: Session, *, now: datetime | None = None, spared: Container[int] = ()
) -> list[int]:
    """Mark running jobs without a recent heartbeat as lost, but the spared ones. Returns their ids.
    Does not commit."""
    limit = silent_since(session, LOST_AFTER_SECONDS, now=now)
    lost = [job_id for job_id in silent_jobs(session, now=now) if job_id not in spared]
    if limit is not None and lost:
        session.execute(
            update(Job)
            .where(Job.id.in_(lost), Job.status == "running", Job.heartbeat_at < limit)
            .values(status="lost", finished_at=utc_now(), **_of_error(SILENT))
        )
        for job_id in lost:
            _record_end(session, job_id, "lost", SILENT)
    return lost


def count_jobs(session: Session) -> dict[str, int]:
    """How many jobs there are by status."""
    rows = session.execute(select(Job.status, func.count()).group_by(Job.status))
    return dict(rows.all())


def record_metrics(session: Session, job_id: int, step: int, values: dict[str, float]) -> None:
    """Store the values of one step; values of the same step are replaced. Does not commit."""
    session.execute(
        delete(MetricPoint).where(
            MetricPoint.job_id == job_id,
            MetricPoint.step == step,
            MetricPoint.name.in_(list(values)),
        )
    )
    session.add_all(
        MetricPoint(job_id=job_id, name=name, step=step, value=value)
        for name, value in values.items()
    )


def metric_series(
    session: Session, job_ids: Sequence[int], *, names: Sequence[str] = (), max_points: int = 1000
) -> dict[int, dict[str, list[tuple[int, float]]]]:
    """The values of jobs as (step, value) by job and name, about `max_points` of each at most.

    A longer series is thinned in the query: the first value of each of `max_points` equal spans of
    steps, and the last of all. Each is one index lookup, so that the cost does not grow with the
    length of the series.
    """
    found: dict[int, dict[str, list[tuple[int, float]]]] = {}
    for job_id in job_ids:
        for name in _measured(session, job_id):
            if not names or name in names:
                found.setdefault(job_id, {})[name] = _series(session, job_id, name, max_points)
    return found


def _measured(session: Session, job_id: int) -> list[str]:
    """The names of a job's metrics; each step finds the next name by one index lookup."""
    names: list[str] = []
    query = select(func.min(MetricPoint.name)).where(MetricPoint.job_id == job_id)
    name = session.scalar(query)
    while name is not None:
        names.append(name)
        name = session.scalar(query.where(MetricPoint.name > name))
    return names


def _series(session: Session, job_id: int, name: str, max_points: int) -> list[tuple[int, float]]:
    mine = (MetricPoint.job_id == job_id, MetricPoint.name == name)
    query = select(MetricPoint.step, MetricPoint.value).where(*mine).order_by(MetricPoint.step)
    rows = [(step, value) for step, value in session.execute(query.limit(max_points + 1))]
    if len(rows) <= max_points:
        return rows
    first = rows[0][0]
    last = session.scalars(select(func.max(MetricPoint.step)).where(*mine)).one()
    span = -(-(last - first) // max_points)
    starts = select(literal(first).label("start")).cte("starts", recursive=True)
    starts = starts.union_all(
        select(starts.c.start + span).where(starts.c.start + span < literal(last))
    )
    nearest = (
        select(func.min(MetricPoint.step))
        .where(*mine, MetricPoint.step >= starts.c.start)
        .correlate(starts)
        .scalar_subquery()
    )
    kept = [*session.scalars(select(nearest).select_from(starts)), last]
    return [
        (step, value) for step, value in session.execute(query.where(MetricPoint.step.in_(kept)))
    ]


def is_this_process_alive(job: Job) -> bool | None:
    """Whether the job's process runs in this space of process ids; None if in another: only its
    heartbeat tells then. Containers share host names, and process ids mean others in each."""
    if job.space != process_space() or job.pid is None:
        return None
    return process_exists(job.pid)  # `os.kill(pid, 0)` would end the process on Windows


def _of_error(error: InfError) -> dict[str, str]:
    """The columns of an error, without secrets."""
    values = {"error": error.message, "error_code": error.code, "remedy": error.remedy}
    return {name: redacted(value) for name, value in values.items()}


def _record_end(session: Session, job_id: int, status: str, error: InfError | None = None) -> None:
    """Add the event `job.done`, `job.failed`, `job.cancelled` or `job.lost`; its data has the error
    that ended the job, by its code."""
    job = session.execute(select(Job.kind, Job.started_by).where(Job.id == job_id)).one()
    why = {} if error is None else _of_error(error)
    record_event(session, job.started_by, f"job.{status}", job_id, kind=job.kind, **why)


def _update(session: Session, job_id: int, attempt: int, **values: Any) -> None:
    done = session.execute(
        update(Job)
        .where(Job.id == job_id, Job.attempt == attempt, Job.status == "running")
        .values(**values)
        .returning(Job.id)
    ).all()
    if not done:
        raise Refused(
            f"attempt {attempt} of job {job_id} is no longer current", code="job_attempt_outdated"
        )
