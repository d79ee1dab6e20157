"""Review every group that matches the filter: what would change, a confirmation, undoing it."""

from typing import Literal

import streamlit as st

from app.access.session_user import signed_in_user
from app.groups import actions
from app.operations.judging import reviews
from app.text.numbers import counted
from app.text.plain import plain
from curation.judging.request import ReviewMany
from db.review.queue import QueueFilter

NOW = {"none": "not reviewed", "approve": "approved", "reject": "rejected", "edit": "edited"}


def draw_bulk(wanted: QueueFilter) -> None:
    """Draw the bulk review of what the filter above the list matches."""
    with st.expander("Review all groups that match the filter", icon=":material/done_all:"):
        reason = st.text_input(
            "Reason for a rejection", key="review.many_reason", placeholder="required to reject"
        )
        with st.container(horizontal=True):
            if st.button("Approve all …", key="review.many_approve"):
                confirm(wanted, "approve")
            if st.button(
                "Reject all …", key="review.many_reject", disabled=not (reason or "").strip()
            ):
                confirm(wanted, "reject", reason or "")
            last = st.session_state.get(actions.LAST_BULK)
            if last and last[0] == wanted.run_id:
                st.button(
                    f"Undo the last {counted(last[2], 'review')}",
                    key="review.many_undo",
                    icon=":material/undo:",
                    on_click=actions.undo_many,
                    args=last[:2],
                )


@st.dialog("Review many groups")
def confirm(wanted: QueueFilter, action: Literal["approve", "reject"], reason: str = "") -> None:
    """Draw what would change, and the confirmation with the number of groups."""
    review = ReviewMany(**vars(wanted), action=action, because=reason)
    found = reviews.preview(signed_in_user(), review)
    verb = "Approve" if action == "approve" else "Reject"
    st.markdown(f"**{verb} {counted(found.groups, 'group')} of run {wanted.run_id}?**")
    filters = ", ".join(
        f"{name.replace('_', ' ')}: {value if name != 'ids' else counted(len(value), 'group')}"
        for name, value in vars(wanted).items()
        if value and name != "run_id"
    )
    st.caption(plain(filters or "all groups"))
    counts = ((found.by_review.get(review, 0), name) for review, name in NOW.items())
    now = ", ".join(f"{count:,} {name}" for count, name in counts if count)
    lines = [f"Now: {now or 'none'}. Earlier reviews stay in the history."]
    if found.dropped and action == "approve":
        lines.append(f"Rescues {counted(found.dropped, 'group')} that the filter dropped.")
    if found.left_out:
        are = "lacks" if found.left_out == 1 else "lack"
        lines.append(f"{counted(found.left_out, 'group')} {are} texts and cannot be approved.")
    st.markdown("  \n".join(plain(line) for line in lines))
    if reason:
        st.caption(plain(f"Reason: {reason}"))
    with st.container(horizontal=True):
        if st.button(
            f"{verb} {found.groups:,}",
            type="primary",
            key="review.many_yes",
            disabled=not found.groups,
            on_click=actions.review_many,
            args=(review.model_copy(update={"expected": found.groups}),),
        ):
            st.rerun()
        if st.button("Cancel", key="review.many_no"):
            st.rerun()
