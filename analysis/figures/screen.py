"""A figure as a page shows it: Plotly's own description, fitted to a column of text. Pure.

Notes on what is undefined stand below a figure, where they wrap, and long names are cut on the axis
and whole at the pointer. Files to print are drawn from the same description
(`analysis.figures.printed`).
"""

from dataclasses import dataclass
from typing import Any, Final

import plotly.graph_objects as go

from analysis.figures.traces import categories, listed, plain_text, two_levels

HEIGHT: Final = 340  # pixels, of a figure that names none
FEW: Final = 3  # bars, which are no wider than the space between them
MAX_NAME: Final = 40  # characters of a name on an axis
CONFIG: Final[dict[str, Any]] = {"displayModeBar": False, "scrollZoom": False}


@dataclass(frozen=True)
class OnScreen:
    """What the page needs to show a figure.

    `notes` are the figure's remarks on what is undefined; `alt` is its text for screen readers.
    """

    figure: go.Figure
    notes: tuple[str, ...]
    alt: str


def on_screen(figure: go.Figure) -> OnScreen:
    """The figure for `st.plotly_chart`, its notes and its text. The given figure stays as it is."""
    shown = go.Figure(figure)
    shown.layout.annotations = ()  # an update would keep them
    has_lines = all(_is_line(trace) for trace in shown.data)
    shown.update_layout(
        height=shown.layout.height or HEIGHT,
        dragmode="zoom" if has_lines else False,
        hoverlabel={"align": "left", "namelength": -1},
        margin={"l": 10, "r": 10, "t": 40 if shown.layout.title.text else 10, "b": 10},
        # below the axis, however high the figure is, and whole: it is a list on a phone
        legend={
            "orientation": "h",
            "x": 0,
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "maxheight": 1,
        },
    )
    if len(shown.data) == 1 and len(listed(_of_axis(shown.data[0], "x"))) <= FEW:
        shown.update_layout(bargap=0.5)
    if not has_lines:
        shown.update_xaxes(fixedrange=True)
    shown.update_yaxes(fixedrange=True)
    for axis in ("x", "y"):
        _cut_names(shown, axis)
    described = figure.layout.annotations or ()
    notes = tuple(plain_text(each.text) for each in described)
    return OnScreen(shown, notes, alternative(shown))


def _is_line(trace: Any) -> bool:
    return trace.type == "scatter" and "lines" in (trace.mode or "lines")


def _of_axis(trace: Any, axis: str) -> Any:
    """The values of a trace on an axis; None for one without axes."""
    values: Any = trace.to_plotly_json().get(axis)
    return values


def alternative(figure: go.Figure) -> str:
    """`agreement beyond chance by step; people, gpt`: the numbers are in the CSV below.

    Of a figure that names one as its `meta`, that text.
    """
    layout = figure.layout
    if isinstance(layout.meta, str):
        return layout.meta
    axes = [plain_text(axis.title.text) for axis in (layout.yaxis, layout.xaxis)]
    names = ", ".join(filter(None, (plain_text(trace.name) for trace in figure.data)))
    about = (plain_text(layout.title.text), " by ".join(filter(None, axes)), names)
    found = "; ".join(filter(None, about))
    first = [plain_text(name) for trace in figure.data[:1] for name in listed(_of_axis(trace, "x"))]
    return found or ", ".join(first) or "Figure"


def _cut_names(figure: go.Figure, axis: str) -> None:
    """Show the first characters of the names on an axis of categories, where one is long."""
    names: dict[Any, None] = {}
    for trace in figure.data:
        given = listed(_of_axis(trace, axis))
        if two_levels(given) is None:
            names |= {name: None for name in categories(given) if isinstance(name, str)}
    if figure.layout[f"{axis}axis"].type == "date" or not any(len(n) > MAX_NAME for n in names):
        return
    ticks = [name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…" for name in names]
    figure.layout[f"{axis}axis"].update(tickvals=list(names), ticktext=ticks, type="category")
