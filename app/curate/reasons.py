"""Why a run dropped groups: each frequent reason in words, with examples and what to try next."""

import streamlit as st

from app.access.identity import SessionUser
from app.kit.frame.links import page_link
from app.operations import groups
from app.text.plain import plain
from app.text.remedies import in_pages
from app.text.texts import draw_text
from curation.recipe.drop_reasons import DROP_REASONS, reason_text
from db.review.queue import QueueFilter
from db.run.runs import Funnel

SHOWN = 3
EXAMPLES = 2


def draw_reasons(user: SessionUser, found: Funnel) -> None:
    """The most frequent reasons of a run that ended; nothing where no group was dropped."""
    if not found.dropped:
        return
    st.subheader("Why groups were dropped", anchor=False)
    for reason, count in list(found.dropped.items())[:SHOWN]:
        known = DROP_REASONS.get(reason)
        with st.container(border=True, key=f"curate-reason-{reason}"):
            meaning = reason_text(reason)
            share = f", {count / found.finished:.1%} of the finished groups" if count > 1 else ""
            st.markdown(f"**{plain(meaning[0].upper() + meaning[1:])}**: {count:,}{share}")
            wanted = QueueFilter(run_id=found.run_id, verdict="dropped", reason=reason)
            for group in groups.list_some(user, wanted, limit=EXAMPLES).data:
                with st.container(horizontal=True, vertical_alignment="center"):
                    with st.container():
                        draw_text(group.query)
                    page_link(
                        "groups",
                        "Open",
                        width="content",
                        parameters={"run": found.run_id, "group": group.id},
                    )
            if known:
                st.caption(plain(in_pages(f"Try next: {known.remedy}.")))
    if len(found.dropped) > SHOWN:
        st.caption(f"The {SHOWN} most frequent of {len(found.dropped)} reasons.")
