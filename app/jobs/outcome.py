"""What came out of a finished job, and what a job reports, in one line. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from app.text.numbers import counted
from db.tables import Job

Result = Mapping[str, Any]


def summary(job: Job) -> str:
    """One line: the first of our own error, the last of a traceback, else the progress message;
    of a job that is done what came out of it.
    """
    if job.status == "done":
        return outcome(job.kind, job.result or {})
    lines = (job.error or job.message or "").strip().splitlines() or [""]
    is_crash = any(line.startswith(("Traceback", "  File ", "    ")) for line in lines)
    shown = [line for line in lines if not line.startswith("(Background on")]
    return shown[-1] if is_crash else shown[0]


def outcome(kind: str, result: Result) -> str:
    """The result in a few words; empty for a kind or a result that has none."""
    describe = OUTCOMES.get(kind)
    try:
        return describe(result) if describe else ""
    except (KeyError, TypeError, ValueError):  # of another version, or without that part
        return ""


def _curated(result: Result) -> str:
    return f"{result['kept']:,} of {counted(result['generated'], 'group')} kept"


def _judged(result: Result) -> str:
    return f"{counted(result['items'], 'item')} judged by {result['judge']}"


def _trained(result: Result) -> str:
    first, last = result["loss_first"], result["loss_last"]
    return f"loss {first:.3f} → {last:.3f} (means of first, last steps)"


def _evaluated(result: Result) -> str:
    return f"{counted(len(result['models']), 'model')} on {result['benchmark']}"


def _embedded(result: Result) -> str:
    corpora = result["corpora"]
    return f"measured {', '.join(str(corpus['corpus']) for corpus in corpora)}"


OUTCOMES: dict[str, Callable[[Result], str]] = {
    "curate": _curated,
    "judge": _judged,
    "train": _trained,
    "evaluate": _evaluated,
    "embed": _embedded,
    "project": lambda result: f"map of {counted(result['points'], 'text')}",
    "export": lambda result: (
        f"release {result['release_id']}: {counted(result['groups'], 'group')}"
    ),
}
