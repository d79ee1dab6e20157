"""The map in the browser (a Streamlit component, version 2), and the words at the pointer.

What would surprise: the words come by a component of their own, which sends nothing but them, so
that a hover never sends the points again; both lie in a fragment, so that it runs nothing else.
"""

from typing import TYPE_CHECKING, Any

import streamlit as st

from analysis.map.hover import point_words
from app.kit.card_files import card_css, card_js, nothing

if TYPE_CHECKING:
    import pandas as pd

CARD = st.components.v2.component(
    "inf_map_card",
    js=card_js(*(f"corpora/map_{part}.js" for part in ("points", "painter", "saving", "card"))),
    css=card_css("corpora/map_card.css"),
)
WORDS = st.components.v2.component(
    "inf_map_words",
    js="""
export default function ({ data }) {
  document.dispatchEvent(new CustomEvent("inf-map-words", { detail: data }));
}
""",
)
SHAPE = "coverage.shape"


@st.fragment
def draw_map_card(payload: bytes, points: "pd.DataFrame", *, key: str) -> None:
    """The map of `points` (`payload` is what `analysis.map.picture` made of them).

    A new selection is written into the session as `coverage.shape` and runs the page again.
    """
    sent = CARD(
        key=key, data=payload, on_shape_change=nothing, on_asked_change=nothing, height="content"
    )
    WORDS(key=f"{key}.words", data=answer(points, sent.get("asked")))
    shape = sent.get("shape") or None
    if shape != st.session_state.get(SHAPE):
        st.session_state[SHAPE] = shape
        st.rerun()


def answer(points: "pd.DataFrame", asked: Any) -> dict[str, Any]:
    """The words of the row asked for, with the question's number; nothing for no question."""
    row = asked.get("row") if asked else None
    if not isinstance(row, int) or not 0 <= row < len(points):
        return {}
    return {"question": asked.get("question"), **point_words(points, row)}
