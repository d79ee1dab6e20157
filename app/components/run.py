"""How a run is named and described on pages."""

from db.runs import RunSummary


def run_name(run: RunSummary) -> str:
    """One line for a select box."""
    offline = ", offline" if run.offline and run.recipe != "offline" else ""
    return (
        f"run {run.id} · {run.dataset} · {run.recipe}{offline} · {run.status} · {run.kept:,} kept"
    )
