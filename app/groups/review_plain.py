"""The review page with plain widgets, for browsers in which the card does not work."""

import streamlit as st

from app.groups import actions
from app.groups.actions import Desk
from app.groups.group import draw_group
from app.kit.page import draw_empty
from db.review.texts import FIELDS
from db.run.group_detail import GroupDetail
from db.scenarios import SCENARIOS, TEXTS

FIELD_NAMES = {text.column: text.label for text in TEXTS.values() if not text.from_source}


def draw_plain(desk: Desk) -> None:
    """Draw one group with its buttons."""
    group, total, blind = actions.next_group(desk)
    st.caption(f"{total:,} in this queue")
    if group is None:
        draw_empty("This queue is empty.", "Choose another queue above.")
        return
    draw_decision(group)
    draw_group(group, show_verdict=not blind)


def draw_decision(group: GroupDetail) -> None:
    """Draw the buttons to approve, reject with a reason, edit, or postpone."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Approve",
            type="primary",
            icon=":material/check:",
            key=f"review.approve-{group.id}",
            on_click=actions.approve,
            args=(group.id,),
        )
        st.text_input(
            "Reason for a rejection",
            key=f"review.reason-{group.id}",
            label_visibility="collapsed",
            placeholder="reason for a rejection",
        )
        st.button(
            "Reject",
            icon=":material/close:",
            key=f"review.reject-{group.id}",
            on_click=actions.reject,
            args=(group.id,),
        )
        st.button(
            "Later",
            key=f"review.later-{group.id}",
            on_click=actions.later,
            args=(group.id,),
        )
    if len(group.triplets) == len(SCENARIOS):
        with st.expander("Edit the texts"):
            draw_edit(group)


def draw_edit(group: GroupDetail) -> None:
    """Draw the form for the generated texts (not those of the source); old texts are kept."""
    before = {name: actions.text_of(group, name) for name in FIELDS}
    with st.form(f"review.edit-{group.id}", border=False):
        for name, text in before.items():
            key = f"review.{name}-{group.id}"
            st.text_area(FIELD_NAMES[name], text, key=key, height="content")
        st.form_submit_button("Save edit", on_click=actions.edit, args=(group.id, before))
