"""Curves of a job's metrics per step: loss, learning rate, held-out scores."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING

import streamlit as st

from analysis.figures.printed import printed
from app.access.session_user import failures_shown
from app.jobs_page.actions import read_job, read_metrics
from app.jobs_page.card import LIVE
from app.kit.figure import draw_downloads, draw_plot, side_by_side
from app.kit.page import draw_drawer
from app.text.numbers import counted

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

EVERY_SECONDS = 2.0
PROBE = "probe/"  # drawn by app.training.watched
PARTS = {"All": 1.0, "Last half": 0.5, "Last tenth": 0.1}
ALL_STEPS = "All"
LEAST = 3  # points of a curve: the scores before and after are in the table
OPEN = ("loss", "instruction-flip")  # the others are a click away
ORDER = (
    "loss",
    "loss/P",
    "loss/I",
    "loss/IQ",
    "strict",
    "instruction-flip",
    "query-flip",
    "natural-flip",
    "natural-first",
    "right-first",
    "plain-ndcg@10",
    "ndcg@10",
    "p-mrr",
    "map",
    "mrr",
    "learning_rate",
    "grad_norm",
)
TITLES = {
    "loss": "Loss",
    "loss/P": "Loss of the term P",
    "loss/I": "Loss of the term I",
    "loss/IQ": "Loss of the term IQ",
    "strict": "Held-out strict group accuracy",
    "instruction-flip": "Held-out instruction flip",
    "query-flip": "Held-out query flip",
    "natural-flip": "Natural probe: instruction flip",
    "natural-first": "Natural probe: right passage first of four",
    "weights_moved": "Share of weights that a step moves",
    "right-first": "Right first of all held-out passages",
    "plain-ndcg@10": "Held-out nDCG@10 of queries without instructions",
    "ndcg@10": "Held-out nDCG@10",
    "map": "Held-out MAP",
    "mrr": "Held-out MRR",
    "p-mrr": "Held-out p-MRR",
    "learning_rate": "Learning rate",
    "grad_norm": "Gradient norm",
    "tokens_per_second": "Tokens per second",
}


def smoothed(values: Sequence[tuple[int, float]], weight: float) -> list[tuple[int, float]]:
    """Bias-corrected exponential moving average: mean of past values weighted by weight^age.

    Weight 0 returns the values. Dividing by the sum of weights keeps the first values from being
    pulled towards zero.
    """
    total = share = 0.0
    found = []
    for step, value in values:
        total = total * weight + value
        share = share * weight + 1.0
        found.append((step, total / share))
    return found


def curve_figure(lines: Mapping[str, Sequence[tuple[int, float]]], *, title: str) -> "Figure":
    """One line per name over the steps."""
    import plotly.graph_objects as go

    from analysis.figures.figures import CATEGORY_COLOURS, escape

    figure = go.Figure()
    colours = cycle(CATEGORY_COLOURS)
    for (name, values), colour in zip(lines.items(), colours, strict=False):
        steps, numbers = zip(*values, strict=True) if values else ((), ())
        mode = "lines+markers" if len(values) < 40 else "lines"
        line = {"color": colour}
        figure.add_scatter(x=steps, y=numbers, name=escape(name), mode=mode, line=line)
    figure.update_layout(
        title={"text": escape(title), "font": {"size": 15}},
        xaxis_title="step",
        yaxis={"exponentformat": "power", "minexponent": 5},
        height=300,
        hovermode="x unified",
        showlegend=len(lines) > 1,
    )
    return figure


def draw_curves(job_ids: Sequence[int], *, key: str, names: Mapping[int, str]) -> None:
    """The curves of jobs, one line per job, refreshed while one of them runs."""
    is_live = any(read_job(job_id).status in LIVE for job_id in job_ids)
    draw = st.fragment(_draw, run_every=EVERY_SECONDS if is_live else None)
    draw(tuple(job_ids), key, dict(names), is_live)


def _draw_controls(key: str) -> tuple[float, float]:
    """How much the curves are smoothed, and which share of the steps is shown."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        smoothing = st.slider(
            "Smoothing",
            *(0.0, 0.99, 0.0, 0.01),
            key=f"{key}.smoothing",
            width=260,
            persist_state="session",
        )
        part = st.segmented_control(
            "Steps",
            PARTS,
            default=ALL_STEPS,
            required=True,
            key=f"{key}.part",
            width="content",
            persist_state="session",
        )
    return smoothing, PARTS[part]


def of_last(values: Sequence[tuple[int, float]], share: float) -> list[tuple[int, float]]:
    """The points of the last share of the steps."""
    if not values or share == 1:
        return list(values)
    first, last = values[0][0], values[-1][0]
    return [point for point in values if point[0] >= last - share * (last - first)]


def _draw(job_ids: Sequence[int], key: str, names: Mapping[int, str], is_live: bool) -> None:
    with failures_shown():
        found = read_metrics(job_ids)
        measured = {
            name
            for each in found.values()
            for name, values in each.items()
            if len(values) >= LEAST and not name.startswith(PROBE)
        }
        ordered = [name for name in ORDER if name in measured]
        ordered += sorted(measured - set(ORDER))
        if not ordered:
            yet = " yet" * is_live
            st.caption(f"No curve{yet}: one starts with {LEAST} logged steps.")
            return
        smoothing, share = _draw_controls(key)
        lines = {
            name: {
                names.get(job_id, f"job {job_id}"): points
                for job_id, each in sorted(found.items())
                if len(points := of_last(smoothed(each.get(name, []), smoothing), share)) >= LEAST
            }
            for name in ordered
        }
        if short := [name for name in ordered if not lines[name]]:
            st.caption(f"{counted(len(short), 'curve')} left out: fewer than {LEAST} steps there.")
        ordered = [name for name in ordered if lines[name]]
        shown = [name for name in ordered if name in OPEN] or ordered[:1]
        _draw_side_by_side({name: lines[name] for name in shown}, key)
        if rest := {name: lines[name] for name in ordered if name not in shown}:
            draw = partial(_draw_side_by_side, rest, key)
            draw_drawer(counted(len(rest), "more curve"), draw, key=f"{key}.more")


def _draw_side_by_side(
    curves: Mapping[str, Mapping[str, Sequence[tuple[int, float]]]], key: str
) -> None:
    named = list(curves.items())
    for pair in (named[place : place + 2] for place in range(0, len(named), 2)):
        columns = side_by_side(2, key=f"{key}.{pair[0][0]}")
        for (name, lines), column in zip(pair, columns, strict=False):
            figure = curve_figure(lines, title=TITLES.get(name, name))
            with column:
                draw_plot(figure, key=f"{key}.{name}.figure")
                steps = [
                    {"of": of, "step": step, name: value}
                    for of, values in lines.items()
                    for step, value in values
                ]
                draw_downloads(steps, key=f"{key}.{name}", picture=partial(printed, figure))
