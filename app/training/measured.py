"""A measured estimate of a training in words, for the page and the command."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from app.text.numbers import counted, duration


def measured_text(found: Mapping[str, Any]) -> str:
    """Steps, time and peak memory in one line."""
    training, scoring = (
        duration(timedelta(seconds=found[name])) for name in ("seconds", "scoring_seconds")
    )
    return (
        f"{counted(found['steps'], 'step')}, about {training} of training and {scoring} of "
        f"scoring; peak memory about {found['peak_bytes'] / 1e9:.1f} GB ({found['device']})"
    )
