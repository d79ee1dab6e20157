"""The name and the effective status of a run on pages."""

from sqlalchemy.orm import Session

from app.jobs_page.card import LIVE as LIVE_JOB
from db.jobs import jobs
from db.run.runs import RunSummary
from db.run.workers import WorkerTotals

LIVE = ("created", "running")
LOST = (
    "No worker is running: the last one was killed, or its machine went down. "
    "Answers are kept; choose Resume to continue."
)


def run_name(run: RunSummary) -> str:
    """The label of a run in a select box."""
    offline = ", offline" if run.offline and run.recipe != "offline" else ""
    # drawn once, while the details below refresh every two seconds: so no count here
    state = "not finished" if run.status in LIVE else f"{run.status} · {run.kept:,} kept"
    return f"run {run.id} · {run.dataset} · {run.recipe}{offline} · {state}"


def with_actual_status(session: Session, run: RunSummary, workers: WorkerTotals) -> RunSummary:
    """The run, with status `lost` if it is marked running but has neither worker nor live job."""
    if run.status != "running" or workers.alive:
        return run
    live = jobs.list_jobs(session, kind="curate", statuses=LIVE_JOB)
    if any(job.config.get("run_id") == run.id for job in live):
        return run
    return run.model_copy(update={"status": "lost", "error": LOST})
