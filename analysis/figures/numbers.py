"""Measures and durations as pages, commands and cards show them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

Cells = dict[str, str | float | None]
"""A row of a table by its columns."""


def score(value: float | None) -> str:
    """A measure with four digits, "undefined" for None."""
    return "undefined" if value is None else f"{value:.4f}"


def share_text(
    value: float | None, interval: Sequence[float] | None, why: str = "too few groups"
) -> str:
    """A share that was estimated from a sample, in percent, with its interval or why it has none: a
    bare `0.0%` from 0 of 4 would look like a known value. "undefined" without a value."""
    if value is None:
        return "undefined"
    if not interval:
        return f"{value:.1%} ({why} for an interval)"
    low, high = interval
    return f"{value:.1%} ({low:.1%} to {high:.1%})"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 group`, `1,200 groups`, `2 studies` (irregular plural given)."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(span: timedelta) -> str:
    """A span in at most two units: `45 s`, `3 min 20 s`, `2 h 5 min`."""
    seconds = max(0, round(span.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"


# A number that may be undefined: then it is None, with the reason, never 0 or 1.
@dataclass(frozen=True)
class Measure:
    """A value, or the reason why there is none."""

    value: float | None
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.value is None) != (self.reason is not None):
            raise ValueError("a measure has a value or a reason, exactly one of them")


def undefined(reason: str) -> Measure:
    """A measure without a value."""
    return Measure(None, reason)
