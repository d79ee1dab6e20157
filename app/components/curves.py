"""Curves of what a job measured while it ran: loss per step, learning rate, held-out scores."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.components.jobs import LIVE, read_job
from app.visit import failures_shown
from db import jobs
from db.store import open_store
from db.tables import MetricPoint

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Series = Mapping[str, Sequence[tuple[int, float]]]
EVERY_SECONDS = 2.0
TRAINING = ("loss", "learning_rate", "grad_norm")
MOST_POINTS = 2000


def series_of(points: Iterable[MetricPoint]) -> dict[str, list[tuple[int, float]]]:
    """Points by name, in order of steps."""
    found: dict[str, list[tuple[int, float]]] = {}
    for point in points:
        found.setdefault(point.name, []).append((point.step, point.value))
    return {name: sorted(values) for name, values in found.items()}


def smoothed(values: Sequence[tuple[int, float]], weight: float) -> list[tuple[int, float]]:
    """Exponential moving average, freed of its start: mean of the past with weights weight^age.

    Weight 0 gives the values back. The sum of weights divides, so that the first values do not
    pull towards zero.
    """
    total = share = 0.0
    found = []
    for step, value in values:
        total = total * weight + value
        share = share * weight + 1.0
        found.append((step, total / share))
    return found


def thinned(
    values: Sequence[tuple[int, float]], most: int = MOST_POINTS
) -> list[tuple[int, float]]:
    """At most about `most` points, the last always among them."""
    every = max(1, -(-len(values) // most))
    kept = list(values[::every])
    if values and kept[-1] != values[-1]:
        kept.append(values[-1])
    return kept


def curve_figure(lines: Mapping[str, Sequence[tuple[int, float]]], *, title: str) -> "Figure":
    """One line per name over the steps."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for name, values in lines.items():
        steps, numbers = zip(*thinned(values), strict=True) if values else ((), ())
        mode = "lines+markers" if len(values) < 40 else "lines"
        figure.add_scatter(x=steps, y=numbers, name=name, mode=mode)
    figure.update_layout(
        title={"text": title, "font": {"size": 15}},
        xaxis_title="step",
        height=300,
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
        hovermode="x unified",
        showlegend=len(lines) > 1,
        legend={"orientation": "h", "y": -0.25},
    )
    return figure


def draw_curves(job_id: int, *, key: str) -> None:
    """The curves of a job, renewed while it runs."""
    every = EVERY_SECONDS if read_job(job_id).status in LIVE else None
    st.fragment(_draw, run_every=every)(job_id, key)


def _draw(job_id: int, key: str) -> None:
    with failures_shown():
        with open_store().read() as session:
            series = series_of(jobs.metric_points(session, job_id))
        if "loss" not in series:
            st.caption("The curve begins with the first logged step.")
            return
        left, right = st.columns(2)
        with left:
            _show(curve_figure({"loss": series["loss"]}, title="Loss"), f"{key}.loss")
        held_out = {name: values for name, values in series.items() if name not in TRAINING}
        with right:
            if held_out:
                figure = curve_figure(held_out, title="Held-out groups")
                _show(figure, f"{key}.held_out")
            elif "learning_rate" in series:
                figure = curve_figure({"lr": series["learning_rate"]}, title="Learning rate")
                _show(figure, f"{key}.rate")


def _show(figure: Any, key: str) -> None:
    st.plotly_chart(figure, key=key, config={"displayModeBar": False})
