"""What waits for the user: items to judge or decide, messages to read, failed jobs."""

import streamlit as st

from app.access.identity import SessionUser
from app.home.actions import read_waiting
from app.home.seen_actions import SeenStudies
from app.kit.menu import may_open, view_file
from app.kit.page import draw_link
from app.text.numbers import counted
from app.text.plain import plain


def draw_waiting(user: SessionUser, seen: SeenStudies, failed_jobs: int = 0) -> None:
    """A link per kind of work and study; nothing where nothing waits."""
    found = [each for each in read_waiting(seen) if may_open(user, each.view)]
    if not found and not failed_jobs:
        return
    st.subheader("Waiting for you", anchor=False)
    for each in found:
        st.page_link(
            view_file(each.view),
            label=plain(f"{counted(each.number, each.one, each.many)} in {each.study}"),
            icon=":material/inbox:",
            query_params={"study": str(each.study_id)},
        )
    if failed_jobs:
        draw_link("jobs", label=f"Failed or lost jobs: {failed_jobs:,}", icon=":material/error:")
