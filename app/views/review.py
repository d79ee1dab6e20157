"""Review: a person approves, rejects or edits group after group."""

import streamlit as st

from app import reviewing
from app.components.choice import choose
from app.components.group import draw_group
from app.components.page import draw_empty, draw_heading
from app.components.run import run_name
from db.groups import GroupDetail, get_group, list_groups
from db.reviews import FIELDS, count_reviews
from db.runs import list_runs
from db.store import open_store

QUEUES = {
    "kept, not reviewed": ("kept", "none"),
    "dropped, not reviewed": ("dropped", "none"),
    "edited, not approved": (None, "edit"),
    "approved": (None, "approve"),
    "rejected": (None, "reject"),
}
FIELD_NAMES = {
    "instruction_positive": "Instruction I+",
    "query_negative": "Query Q-",
    "instruction_negative": "Instruction I-",
    "hard_negative_document_1": "Passage P1-",
    "hard_negative_document_2": "Passage P2-",
}


def draw_decision(group: GroupDetail, offset: int, total: int) -> None:
    """Approve, reject with a reason, edit, or leave it for later."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Approve",
            type="primary",
            icon=":material/check:",
            key=f"review.approve-{group.id}",
            on_click=reviewing.approve,
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
            on_click=reviewing.reject,
            args=(group.id,),
        )
        st.button(
            "Later",
            key=f"review.later-{group.id}",
            on_click=reviewing.later,
            args=((offset + 1) % max(1, total),),
        )
    if len(group.triplets) == 3:
        with st.expander("Edit the texts"):
            draw_edit(group)


def draw_edit(group: GroupDetail) -> None:
    """The texts that were written, not those from the source; the old text is kept."""
    before = {name: reviewing.text_of(group, name) for name in FIELDS}
    with st.form(f"review.edit-{group.id}", border=False):
        for name, text in before.items():
            key = f"review.{name}-{group.id}"
            st.text_area(FIELD_NAMES[name], text, key=key, height="content")
        st.form_submit_button("Save the edit", on_click=reviewing.edit, args=(group.id, before))


draw_heading("Review", "A person's word on a group: approve, reject with a reason, or edit.")
with open_store().read() as session:
    runs = [run for run in list_runs(session) if run.kept + run.dropped]
if not runs:
    draw_empty(
        "Nothing to review yet.",
        "Groups are grown by a curation run.",
        view="curate",
        link="Curate",
        command="inf curate --dataset NAME --provider offline",
    )
    st.stop()
left, right = st.columns([2, 1])
with left:
    run = choose(
        "Run", runs, key="review.run", parameter="run", ident=lambda run: run.id, name=run_name
    )
queue = right.selectbox(
    "Queue", list(QUEUES), key="review.queue", on_change=reviewing.later, args=(0,)
)
verdict, review = QUEUES[queue or "kept, not reviewed"]
offset = int(st.session_state.get("review.offset", 0))
with open_store().read() as session:
    counts = count_reviews(session, run.id)
    page = list_groups(session, run.id, verdict=verdict, review=review, offset=offset, limit=1)
    if not page.rows and page.total:
        offset = 0
        page = list_groups(session, run.id, verdict=verdict, review=review, limit=1)
    asked = st.query_params.get("group", "")
    shown = int(asked) if asked.isdecimal() else (page.rows[0].id if page.rows else None)
    group = None if shown is None else get_group(session, shown)
reviewed = sum(counts.values())
st.caption(
    f"{page.total:,} in this queue · {reviewed:,} of {run.kept + run.dropped:,} groups reviewed"
    + "".join(f" · {action} {n:,}" for action, n in counts.items())
)
if group is None:
    draw_empty(
        "This queue is empty.",
        "Choose another queue, or make a release of what is there.",
        view="releases",
        link="Releases",
    )
else:
    draw_decision(group, offset, page.total)
    draw_group(group)
