"""A training in words, for the page and the command: its command, what it takes, its equation."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from app.text.numbers import counted, duration
from trainer.launch.forecast import Forecast
from trainer.objectives.names import Objective


def create_command(release: str, settings: Mapping[str, Any], more: Sequence[str] = ()) -> str:
    """The command that trains on a release (number or folder) with these settings."""
    start = ("inf", "trainings", "create", "--release", release, "--out", "DIR")
    return shlex.join([*start, *(f"{name}={value}" for name, value in settings.items()), *more])


def measured_text(found: Mapping[str, Any]) -> str:
    """Steps, time and peak memory that a few steps measured, in one line."""
    training, scoring = (
        duration(timedelta(seconds=found[name])) for name in ("seconds", "scoring_seconds")
    )
    return (
        f"{counted(found['steps'], 'step')}, about {training} of training and {scoring} of "
        f"scoring; peak memory about {found['peak_bytes'] / 1e9:.1f} GB ({found['device']})"
    )


def forecast_text(found: Forecast) -> str:
    """What a training will take as far as it is known before it starts, in one line."""
    parts = [f"about {found.steps:,} steps"]
    if found.seconds is None:
        parts.append("time unknown until this model has been trained once")
    else:
        span = duration(timedelta(seconds=found.seconds))
        parts.append(f"about {span} (from {counted(found.trainings, 'earlier training')})")
    if found.least_bytes is not None:
        available = found.available_bytes
        note = "in each process" if available is None else f"{available / 1e9:.0f} GB available"
        parts.append(f"more than {found.least_bytes / 1e9:.1f} GB of memory ({note})")
    return " · ".join(parts)


def equation(objective: Objective) -> str:
    """The LaTeX of an objective: Eq. 6 (uni) or Eq. 7 (multi) with its terms, or a baseline's."""
    terms = r"\{" + ",".join(objective.terms) + r"\}"
    up = r"e^{s^+/\tau}"
    if objective.baseline:
        negatives = rf"\sum_{{{objective.baseline.negatives}}} e^{{s_{{P}}/\tau}}"
        return (
            rf"\ell_{{\text{{{objective.baseline.symbol}}}}}=-\log\frac{{{up}}}{{{up}+{negatives}}}"
        )
    if len(objective.terms) == 1:
        term = objective.terms[0]
        negatives = rf"\sum_{{n\in\mathcal N_{{{term}}}}} e^{{s_n/\tau}}"
        return rf"\ell_{{{term}}}=-\log\frac{{{up}}}{{{up}+{negatives}}}"
    negatives = r"\sum_{n\in\mathcal N_y} e^{s_n/\tau}"
    name = rf"\ell_{{{','.join(objective.terms)}}}"
    if objective.mode == "uni":
        return rf"{name}^{{uni}}=-\sum_{{y\in{terms}}}\log\frac{{{up}}}{{{up}+{negatives}}}"
    return rf"{name}^{{multi}}=-\log\frac{{{up}}}{{{up}+\sum_{{y\in{terms}}}{negatives}}}"
