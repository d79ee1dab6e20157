"""Shared by the judging card and the workbench (Streamlit components, version 2).

The outbox is component *state*: Streamlit sends it completely and keeps it over reruns, while a
trigger value could be lost when updates are merged. It is read where the card is drawn, so that the
next rerun makes up for an interrupted one; storing is idempotent.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import streamlit as st

from app.access.language import language_now
from app.kit.card_files import card_css, card_js, nothing
from db.errors import Refused

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


@cache
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

    `runs`: the class of the card. Of the same files it is the same component: a page may make it.
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


def draw_outbox_card(
    card: Callable[..., Any], data: Callable[[Mapping[str, Any]], dict[str, Any]], *, key: str
) -> dict[str, Any]:
    """Render a card with the data that answers its outbox, which is returned.

    For who was signed out meanwhile it is a sign-in form, and keeps what was not sent. `data`
    raises Refused without the permission.
    """
    try:
        shown = data(outbox_of(key))
    except Refused as refused:
        if refused.code != "signed_out":
            raise
        shown = {"signed_out": True, "language": language_now()}
    card(key=key, data=shown, on_outbox_change=nothing)
    return shown


def list_in(outbox: Mapping[str, Any], name: str) -> list[Any]:
    """A list of an outbox, whatever else a browser sent in its place."""
    found = outbox.get(name)
    return found if isinstance(found, list) else []


def before_in(outbox: Mapping[str, Any]) -> str | None:
    """The token before which the card asks for earlier decisions."""
    found = outbox.get("before")
    return found if isinstance(found, str) else None


def draw_lifeline() -> None:
    """Draw the component that reconnects a card after a server restart; once per page."""
    LIFELINE(key="card.lifeline", on_unanswered_change=nothing)
