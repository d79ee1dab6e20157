"""`inf jobs`: list and control jobs, and run the supervisor."""

import logging

import click

from app.cli.kit.doors import Noun
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, launcher_options, reporting
from app.cli.store.follow_log import follow_log
from app.jobs import launching
from app.operations import jobs as operations
from app.text.remedies import in_commands
from db.logs import log_with_time

jobs = Noun("jobs", former={"job_id": "id"})


def _progress(row: Result) -> str:
    return f"{row['done']}/{row['total']}" if row["total"] else str(row["done"] or "")


jobs.listed(
    operations.list_some,
    click.option(
        "--status",
        "statuses",
        multiple=True,
        type=click.Choice(operations.STATUSES),
        help="Only of this status; repeatable.",
    ),
    columns=(
        *(("job", "id"), "kind", "status", ("progress", _progress)),
        ("message or outcome", lambda row: in_commands(row["summary"])),
    ),
    empty="no such jobs",
    limit=50,
    max_columns=80,
)


def _shown(result: Result) -> str:
    order = (
        *("job_id", "kind", "status", "started_by", "created_at", "finished_at"),
        *("command", "launcher", "host", "slot", "error", "code", "remedy", "warning"),
    )
    shown = (f"{name:<12} {result[name]}" for name in order if result[name] is not None)
    return in_commands("\n".join(shown))


jobs.door(operations.show, text=_shown)


def _logged(result: Result) -> str:
    if "status" in result:
        return f"job {result['job_id']}: {result['status']}"
    return result["log"] or "the log is empty"


@jobs.command()
@request_options(operations.JobLog)
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the job has ended.")
@reporting(_logged)
def logs(request: operations.JobLog, follow: bool) -> Result | operations.JobLogged:
    """Print the last lines of a job's log.

    Ctrl-C ends --follow, not the job.
    """
    if follow and click.get_current_context().params["as_json"]:
        raise click.UsageError("--follow prints lines: it cannot be combined with --json")
    actor, job_id = command_actor(), request.job_id
    if follow:
        ended = follow_log(lambda: operations.find(actor, job_id), request.lines, write=click.echo)
        return {"job_id": job_id, "status": ended}
    return operations.JobLogged(job_id=job_id, log=operations.log(actor, request))


for _change in (operations.cancel, operations.resume):
    jobs.door(_change, text=lambda result: f"job {result['id']}: {result['status']}")


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
def work(idle_seconds: float) -> operations.JobsTaken:
    """Run queued jobs in this machine's slots (started automatically when needed).

    With --launcher ray: submit them to the cluster and supervise them there.
    """
    log_with_time(logging.INFO)
    is_given = click.get_current_context().meta.get("inf.launcher") == "ray"
    cluster = launching.chosen_launcher() if is_given else ""
    return operations.work(command_actor(), idle_seconds=idle_seconds, cluster=cluster)
