"""How a run is named and described on pages."""

from dataclasses import replace

from sqlalchemy.orm import Session

from app.jobs.card import LIVE as LIVE_JOB
from db.jobs import jobs
from db.run.runs import RunSummary
from db.run.workers import WorkerTotals

LIVE = ("created", "running")
LOST = (
    "Nobody is at it any more: its last worker was killed, or its machine went down. "
    "What was answered is kept; Resume goes on."
)


def run_name(run: RunSummary) -> str:
    """One line for a select box."""
    offline = ", offline" if run.offline and run.recipe != "offline" else ""
    # while a run works, this is drawn once and what stands below it every two seconds
    state = "not finished" if run.status in LIVE else f"{run.status} · {run.kept:,} kept"
    return f"run {run.id} · {run.dataset} · {run.recipe}{offline} · {state}"


def as_it_is(session: Session, run: RunSummary, workers: WorkerTotals) -> RunSummary:
    """The run, `lost` where it counts as running but no worker lives and no job is about to."""
    if run.status != "running" or workers.alive:
        return run
    live = jobs.list_jobs(session, kind="curate", statuses=LIVE_JOB)
    if any(job.config.get("run_id") == run.id for job in live):
        return run
    return replace(run, status="lost", error=LOST)
