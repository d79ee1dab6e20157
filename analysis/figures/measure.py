"""A number that may be undefined: then it is None, with the reason, never 0 or 1."""

from dataclasses import dataclass


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
