"""The map card, a Streamlit component (version 2), the text at the pointer, and what is lit.

Text and lit rows have components of their own, so that hovering does not send the points again. All
are in one fragment, so that hovering and searching rerun nothing else.
"""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from analysis.map.density import thin_rows
from analysis.map.picture import categories_of, point_hover
from app.corpora.map.actions import RESELECTED, cleared, selected_shape, take_shape
from app.corpora.map.points import Searched, rows_with
from app.kit.card_files import card_css, card_js, nothing

if TYPE_CHECKING:
    import pandas as pd

PARTS = ("points", "painter", "names", "saving", "view", "tools", "card")
CARD = st.components.v2.component(
    "inf_map_card",
    js=card_js(*(f"corpora/map/canvas/{part}.js" for part in PARTS)),
    css=card_css("corpora/map/canvas/card.css"),
)
HOVER = st.components.v2.component(
    "inf_map_hover",
    js="""
export default function ({ data }) {
  document.dispatchEvent(new CustomEvent("inf-map-hover", { detail: data }));
}
""",
)
LIT = st.components.v2.component(
    "inf_map_lit",
    js="""
export default function ({ data }) {
  window.infMapLit = data; // for a card that comes later
  document.dispatchEvent(new CustomEvent("inf-map-lit", { detail: data }));
}
""",
)
OUTLINED = ("box", "lasso")  # the card draws their outline; other selections are lit


@st.fragment
def draw_map_card(payload: bytes, points: "pd.DataFrame", found: Searched, *, key: str) -> None:
    """Render the map of `points`; `payload` is their encoding by `analysis.map.picture`.

    found: the corpora of the map, for the search. A new selection reruns the page.
    """
    sent = CARD(
        key=key,
        data=payload,
        on_shape_change=lambda: take_shape(key),
        on_search_change=nothing,
        on_hover_change=nothing,
        height="content",
    )
    HOVER(key=f"{key}.hover", data=hover_data(points, sent.get("hover")))
    text = str(sent.get("search") or "")
    rows = lit_rows(points, found, text, selected_shape(key), key=key)
    LIT(key=f"{key}.lit", data=lit_data(rows, len(points), is_search=bool(text)))
    if st.session_state.pop(RESELECTED, False):
        st.rerun()


def selected_rows(points: "pd.DataFrame", found: Searched, *, key: str) -> np.ndarray:
    """The rows of the selection, ascending."""
    shape = selected_shape(key)
    if shape is not None and shape["kind"] == "search":
        rows = _remembered(points, found, str(shape.get("text", "")), key=key)
        shape = {**shape, "found": rows}
    return rows_inside(points, shape)


def lit_rows(
    points: "pd.DataFrame",
    found: Searched,
    text: str,
    shape: dict[str, Any] | None,
    *,
    key: str,
) -> np.ndarray:
    """The rows that stand out: those searched for, else those of a selection without outline."""
    if text:
        return _remembered(points, found, text, key=key)
    if shape is None or shape["kind"] in OUTLINED:
        return np.zeros(0, dtype=np.int64)
    return selected_rows(points, found, key=key)


def _remembered(points: "pd.DataFrame", found: Searched, text: str, *, key: str) -> np.ndarray:
    """The rows of the last search are kept: hovering asks for them again."""
    question = (key, text, len(points))
    last = st.session_state.get("coverage.searched")
    if last is None or last[0] != question:
        last = (question, rows_with(points, found, text))
        st.session_state["coverage.searched"] = last
    rows: np.ndarray = last[1]
    return rows


def lit_data(rows: np.ndarray, points: int, *, is_search: bool) -> dict[str, Any]:
    """The lit rows as the card reads them: base64 of one bit per point, the lowest bit first."""
    bits = np.zeros(points if len(rows) else 0, dtype=bool)
    bits[rows] = True
    return {
        "points": points,
        "rows": base64.b64encode(np.packbits(bits, bitorder="little").tobytes()).decode(),
        "isSearch": is_search,
        "cleared": cleared(),
    }


def hover_data(points: "pd.DataFrame", request: Any) -> dict[str, Any]:
    """The text of the requested row with the request number; empty without a valid request."""
    row = request.get("row") if request else None
    if not isinstance(row, int) or not 0 <= row < len(points):
        return {}
    return {"request": request.get("request"), **point_hover(points, row)}


# Which points of the map a selection holds: all that are stored there. Pure.
def rows_inside(points: "pd.DataFrame", shape: Mapping[str, Any] | None) -> np.ndarray:
    """The rows that `shape` holds, ascending; none without one.

    A box has `x` and `y` (low and high, both inside), a lasso its corners as `path`, a cluster its
    `name`, a search its rows as `found`; `thin` is where the fewest texts lie. Categories of
    `colour` that the legend hides (`hidden`) are left out: what is not drawn cannot be selected.
    """
    if not shape:
        return np.zeros(0, dtype=np.int64)
    inside = _inside(points, shape)
    if shape.get("hidden"):
        inside = inside & ~np.isin(
            categories_of(points, shape["colour"]).astype(str), shape["hidden"]
        )
    return np.flatnonzero(inside)


def _inside(points: "pd.DataFrame", shape: Mapping[str, Any]) -> np.ndarray:
    """Whether each point is inside."""
    kind = shape["kind"]
    if kind in ("box", "lasso"):
        x, y = points["x"].to_numpy(np.float64), points["y"].to_numpy(np.float64)
        if kind == "box":
            return inside_box(x, y, shape["x"], shape["y"])
        return inside_lasso(x, y, np.array(shape["path"], dtype=np.float64))
    if kind == "cluster" and "cluster" in points:
        found: np.ndarray = (points["cluster"].astype(str) == shape["name"]).to_numpy()
        return found
    inside = np.zeros(len(points), dtype=bool)
    inside[thin_rows(points) if kind == "thin" else shape.get("found", [])] = True
    return inside


def inside_box(x: np.ndarray, y: np.ndarray, xs: list[float], ys: list[float]) -> np.ndarray:
    """Edges are inside."""
    found: np.ndarray = (x >= xs[0]) & (x <= xs[1]) & (y >= ys[0]) & (y <= ys[1])
    return found


def inside_lasso(x: np.ndarray, y: np.ndarray, path: np.ndarray) -> np.ndarray:
    """By the even-odd rule: a ray to the right crosses the closed path an odd number of times.

    `path` has shape (corners, 2); fewer than three hold nothing.
    """
    inside = np.zeros(len(x), dtype=bool)
    if len(path) < 3:
        return inside
    low, high = path.min(axis=0), path.max(axis=0)
    near = np.flatnonzero(inside_box(x, y, [low[0], high[0]], [low[1], high[1]]))
    px, py = x[near], y[near]
    odd = np.zeros(len(near), dtype=bool)
    for (x0, y0), (x1, y1) in zip(path, np.roll(path, -1, axis=0), strict=True):
        if y0 == y1:
            continue
        passes = (py >= min(y0, y1)) & (py < max(y0, y1))
        odd ^= passes & (px < x0 + (py - y0) / (y1 - y0) * (x1 - x0))
    inside[near] = odd
    return inside
