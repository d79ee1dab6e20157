"""`inf jobs`: list and control jobs, and run the supervisor."""

import shlex
from datetime import datetime

import click

from app.cli.kit.report import Result, launcher_options, me, ready_store, reporting
from app.cli.store.follow_log import follow_log
from app.jobs import launching, supervisor, supervisors
from app.jobs.processes import command_of
from app.jobs.ray_cluster import RayCluster
from app.jobs.ray_supervisor import supervise_ray
from db.jobs import jobs as queue
from db.jobs.resources import missing_gpu_warning, parts_of, sum_of
from db.people.audit import record_audit
from db.tables import Job

STATUSES = ("queued", "running", *queue.OVER)


@click.group()
def jobs() -> None:
    """List, follow, cancel and resume jobs."""


def as_row(job: Job) -> Result:
    """A job as JSON."""
    moments = {
        name: _iso(getattr(job, name))
        for name in ("created_at", "started_at", "heartbeat_at", "finished_at")
    }
    fields = ("kind", "status", "done", "total", "message", "error", "started_by", "attempt")
    return {"job_id": job.id, **{name: getattr(job, name) for name in fields}, **moments}


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _line(row: Result) -> str:
    progress = f"{row['done']}/{row['total']}" if row["total"] else str(row["done"] or "")
    message = (row["error"] or row["message"] or "").splitlines()
    return f"{row['job_id']:>6}  {row['kind']:<9} {row['status']:<10} {progress:<12} " + (
        message[0] if message else ""
    )


@jobs.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only jobs of this status.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@reporting(lambda result: "\n".join(map(_line, result["jobs"])) or "no jobs yet")
def list_(status: str | None, limit: int) -> Result:
    """List jobs, newest first."""
    store = ready_store()
    with store.write() as session:
        queue.mark_lost_jobs(session)
        session.commit()
        found = queue.list_jobs(session, statuses=(status,) if status else (), limit=limit)
        return {"jobs": [as_row(job) for job in found]}


def _shown(result: Result) -> str:
    order = (
        *("job_id", "kind", "status", "started_by", "created_at", "finished_at"),
        *("command", "launcher", "host", "slot", "error", "remedy", "warning"),
    )
    return "\n".join(f"{name:<12} {result[name]}" for name in order if result[name] is not None)


@jobs.command()
@click.argument("job_id", type=int)
@reporting(_shown)
def show(job_id: int) -> Result:
    """Show one job: config, progress, result."""
    store = ready_store()
    with store.write() as session:
        queue.mark_lost_jobs(session)
        session.commit()
        job = queue.get_job(session, job_id)
        found = parts_of(job.resources)
        return {
            **as_row(job),
            "command": shlex.join(["python", *command_of(job)]),
            "host": job.host,
            "pid": job.pid,
            "slot": job.slot,
            "launcher": job.launcher,
            "resources": {**sum_of(found), "parts": found},
            "config": job.config,
            "result": job.result,
            "remedy": launching.what_to_do(job) or None,
            "warning": missing_gpu_warning(found) or None,
        }


def _logged(result: Result) -> str:
    if "status" in result:
        return f"job {result['job_id']}: {result['status']}"
    return result["log"] or "the log is empty"


@jobs.command()
@click.argument("job_id", type=int)
@click.option("--lines", type=click.IntRange(min=0), default=50, show_default=True)
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the job has ended.")
@reporting(_logged)
def logs(job_id: int, lines: int, follow: bool) -> Result:
    """Print the last lines of a job's log.

    Ctrl-C ends --follow, not the job.
    """
    if follow and click.get_current_context().params["as_json"]:
        raise click.UsageError("--follow prints lines: it cannot be combined with --json")
    store = ready_store()
    if follow:
        return {"job_id": job_id, "status": follow_log(store, job_id, lines, write=click.echo)}
    with store.read() as session:
        job = queue.get_job(session, job_id)
    return {"job_id": job_id, "log": launching.log_tail(job, lines)}


@jobs.command()
@click.argument("job_id", type=int)
@reporting(lambda result: f"job {result['job_id']}: {result['status']}")
def cancel(job_id: int) -> Result:
    """Cancel a queued job, or request that a running one stops."""
    store = ready_store()
    with store.write() as session:
        job = queue.request_stop(session, job_id)
        record_audit(session, me(), "job.cancel", str(job_id))
        session.commit()
        status = "stopping" if job.status == "running" else job.status
        return {"job_id": job_id, "status": status}


@jobs.command()
@click.argument("job_id", type=int)
@reporting(lambda result: f"job {result['job_id']}: {result['status']}")
def resume(job_id: int) -> Result:
    """Queue a finished job again; it continues from what it stored."""
    store = ready_store()
    with store.write() as session:
        job = queue.requeue_job(session, job_id)
        status, launcher = job.status, job.launcher
        record_audit(session, me(), "job.resume", str(job_id))
        session.commit()
    supervisors.ensure_taken(store, launcher)
    return {"job_id": job_id, "status": status}


@jobs.command()
@click.option(
    "--idle-seconds",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="Exit after this long without jobs.",
)
@launcher_options
@reporting(lambda result: f"no more jobs; ran {result['taken']}")
def work(idle_seconds: float) -> Result:
    """Run queued jobs in this machine's slots (started automatically when needed).

    With --launcher ray: submit them to the cluster and supervise them there.
    """
    store, launcher = ready_store(), launching.chosen_launcher()
    if launcher != queue.LOCAL and click.get_current_context().meta.get("inf.launcher") == "ray":
        cluster = RayCluster(launcher)
        return {"taken": supervise_ray(store, cluster, idle_seconds=idle_seconds)}
    return {"taken": supervisor.supervise(store, idle_seconds=idle_seconds)}
