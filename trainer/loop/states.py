"""The saved states of a training in its work folder, and the history that they hold."""

import json
from pathlib import Path

STATE = "trainer_state.json"


def newest_state(work: Path) -> tuple[int, Path] | None:
    """(step, folder) of the newest complete state; an incomplete one is skipped.

    The trainer writes `trainer_state.json` last.
    """
    found = []
    for folder in work.glob("checkpoint-*"):
        try:
            found.append((int(json.loads((folder / STATE).read_text())["global_step"]), folder))
        except (OSError, ValueError, KeyError):
            continue
    return max(found, default=None)


def ends_of(losses: list[float]) -> tuple[float, float]:
    """Mean loss of the first and of the last fifth of the steps (at most ten each)."""
    count = max(1, min(10, len(losses) // 5))
    first, last = losses[:count], losses[-count:]
    return sum(first) / len(first), sum(last) / len(last)
