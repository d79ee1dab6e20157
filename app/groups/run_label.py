"""The name of a run on pages."""

from app.operations.overview.run import LIVE
from db.run.runs import RunSummary


def run_name(run: RunSummary) -> str:
    """The label of a run in a select box."""
    offline = ", offline" if run.offline and run.recipe != "offline" else ""
    # drawn once, while the details below refresh every two seconds: so no count here
    state = "not finished" if run.status in LIVE else f"{run.status} · {run.kept:,} kept"
    return f"run {run.id} · {run.dataset} · {run.recipe}{offline} · {state}"
