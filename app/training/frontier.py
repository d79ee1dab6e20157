"""Gain against loss of the trained sides, from the trainings that `bench/frontier.py` stored.

`frontier.json` is of one set and one base model, which it names: it shows what to expect of a mode,
and is no measure of the trainings of this store.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import streamlit as st

from analysis.figures.numbers import Cells
from app.kit.figure import draw_downloads, draw_plot, side_by_side
from app.kit.page import draw_drawer
from app.text.numbers import counted
from app.text.plain import plain

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FILE = Path(__file__).with_name("frontier.json")
GAIN = "instruction-flip"
LOSSES = {
    "guard-ndcg@10": "Ordinary retrieval: change of nDCG@10",
    "query-flip": "Change of the query flip",
}
SIDES = {"query": "Instructed queries", "both": "Both sides"}


def frontier_figure(points: Sequence[Mapping[str, Any]], loss: str) -> "Figure":
    """The gain of the instruction flip over the change of `loss`: means over seeds, with the range
    of the seeds; a ring is a point of one seed. The recommended points carry their names."""
    import plotly.graph_objects as go

    from analysis.figures.figures import CATEGORY_COLOURS, escape

    figure = go.Figure()
    for (side, title), colour in zip(SIDES.items(), CATEGORY_COLOURS, strict=False):
        for is_whole in (True, False):
            found = [
                point
                for point in points
                if point["side"] == side and (len(point["seeds"]) > 1) == is_whole
            ]
            if not found:
                continue
            gains = [point["gains"][GAIN] for point in found]
            figure.add_scatter(
                x=[fmean(point["gains"][loss]) for point in found],
                y=[fmean(each) for each in gains],
                error_y={
                    "array": [max(each) - fmean(each) for each in gains],
                    "arrayminus": [fmean(each) - min(each) for each in gains],
                }
                if is_whole
                else None,
                customdata=[
                    [escape(point["point"]), counted(len(point["seeds"]), "seed")]
                    for point in found
                ],
                hovertemplate="%{customdata[0]}: %{y:+.3f}, loss %{x:+.3f} (%{customdata[1]})",
                mode="markers+text",
                text=[escape(point["point"]) if point["point"] == side else "" for point in found],
                marker={"symbol": "circle" if is_whole else "circle-open", "color": colour},
                line={"color": colour},
                name=title if is_whole else f"{title}, one seed",
            )
    figure.update_layout(
        height=380,
        xaxis={"title": LOSSES[loss], "range": _range_of([p["gains"][loss] for p in points])},
        yaxis={
            "title": "Gain of the instruction flip",
            "range": _range_of([p["gains"][GAIN] for p in points]),
        },
    )
    return figure


def _range_of(values: Sequence[Sequence[float]]) -> list[float]:
    """From the lowest to the highest of all values and 0, with room on both sides."""
    known = [0.0, *(value for each in values for value in each)]
    room = 0.12 * (max(known) - min(known)) or 0.01
    return [min(known) - room, max(known) + room]


def frontier_rows(points: Sequence[Mapping[str, Any]]) -> list[Cells]:
    """A row per point: means over its seeds of every measure's gain, and the seconds."""
    return [
        {"point": point["point"], "seeds": len(point["seeds"])}
        | {name: fmean(values) for name, values in point["gains"].items()}
        | {"seconds": fmean(point["seconds"])}
        for point in points
    ]


def draw_frontier() -> None:
    """The two figures, with the set that they were measured on."""
    draw_drawer("Gain against loss, measured on the demo's set", _draw, key="train.frontier_drawer")


def _draw() -> None:
    from analysis.figures.printed import printed

    found = json.loads(FILE.read_text(encoding="utf-8"))
    points = found["points"]
    st.caption(
        plain(
            f"{found['set']}; {found['model']}; {counted(len(points), 'point')}, trained minus "
            "base on the same held-out groups. Points are means over seeds, bars reach from "
            "the lowest to the highest seed, rings are of one seed; none is of a training of "
            "yours."
        )
    )
    for loss, column in zip(LOSSES, side_by_side(2, key="train.frontier"), strict=True):
        with column:
            figure = frontier_figure(points, loss)
            key = f"train.frontier.{loss}"
            draw_plot(figure, key=f"{key}.figure")
            rows = frontier_rows(points)
            draw_downloads(rows, key=key, picture=partial(printed, figure))
