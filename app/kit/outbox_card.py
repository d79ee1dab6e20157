"""What the judging card and the review card share (Streamlit components, version 2).

The outbox is component *state*: Streamlit sends it whole and keeps it over reruns, where a trigger
value could be merged away. It is read where the card is drawn, so that a rerun that was interrupted
is made good by the next; storing is idempotent.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

from app.kit.card_files import card_css, card_js, nothing

# Outside the card's fragment, to which a server that was started again does not answer: what this
# asks for is a rerun of the whole page, and that brings the card's outbox along.
LIFELINE = st.components.v2.component(
    "inf_card_lifeline",
    js="""
let latest = null;
document.addEventListener("inf-card-unanswered", () => latest?.("asked", Date.now()));
export default function ({ setTriggerValue }) {
  latest = setTriggerValue;
}
""",
)


def card_component(name: str, file: str) -> Callable[..., Any]:
    """The component of `app/FILE.js` and `.css`, with what both cards share in front."""
    return st.components.v2.component(
        f"inf_{name}_card",
        js=card_js("kit/outbox_card.js", f"{file}.js"),
        css=card_css("kit/outbox_card.css", f"{file}.css"),
    )


def outbox_of(key: str) -> dict[str, Any]:
    """What the card of this widget key sent: `events`, and whatever comes alongside."""
    state = st.session_state.get(key)
    outbox = state.get("outbox") if state else None
    return outbox if isinstance(outbox, dict) else {}


def draw_lifeline() -> None:
    """What brings a card back after the server was started again; once per page."""
    LIFELINE(key="card.lifeline", on_asked_change=nothing)
