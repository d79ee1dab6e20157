"""What waits for the user: items to judge or decide, messages to read, failed jobs."""

import streamlit as st

from app.access.identity import SessionUser
from app.kit.frame.links import page_link
from app.kit.menu import may_open
from app.kit.page import draw_link
from app.operations.overview.home import SeenStudies, waiting
from app.text.numbers import counted
from app.text.plain import plain


def draw_waiting(user: SessionUser, seen: SeenStudies, failed_jobs: int = 0) -> None:
    """A link per kind of work and study; nothing where nothing waits."""
    found = [each for each in waiting(user, seen) if may_open(user, each.view)]
    if not found and not failed_jobs:
        return
    st.subheader("Waiting for you", anchor=False)
    for each in found:
        page_link(
            each.view,
            plain(f"{counted(each.number, each.one, each.many)} in {each.study}"),
            icon=":material/inbox:",
            parameters={"study": each.study_id},
        )
    if failed_jobs:
        draw_link("jobs", label=f"Failed or lost jobs: {failed_jobs:,}", icon=":material/error:")
