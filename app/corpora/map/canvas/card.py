"""The map card, a Streamlit component (version 2), the text at the pointer, and what is lit.

Text and lit rows have components of their own, so that hovering does not send the points again. All
are in one fragment, so that hovering and searching rerun nothing else.
"""

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from analysis.map.picture import point_hover
from analysis.map.shapes import rows_inside
from app.corpora.map.chosen import RESELECTED, cleared, selected_shape, take_shape
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
