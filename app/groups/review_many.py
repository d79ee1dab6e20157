"""Review every group that matches the filter: count and confirmation."""

import streamlit as st

from app.groups import actions
from app.text.numbers import counted
from app.text.plain import plain
from db.review.queue import QueueFilter


def draw_many(wanted: QueueFilter) -> None:
    """Draw the bulk review of what the filter above the card matches."""
    with st.expander("Review all matching groups", icon=":material/done_all:"):
        count = actions.count_matching(wanted)
        st.caption(
            f"The filter above matches {counted(count, 'group')}. Each gets its own review by you; "
            "earlier reviews stay in its history."
        )
        reason = st.text_input(
            "Reason for a rejection", key="review.many_reason", placeholder="required to reject"
        )
        with st.container(horizontal=True):
            if st.button(f"Approve {count:,} …", key="review.many_approve", disabled=not count):
                confirm(wanted, "approve", count, "")
            if st.button(
                f"Reject {count:,} …",
                key="review.many_reject",
                disabled=not (count and (reason or "").strip()),
            ):
                confirm(wanted, "reject", count, reason or "")


@st.dialog("Review many groups")
def confirm(wanted: QueueFilter, action: str, count: int, reason: str) -> None:
    """Draw the confirmation with the number of groups."""
    verb = "Approve" if action == "approve" else "Reject"
    st.markdown(f"**{verb} {counted(count, 'group')} of run {wanted.run_id}?**")
    active = {name: value for name, value in vars(wanted).items() if value and name != "run_id"}
    filters = ", ".join(f"{name}: {value}" for name, value in active.items()) or "all groups"
    st.caption(plain(filters))
    if reason:
        st.caption(plain(f"Reason: {reason}"))
    with st.container(horizontal=True):
        if st.button(
            f"{verb} {count:,}",
            type="primary",
            key="review.many_yes",
            on_click=actions.review_many,
            args=(wanted, action, count, reason),
        ):
            st.rerun()
        if st.button("Cancel", key="review.many_no"):
            st.rerun()
