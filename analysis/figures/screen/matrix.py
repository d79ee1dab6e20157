"""A matrix of coloured cells with their texts."""

from collections.abc import Mapping
from typing import Any, Final

from analysis.figures.screen.parts import INK, ON_BAR, Parts, category_axis, coloured, tooltip
from analysis.figures.traces import hover_text, listed, plain_text, rows_of, unmarked

DARK_INK: Final = "#222222"
GAP: Final = 0.04  # of a cell
# ColorBrewer's, as matplotlib has them in the files.
BLUES: Final = ("#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b")
RED_TO_BLUE: Final = (
    "#67001f",
    "#d6604d",
    "#fddbc7",
    "#f7f7f7",
    "#d1e5f0",
    "#4393c3",
    "#053061",
)


def draw_matrix(trace: Mapping[str, Any], layout: Mapping[str, Any]) -> Parts:
    """The layers of a matrix; a cell without a value has no colour and keeps its text."""
    rows = _cells(trace)
    x, y = layout.get("xaxis") or {}, layout.get("yaxis") or {}
    place = {}
    for channel, axis, is_side in (("x", x, False), ("y", y, True)):
        names = [unmarked(name) for name in listed(trace.get(channel))]
        found = category_axis(
            names, axis, is_side=is_side, is_slanted=axis.get("tickangle") is not None
        )
        found["scale"] |= {"paddingInner": GAP, "paddingOuter": 0}
        place[channel] = found | {"field": channel}
    colour = {
        "field": "value",
        "type": "quantitative",
        "legend": None,
        "scale": _colours(trace, [row["value"] for row in rows]),
    }
    parts = Parts()
    parts.add(
        "cells",
        [row for row in rows if row["value"] is not None],
        {
            "mark": {"type": "rect"},
            "encoding": place | {"color": colour, "tooltip": tooltip(), "description": tooltip()},
        },
    )
    parts.add(
        "texts",
        rows,
        {
            "mark": {"type": "text", "fontSize": 12, "aria": False},
            "encoding": place
            | {
                "text": {"field": "text", "type": "nominal"},
                "color": coloured("ink"),
                "tooltip": tooltip(),
            },
        },
    )
    return parts


def _colours(trace: Mapping[str, Any], values: list[float | None]) -> dict[str, Any]:
    """The scale of the cells' colours."""
    colours = RED_TO_BLUE if trace.get("zmid") == 0 else BLUES
    low, high = _ends(trace, values)
    step = (high - low) / (len(colours) - 1)
    domain = [low + each * step for each in range(len(colours))]
    return {"domain": domain, "range": list(colours), "clamp": True}


def _ends(trace: Mapping[str, Any], values: list[float | None]) -> tuple[float, float]:
    if trace.get("zmin") is not None:
        return trace["zmin"], trace["zmax"]
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    return low, high if high > low else low + 1


def _cells(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row per cell, by the numbers of its column and its row."""
    names = {axis: listed(trace.get(axis)) for axis in ("x", "y")}
    texts = None if trace.get("text") is None else rows_of(trace["text"])
    about = None if trace.get("customdata") is None else rows_of(trace["customdata"])
    found: list[dict[str, Any]] = []
    for y, line in enumerate(rows_of(trace["z"])):
        for x, cell in enumerate(line):
            value = None if cell is None or cell != cell else float(cell)
            text = f"{cell:g}" if texts is None and value is not None else ""
            given = {"x": names["x"][x], "y": names["y"][y], "z": cell}
            given["customdata"] = None if about is None else about[y][x]
            found.append(
                {
                    "x": x,
                    "y": y,
                    "value": value,
                    "text": text if texts is None else plain_text(texts[y][x]),
                    "about": hover_text(trace, **given),
                }
            )
    ends = _ends(trace, [row["value"] for row in found])
    for row in found:
        row["ink"] = _ink(row["value"], ends, is_two_sided=trace.get("zmid") == 0)
    return found


def _ink(value: float | None, ends: tuple[float, float], *, is_two_sided: bool) -> str:
    """The colour of a cell's text, legible on the cell's."""
    if value is None:
        return INK
    share = (value - ends[0]) / ((ends[1] - ends[0]) or 1)
    is_dark = abs(share - 0.5) > 0.33 if is_two_sided else share > 0.55
    return ON_BAR if is_dark else DARK_INK
