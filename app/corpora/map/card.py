"""The map card, a Streamlit component (version 2), and the text at the pointer.

The text has a component of its own, so that hovering does not send the points again. Both are in
one fragment, so that hovering reruns nothing else.
"""

from typing import TYPE_CHECKING, Any

import streamlit as st

from analysis.map.hover import point_hover
from app.kit.card_files import card_css, card_js, nothing

if TYPE_CHECKING:
    import pandas as pd

CARD = st.components.v2.component(
    "inf_map_card",
    js=card_js(*(f"corpora/map/{part}.js" for part in ("points", "painter", "saving", "card"))),
    css=card_css("corpora/map/card.css"),
)
HOVER = st.components.v2.component(
    "inf_map_hover",
    js="""
export default function ({ data }) {
  document.dispatchEvent(new CustomEvent("inf-map-hover", { detail: data }));
}
""",
)
SHAPE = "coverage.shape"


@st.fragment
def draw_map_card(payload: bytes, points: "pd.DataFrame", *, key: str) -> None:
    """Render the map of `points`; `payload` is their encoding by `analysis.map.picture`.

    A new selection is stored in the session as `coverage.shape` and reruns the page.
    """
    sent = CARD(
        key=key, data=payload, on_shape_change=nothing, on_hover_change=nothing, height="content"
    )
    HOVER(key=f"{key}.hover", data=hover_data(points, sent.get("hover")))
    shape = sent.get("shape") or None
    if shape != st.session_state.get(SHAPE):
        st.session_state[SHAPE] = shape
        st.rerun()


def hover_data(points: "pd.DataFrame", request: Any) -> dict[str, Any]:
    """The text of the requested row with the request number; empty without a valid request."""
    row = request.get("row") if request else None
    if not isinstance(row, int) or not 0 <= row < len(points):
        return {}
    return {"request": request.get("request"), **point_hover(points, row)}
