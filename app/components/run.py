"""How a run is named and described on pages."""

from db.runs import RunSummary

LIVE = ("created", "running")


def run_name(run: RunSummary) -> str:
    """One line for a select box."""
    offline = ", offline" if run.offline and run.recipe != "offline" else ""
    # while a run works, this is drawn once and what stands below it every two seconds
    state = "at work" if run.status in LIVE else f"{run.status} · {run.kept:,} kept"
    return f"run {run.id} · {run.dataset} · {run.recipe}{offline} · {state}"
