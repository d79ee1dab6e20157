"""Shared by the judging card and the workbench (Streamlit components, version 2).

The outbox is component *state*: Streamlit sends it completely and keeps it over reruns, while a
trigger value could be lost when updates are merged. It is read where the card is drawn, so that the
next rerun makes up for an interrupted one; storing is idempotent.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from app.kit.card_files import card_css, card_js, nothing

# Outside the card's fragment, which a restarted server no longer answers: this component requests a
# rerun of the whole page, which also delivers the card's outbox.
LIFELINE = st.components.v2.component(
    "inf_card_lifeline",
    js="""
let latest = null;
document.addEventListener("inf-card-unanswered", () => latest?.("unanswered", Date.now()));
export default function ({ setTriggerValue }) {
  latest = setTriggerValue;
}
""",
)


def card_component(
    name: str,
    file: str,
    *,
    shared: Sequence[str] = (),
    styles: Sequence[str] = (),
    before: str = "",
    runs: str,
) -> Callable[..., Any]:
    """The component made of the shared files and `app/FILE.js` and `.css`, after `before`.

    `runs`: the class of the card.
    """
    export = f"export default (component) => receiveIn({runs}, component);\n"
    return st.components.v2.component(
        f"inf_{name}_card",
        js=before + card_js("kit/outbox_card.js", *shared, f"{file}.js") + export,
        css=card_css("kit/outbox_card.css", *styles, f"{file}.css"),
    )


def outbox_scope(*parts: object) -> str:
    """What separates the outboxes of people and stores that share a browser.

    Of ids and times of creation (SQLite gives a deleted row's id again), as names change.
    """
    return hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()[:16]


def outbox_of(key: str) -> dict[str, Any]:
    """The outbox of the card with this widget key: `events` and other fields."""
    state = st.session_state.get(key)
    outbox = state.get("outbox") if state else None
    return outbox if isinstance(outbox, dict) else {}


def draw_lifeline() -> None:
    """Draw the component that reconnects a card after a server restart; once per page."""
    LIFELINE(key="card.lifeline", on_unanswered_change=nothing)
