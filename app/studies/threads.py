"""Threads of judges with the curators, on the Studies page; each is opened on request.

A curator sees the item as its judge does, without roles. Opening a thread is recorded as a view of
the item in adjudication is: it is never given to this curator to judge, nor is its answer changed.
"""

import streamlit as st

from app.access.session_user import action, require_permission
from app.kit.choice import draw_pages
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from db.assignment import threads
from db.assignment.shown_items import ShownItem
from db.assignment.threads import Message, Thread
from db.store.store import open_store
from db.study.blind_adjudication import record_view

OPEN = "studies.thread"
ROWS = 10


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


def draw_threads(study_id: int) -> None:
    """The list of threads and the one that is open; nothing is drawn without any."""
    found = read_threads(study_id)
    if not found:
        return
    unread = sum(one.unread > 0 for one in found)
    label = counted(len(found), "thread") + (f", {unread} unread" if unread else "")
    with st.expander(label, icon=":material/forum:", expanded=unread > 0):
        st.caption(
            "Messages of judges about an item; other judges never see them. Who opens a thread "
            "is no longer given its item to judge."
        )
        start = draw_pages(len(found), key="studies.threads", rows=ROWS)
        opened = st.session_state.get(OPEN)
        for one in found[start : start + ROWS]:
            text = f"{one.judge} · item {one.item_id}" + (f" · {one.unread} new" * (one.unread > 0))
            st.button(
                plain(text),
                key=f"studies.thread_{one.item_id}_{one.judge_id}",
                on_click=open_thread,
                args=(study_id, one.item_id, one.judge_id),
            )
            if opened == (study_id, one.item_id, one.judge_id):
                _draw_open(study_id, one)


def _draw_open(study_id: int, thread: Thread) -> None:
    shown, messages = read_thread(study_id, thread.item_id, thread.judge_id)
    with st.container(border=True):
        draw_text(shown.instruction, label="Instruction")
        draw_text(shown.query, label="Query")
        for place, text in enumerate(shown.candidates, start=1):
            draw_text(text, label=f"Passage {place} on {thread.judge}'s screen")
        for message in messages:
            draw_text(message.body, label=message.written_by or thread.judge)
        form = f"{thread.item_id}_{thread.judge_id}_{len(messages)}"
        st.text_area("Answer", key=f"studies.answer_{form}", max_chars=2000, height=80)
        st.button(
            "Send",
            key=f"studies.send_{form}",
            on_click=answer_thread,
            args=(study_id, thread.item_id, thread.judge_id, len(messages)),
        )
