"""Heading, labels, drawers, tables and empty state of a page."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.access.session_user import current_user
from app.kit.frame.links import page_link
from app.kit.menu import may_open
from app.text.plain import plain
from curation.recorded import NOTE as RECORDED_NOTE

MISSING = "–"  # in cells without a value; Streamlit's own is "None"
MAX_ROWS, SCROLLED = 20, 700  # rows of a wrapped table; the pixels of a longer one
SHOWN_TITLE = "page.title"
TO_SEND = 0.03  # seconds: reading a large store keeps the server's loop from sending the title
STATUS_COLOURS = {
    "queued": "gray",
    "created": "gray",
    "running": "blue",
    "open": "blue",
    "paused": "orange",
    "done": "green",
    "kept": "green",
    "approve": "green",
    "closed": "gray",
    "cancelled": "gray",
    "edit": "violet",
    "dropped": "orange",
    "failed": "red",
    "lost": "red",
    "reject": "red",
}


def draw_heading(
    title: str,
    lead: str,
    *,
    offline: bool = False,
    recorded: bool = False,
) -> DeltaGenerator:
    """Draw the title, a one-sentence description, and the labels that apply to the whole page.

    Returns the place of the labels, for those that are known only when more has been read: a title
    waits for nothing.
    """
    line = st.container(horizontal=True, vertical_alignment="center", gap="small")
    with line:
        st.title(title, anchor=False, width="content")
        draw_labels(offline=offline, recorded=recorded)
    st.caption(lead)
    if st.session_state.get(SHOWN_TITLE) != title:
        st.session_state[SHOWN_TITLE] = title
        time.sleep(TO_SEND)
    return line


def draw_drawer(
    label: str,
    draw: Callable[[], object],
    *,
    key: str,
    field: str = "",
    icon: str | None = None,
    is_open: bool = False,
) -> None:
    """Draw a folded part of the page; what is in it is sent once the drawer is opened.

    `field` is the key of one of its fields, if it has any. While the page keeps a value of it, the
    drawer is drawn closed as well: Streamlit forgets what was typed into a field that is not drawn.
    """
    box = st.expander(label, icon=icon, expanded=is_open, key=key, on_change="rerun")
    if box.open or (field and field in st.session_state):
        with box:
            draw()


def draw_tabs(parts: Mapping[str, Callable[[], object]], *, key: str) -> None:
    """Draw tabs by their names; what is in one is sent while it is the open one.

    Streamlit forgets what was typed into a field that is not drawn, but for its `persist_state`.
    """
    for tab, draw in zip(
        st.tabs(list(parts), key=key, on_change="rerun"), parts.values(), strict=True
    ):
        if tab.open:
            with tab:
                draw()


def draw_labels(*, offline: bool = False, simulated: bool = False, recorded: bool = False) -> None:
    """Draw the `offline`, `simulated` and `recorded` labels that apply."""
    if offline:
        st.badge(
            "offline",
            icon=":material/cloud_off:",
            color="orange",
            help="Made by rules and a small embedding model, not by a language model.",
        )
    if simulated:
        st.badge(
            "simulated",
            icon=":material/smart_toy:",
            color="violet",
            help="Judged by a program that simulates people in the demo.",
        )
    if recorded:
        st.badge("recorded", icon=":material/replay:", color="blue", help=RECORDED_NOTE)


def draw_status(status: str) -> None:
    """Draw a status or verdict as a coloured label."""
    st.badge(status, color=STATUS_COLOURS.get(status, "gray"))  # type: ignore[arg-type]


def draw_link(view: str, *, label: str, icon: str | None = None) -> None:
    """Draw a link to a page; only its label for who may not open the page."""
    user = current_user()
    if user is not None and may_open(user, view):
        page_link(view, label, icon=icon, width="content")
    else:
        st.markdown(plain(label), width="content")


def draw_hand_off(view: str, label: str, **parameters: object) -> None:
    """Draw the link to what comes next, with its choice made; nothing for who may not open it."""
    user = current_user()
    if user is not None and may_open(user, view):
        page_link(
            view,
            plain(label),
            icon=":material/arrow_forward:",
            width="content",
            parameters=parameters,
        )


def draw_command(command: str, *, label: str = "Command", note: str = "") -> None:
    """Draw a button that shows the command; open, Streamlit's 1.5 MB for colours in code would come
    with the page, and 0.4 s of the browser's time."""
    with st.popover(label, type="tertiary", icon=":material/terminal:"):
        if note:
            st.caption(plain(note))
        st.code(command, language=None, wrap_lines=True)


def draw_empty(what: str, then: str, *, command: str = "", view: str = "", link: str = "") -> None:
    """Draw an empty state: what is missing and what to do next, with a page link or a command."""
    with st.container(border=True):
        st.markdown(f"**{plain(what)}**")
        st.caption(plain(then))
        if view:
            draw_link(view, label=link, icon=":material/arrow_forward:")
        if command:
            draw_command(command)


def draw_wrapped(rows: Sequence[Mapping[str, Any]], formats: Mapping[str, str]) -> None:
    """Draw a few rows as a table whose cells wrap, which a phone shows; a column without a value
    is left out. `formats` are of numbers, by column."""
    filled = [name for name in rows[0] if any(row[name] not in (None, "") for row in rows)]

    def cell(name: str, value: Any) -> str:
        if value in (None, ""):
            return MISSING
        return formats.get(name, "{:,}").format(value) if isinstance(value, int | float) else value

    shown = [{name: plain(cell(name, row[name])) for name in filled} for row in rows]
    with st.container(height="content" if len(shown) <= MAX_ROWS else SCROLLED, border=False):
        st.table(shown, border="horizontal", hide_index=True)


def draw_table(rows: Any, **table: Any) -> Any:
    """Draw the rows, or a frame, as a table. Returns the selection if one is asked for.

    `table` goes to `st.dataframe`.
    """
    return st.dataframe(rows, hide_index=True, placeholder=MISSING, **table)
