"""A figure for the screen: a Vega-Lite specification from Plotly's description. Pure.

Streamlit's script for Vega-Lite is a fifth of Plotly's (docs/benchmarks.md, Pages). This reads the
traces that the figures use (bars, lines and points, matrices), as `analysis.figures.printed` does
for files, and raises BadInput for another one, so that nothing is left out unseen.

Texts of people reach the specification as texts only: a category stands in the data as its number,
and its name as a literal in the axis. Marks of no colour of their own have the page's text colour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import plotly.graph_objects as go

from analysis.figures.screen.bars import draw_bars
from analysis.figures.screen.legend import legend_layer
from analysis.figures.screen.lines import draw_lines
from analysis.figures.screen.matrix import draw_matrix
from analysis.figures.screen.parts import Parts
from analysis.figures.traces import listed, plain_text, unmarked
from db.errors import BadInput

HEIGHT: Final = 340  # pixels, of a figure that names none
EMPTY: Final[dict[str, Any]] = {"data": {"values": []}, "mark": "point"}
# Colours stand in the data; only the legend's layer has a scale of them.
OWN: Final = dict.fromkeys(
    ("color", "fill", "stroke", "shape", "strokeDash", "opacity"), "independent"
)
PADDING: Final = {"left": 4, "right": 14, "top": 8, "bottom": 4}
TITLE: Final = {"fontSize": 15, "offset": 8, "anchor": "start"}


@dataclass(frozen=True)
class Drawn:
    """What the page needs to show a figure.

    `notes` are the figure's remarks on what is undefined; `alt` is its text for screen readers.
    """

    spec: dict[str, Any]
    height: int
    notes: tuple[str, ...]
    alt: str


def drawn(figure: go.Figure) -> Drawn:
    """The figure as a specification. Raises BadInput for a trace that cannot be drawn."""
    described = figure.to_plotly_json()
    traces, layout = described["data"], described["layout"]
    parts = _parts(traces, layout)
    if legend := legend_layer(traces, layout):
        parts.add("legend", *legend)
    title = plain_text((layout.get("title") or {}).get("text"))
    spec: dict[str, Any] = {
        "datasets": parts.datasets,
        "layer": parts.layers or [EMPTY],
        "padding": PADDING,
        "resolve": {"scale": OWN, "legend": OWN},
    }
    if title:
        spec["title"] = {"text": title, **TITLE}
    return Drawn(
        spec,
        layout.get("height") or HEIGHT,
        tuple(
            " ".join(unmarked(each.get("text")).split()) for each in layout.get("annotations") or ()
        ),
        _alternative(traces, layout, title),
    )


def _parts(traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any]) -> Parts:
    kinds = {trace["type"] for trace in traces}
    if unknown := kinds - {"bar", "scatter", "heatmap"}:
        raise BadInput(
            f"a figure with {sorted(unknown)[0]!r} cannot be drawn", code="figure_trace_unknown"
        )
    if "heatmap" in kinds:
        if len(traces) > 1:
            raise BadInput("a matrix is drawn alone", code="matrix_not_alone")
        return draw_matrix(traces[0], layout)
    return (draw_bars if "bar" in kinds else draw_lines)(traces, layout)


def _alternative(traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any], title: str) -> str:
    """`agreement beyond chance by step; people, gpt`: the numbers are in the CSV below."""
    axes = [
        plain_text(((layout.get(axis) or {}).get("title") or {}).get("text"))
        for axis in ("yaxis", "xaxis")
    ]
    names = [plain_text(trace.get("name")) for trace in traces]
    about = " by ".join(filter(None, axes))
    found = "; ".join(filter(None, (title, about, ", ".join(filter(None, names)))))
    first = [plain_text(name) for name in listed(traces[0].get("x"))] if traces else []
    return found or ", ".join(first) or "Figure"
