"""What Plotly's description of a figure holds: its values, categories and texts. Pure.

Read by what draws a figure: on the screen (`analysis.figures.screen`) and as a file (`printed`).
"""

import base64
import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any, Final

import numpy as np

TAG: Final = re.compile(r"<[^>]+>")


def places_of(bars: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The place of each category of the bars, in the order of their first appearance."""
    names = dict.fromkeys(name for bar in bars for name in named_values(bar)[0])
    return {name: float(place) for place, name in enumerate(names)}


def named_values(bar: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    """The categories of a bar trace and its values."""
    is_flat = bar.get("orientation") == "h"
    names, values = (bar.get("y"), bar.get("x")) if is_flat else (bar.get("x"), bar.get("y"))
    return [str(name) for name in categories(names)], listed(values)


def categories(names: Any) -> list[Any]:
    """Names, of two levels as one: `below 1 B: e5-base-v2`."""
    given = listed(names)
    levels = two_levels(given)
    return given if levels is None else [f"{outer}: {inner}" for outer, inner in levels]


def two_levels(given: Sequence[Any]) -> list[tuple[Any, Any]] | None:
    """The (outer, inner) names of categories of two levels; None for one level."""
    if len(given) == 2 and all(isinstance(level, list | tuple) for level in given):
        return list(zip(*given, strict=True))
    return None


def listed(values: Any) -> list[Any]:
    """Values of a trace as a list; empty without any."""
    return [] if values is None else list(_decoded(values))


def rows_of(values: Any) -> list[list[Any]]:
    """A matrix of a trace as lists."""
    return [list(row) for row in _decoded(values)]


def reach_of(error: Mapping[str, Any] | None, each: int) -> tuple[Any, Any] | None:
    """How far the interval of one value goes below and above it; None without one."""
    above = listed((error or {}).get("array"))
    if error is None or not above or above[each] is None:
        return None
    below = listed(error.get("arrayminus")) or above
    return below[each] or 0.0, above[each]


def _decoded(values: Any) -> Any:
    """Values as they were given: Plotly describes an array as base64."""
    if not isinstance(values, Mapping):
        return values
    found = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
    shape = [int(side) for side in str(values.get("shape", "")).split(",") if side.strip()]
    return found.reshape(shape or (-1,)).tolist()


def unmarked(text: Any) -> str:
    """A text of Plotly's, which reads a little HTML, as it is shown; lines are kept."""
    return unescape(TAG.sub("", str(text).replace("<br>", "\n")))


def plain_text(text: Any) -> str:
    """`unmarked` on one line; "" for None."""
    return "" if text is None else " ".join(unmarked(text).split())
