"""The judging card (a Streamlit component, version 2) and what it sends.

The outbox is component *state*: Streamlit sends it whole and keeps it over reruns, where a trigger
value could be merged away. It is read where the card is drawn, so that a rerun that was interrupted
is made good by the next; storing is idempotent.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from app.judging import card_data

FOLDER = Path(__file__).parent
CARD = st.components.v2.component(
    "inf_judging_card",
    js=(FOLDER / "judging_card.js").read_text(encoding="utf-8"),
    css=(FOLDER / "judging_card.css").read_text(encoding="utf-8"),
)

# Outside the card's fragment, to which a server that was started again does not answer: what this
# asks for is a rerun of the whole page, and that brings the card's outbox along.
LIFELINE = st.components.v2.component(
    "inf_judging_lifeline",
    js="""
let latest = null;
document.addEventListener("inf-card-unanswered", () => latest?.("asked", Date.now()));
export default function ({ setTriggerValue }) {
  latest = setTriggerValue;
}
""",
)


def draw_lifeline() -> None:
    """What brings the card back after the server was started again; once per page."""
    LIFELINE(key="judge.lifeline", on_asked_change=_nothing)


def draw_card(study_id: int, *, key: str) -> None:
    """The card of a study, after storing what it sent. Raises Refused for who may not judge."""
    CARD(key=key, data=card_data(study_id, _events(key)), on_outbox_change=_nothing)


def _events(key: str) -> Sequence[Any]:
    state = st.session_state.get(key)
    outbox = state.get("outbox") if state else None
    events = outbox.get("events") if isinstance(outbox, dict) else None
    return events if isinstance(events, list) else []


def _nothing() -> None:
    """Streamlit keeps a state only where a callback is named; the work is done in `draw_card`."""
