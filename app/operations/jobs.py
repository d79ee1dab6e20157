"""Jobs: list, show, read the log, cancel, resume, run again."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import computed_field
from sqlalchemy import select

from app.access.identity import Actor
from app.access.permissions import require
from app.jobs import launching, supervisor, supervisors
from app.jobs.entry import require_own_files
from app.jobs.handed_over import forget, hand_over
from app.jobs.kinds import KINDS
from app.jobs.outcome import summary
from app.jobs.places import require_own, take_budget_of
from app.jobs.processes import command_of
from app.jobs.ray_cluster import RayCluster
from app.jobs.ray_supervisor import supervise_ray
from app.operations.acting import admitted, queued, reading, writing
from app.operations.doors.courier import sending
from db.errors import Refused
from db.events import record_event
from db.jobs import jobs
from db.jobs.resources import missing_gpu_warning, parts_of, sum_of
from db.modules import load
from db.requests import Request, option
from db.rows import Json, Listed, Row
from db.store.scope import unscoped
from db.store.store import open_store
from db.tables import Job

RIGHT = "jobs"
# The request that is a job's config, by kind (and what it does), and the operation that takes it.
STARTS: Mapping[str, tuple[str, str]] = {
    "curate": ("curation.run.starting:RunWork", "app.operations.runs:work_on"),
    "judge": ("curation.judging.request:JudgeStart", "app.operations.judging.studies:judge"),
    "embed": ("analysis.request:DiversityStart", "app.operations.analyses:start"),
    "embed near_duplicates": ("analysis.request:DuplicatesStart", "app.operations.analyses:start"),
    "embed contamination": (
        "analysis.request:ContaminationStart",
        "app.operations.analyses:start",
    ),
    "project": ("analysis.request:CoverageStart", "app.operations.analyses:start"),
    "train": ("trainer.launch.request:TrainStart", "app.operations.trainings:create"),
    "evaluate": ("trainer.evaluate.request:EvaluationStart", "app.operations.evaluations:create"),
    "export": ("curation.release.request:ReleasePlan", "app.operations.releases:create"),
    "push": ("curation.hub.request:PushStart", "app.operations.releases:push"),
    "backup": ("curation.backups:BackupPlan", "app.operations.store:back_up"),
    "import": ("curation.importing.request:DatasetImport", "app.operations.datasets:import_files"),
    "pull": ("curation.hub.request:DatasetPull", "app.operations.datasets:pull"),
    "mine": ("curation.mining.request:NegativesMine", "app.operations.datasets:mine"),
    "study": ("curation.judging.request:StudyPlan", "app.operations.judging.studies:create_as_job"),
    "study agreement": (
        "curation.judging.request:AgreementStart",
        "app.operations.judging.agreement:compute",
    ),
}
STATUSES = ("running", "queued", "done", "failed", "cancelled", "lost")


class JobLog(Request):
    """The end of a job's log."""

    job_id: int = option(..., "The job.", names=(), metavar="JOB_ID")
    lines: int = option(50, "How many of its last lines.", ge=0, le=100_000)


class JobLogged(Row):
    """The end of a job's log."""

    job_id: int
    log: str


class JobRow(Row):
    """A job in a list: `done` of `total` pieces, a `share` of the work; `summary`: its outcome.

    Of one that did not end well `error` is the message, `code` that of the error, `remedy` what to
    do about it.
    """

    id: int
    kind: str
    status: str
    done: int
    total: int | None
    share: float | None
    message: str
    error: str | None
    code: str | None
    remedy: str | None
    started_by: str
    attempt: int
    summary: str
    created_at: datetime
    started_at: datetime | None
    heartbeat_at: datetime | None
    finished_at: datetime | None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def name(self) -> str:
        """Its kind and id."""
        return f"{self.kind} {self.id}"


class JobShown(JobRow):
    """A job with its config, its result, and where it runs.

    `resources`: what its processes use, in all and each.
    """

    command: str
    host: str | None
    pid: int | None
    slot: str | None
    launcher: str
    resources: Json
    config: Json
    result: Json | None
    warning: str | None


class JobChanged(Row):
    """A job and its status after a change."""

    id: int
    status: str


def list_some(
    actor: Actor, *, statuses: Sequence[str] = (), limit: int = 50, offset: int = 0
) -> Listed[JobRow]:
    """List jobs, newest first."""
    _mark_lost()
    with reading(actor, RIGHT) as session:
        found = jobs.list_jobs(session, statuses=tuple(statuses), limit=limit, offset=offset)
        by_status = jobs.count_jobs(session)
    total = sum(n for status, n in by_status.items() if not statuses or status in statuses)
    rows = [JobRow.of(job, **_made_of(job)) for job in found]
    return Listed[JobRow].page(rows, offset=offset, total=total)


def newest(actor: Actor, kind: str, config: Mapping[str, str | int] | None = None) -> Job | None:
    """The newest job of the kind, with these values in its config, that the actor may see."""
    _mark_lost()
    with reading(actor, RIGHT) as session:
        return next(iter(jobs.list_jobs(session, kind=kind, config=config, limit=1)), None)


def count(actor: Actor) -> dict[str, int]:
    """How many jobs there are by status."""
    with reading(actor, RIGHT) as session:
        return jobs.count_jobs(session)


def find(actor: Actor, job_id: int) -> Job:
    """The current row of a job, which a card draws while it runs. Raises NotFound."""
    _mark_lost()
    with reading(actor, RIGHT) as session:
        return jobs.get_job(session, job_id)


def metrics(
    actor: Actor, job_ids: Sequence[int], *, names: Sequence[str] = ()
) -> dict[int, dict[str, list[tuple[int, float]]]]:
    """The metrics of jobs by job id and name, as (step, value): all, or these."""
    with reading(actor, RIGHT) as session:
        seen = session.scalars(select(Job.id).where(Job.id.in_(job_ids))).all()
        return jobs.metric_series(session, seen, names=names)


def show(actor: Actor, job_id: int) -> JobShown:
    """Show one job: config, progress, result. Raises NotFound."""
    job = find(actor, job_id)
    parts = parts_of(job.resources)
    return JobShown.of(
        job,
        **_made_of(job),
        command=shlex.join(["python", *command_of(job)]),
        resources={**sum_of(parts), "parts": parts},
        warning=missing_gpu_warning(parts) or None,
    )


def _made_of(job: Job) -> dict[str, Any]:
    """What a row has that is no column of its job."""
    remedy = launching.what_to_do(job) or None
    message = launching.waiting_for(job) or job.message
    found = {"summary": summary(job), "share": _share(job), "code": job.error_code}
    return found | {"remedy": remedy, "message": message}


def _share(job: Job) -> float | None:
    if job.status == "done":
        return 1.0
    return min(1.0, job.done / job.total) if job.total else None


def log(actor: Actor, wanted: JobLog) -> str:
    """The last lines of a job's log, secrets removed. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        job = jobs.get_job(session, wanted.job_id)
    return launching.log_elsewhere(job) or launching.log_tail(job, wanted.lines)


def cancel(actor: Actor, job_id: int) -> JobChanged:
    """Cancel a queued job, or request that a running one stops. Raises Refused, NotFound."""
    with writing(actor, _permission(actor, job_id)) as session:
        job = jobs.get_job(session, job_id)
        if job.status in jobs.OVER:
            raise Refused(
                f"job {job_id} is {job.status}: there is nothing to cancel",
                f"`jobs show {job_id}` has its outcome",
                code="job_over",
            )
        jobs.request_stop(session, job_id)
        if job.status != "running":
            forget(job)
        record_event(session, actor.name, "job.cancel", job_id)
        status = "stopping" if job.status == "running" else job.status
    return JobChanged(id=job_id, status=status)


def resume(actor: Actor, job_id: int) -> JobChanged:
    """Queue an ended job again; it continues from what it stored.

    Raises Refused, NotFound, as a launch of its config by the actor.
    """
    with admitted(actor, _permission(actor, job_id)) as (session, now):
        job = jobs.get_job(session, job_id)
        require_own(session, now, job.kind, job.config)
        job = jobs.requeue_job(session, job_id)
        take_budget_of(session, now, job, is_new=False)
        hand_over(session, job)
        record_event(session, actor.name, "job.resume", job_id)
    supervisors.ensure_taken(open_store(), job.launcher)
    return JobChanged(id=job_id, status=job.status)


def run_again(actor: Actor, job_id: int) -> JobChanged:
    """Start what a job did once more: its operation, with its config as the request.

    Raises as that operation does for the actor, whoever had started the job.
    """
    with reading(actor, RIGHT) as session:
        job = jobs.get_job(session, job_id)
    if job.kind == "restore":  # it would replace all that was stored since
        raise Refused(
            "a restore replaces all that was stored since",
            "start it with `store restore FILE detach=yes`",
            code="restore_needs_command",
        )
    _, operation = _start_of(job.kind, job.config)
    wanted = request_of(job.kind, job.config)
    return JobChanged(id=load(operation)(actor, wanted, queued), status="queued")


def request_of(kind: str, config: Mapping[str, Any]) -> Request:
    """The request that a job's config is, an earlier version's too. Raises BadInput."""
    request: Request = load(_start_of(kind, config)[0]).read(config)
    return request


def _start_of(kind: str, config: Mapping[str, Any]) -> tuple[str, str]:
    return STARTS.get(f"{kind} {config.get('what')}") or STARTS[kind]


class JobsTaken(Row):
    """How many jobs a supervisor ran, or submitted."""

    taken: int


def work(actor: Actor, *, idle_seconds: float, cluster: str = "") -> JobsTaken:
    """Run queued jobs in this machine's slots, or submit them to a Ray cluster, until none is left.

    Webhooks are sent meanwhile. Raises BadInput if another
    process does that already.
    """
    require(actor, RIGHT)
    with sending():
        if cluster:
            ray = RayCluster(cluster)
            return JobsTaken(taken=supervise_ray(open_store(), ray, idle_seconds=idle_seconds))
        return JobsTaken(taken=supervisor.supervise(open_store(), idle_seconds=idle_seconds))


def ensure_worked(actor: Actor) -> None:
    """Start a supervisor for queued jobs of this machine, and of the cluster if one is chosen.

    Raises Refused where INF_FILES is another store's: its logs would be shown as this one's.
    """
    require(actor, RIGHT)
    require_own_files(open_store())
    supervisors.ensure_supervisor(open_store())
    if (launcher := launching.chosen_launcher()) != jobs.LOCAL:
        supervisors.ensure_taken(open_store(), launcher)


def _mark_lost() -> None:
    """Mark jobs without a recent heartbeat; a write only where there is one."""
    store = open_store()
    with unscoped():
        with store.read() as session:
            silent = jobs.silent_jobs(session)
            spared = launching.living_here(session, silent)
        if len(silent) > len(spared):
            with store.write() as session:
                jobs.mark_lost_jobs(session, spared=spared)
                session.commit()


def _permission(actor: Actor, job_id: int) -> str:
    """The permission that launches jobs of its kind: what is changed with it is in its scope."""
    with reading(actor, RIGHT) as session:
        return KINDS[jobs.get_job(session, job_id).kind].permission
