"""Actions on threads of judges with the curators: list, open, read, answer.

A curator sees the item as its judge does, without roles. Opening a thread is recorded as a view of
the item in adjudication is: it is never given to this curator to judge, nor is its answer changed.
"""

import streamlit as st

from app.access.session_user import action, require_permission
from db.assignment import threads
from db.assignment.shown_items import ShownItem
from db.assignment.threads import Message, Thread
from db.store.store import open_store
from db.study.blind_adjudication import record_view

OPEN = "studies.thread"


def read_threads(study_id: int) -> list[Thread]:
    """All threads of the study, unread ones first."""
    require_permission("studies")
    with open_store().read() as session:
        return threads.list_threads(session, study_id)


@action
def open_thread(study_id: int, item_id: int, judge_id: int) -> None:
    """Record that the curator sees this item, and mark the judge's messages as read."""
    user = require_permission("studies")
    with open_store().write() as session:
        record_view(session, study_id, item_id, user.name)
        threads.mark_read(session, study_id, judge_id, [item_id], by_judge=False)
        session.commit()
    st.session_state[OPEN] = (study_id, item_id, judge_id)


def read_thread(study_id: int, item_id: int, judge_id: int) -> tuple[ShownItem, list[Message]]:
    """The item in the judge's order, and the messages."""
    require_permission("studies")
    with open_store().read() as session:
        shown = threads.shown_to_judge(session, study_id, judge_id, item_id)
        return shown, threads.messages_of(session, study_id, judge_id, [item_id])[item_id]


@action
def answer_thread(study_id: int, item_id: int, judge_id: int, written: int) -> None:
    """Send the curator's message; `written`: how many there were, so that twice is once."""
    user = require_permission("studies")
    body = str(st.session_state.get(f"studies.answer_{item_id}_{judge_id}_{written}") or "")
    with open_store().write() as session:
        threads.write_as_curator(
            session,
            study_id,
            judge_id,
            item_id,
            body,
            by=user.name,
            event_id=f"studies:{study_id}/{item_id}/{judge_id}/{written}/{user.name}",
        )
        session.commit()
