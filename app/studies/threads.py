"""Threads of judges with the curators, on the Studies page; each is opened on request."""

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.choice import draw_pages
from app.operations.judging import judgments
from app.studies.actions import OPEN, answer_thread, open_thread
from app.text.numbers import counted
from app.text.plain import plain
from app.text.texts import draw_text
from db.assignment.threads import MAX_MESSAGE_CHARACTERS, Thread

ROWS = 10


def draw_threads(study_id: int) -> None:
    """The list of threads and the one that is open; nothing is drawn without any."""
    found = judgments.threads(signed_in_user(), study_id)
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
    shown, messages = judgments.thread(signed_in_user(), study_id, thread.item_id, thread.judge_id)
    with st.container(border=True):
        draw_text(shown.instruction, label="Instruction")
        draw_text(shown.query, label="Query")
        for place, text in enumerate(shown.candidates, start=1):
            draw_text(text, label=f"Passage {place} on {thread.judge}'s screen")
        for message in messages:
            draw_text(message.body, label=message.written_by or thread.judge)
        form = f"{thread.item_id}_{thread.judge_id}_{len(messages)}"
        st.text_area(
            "Answer", key=f"studies.answer_{form}", max_chars=MAX_MESSAGE_CHARACTERS, height=80
        )
        st.button(
            "Send",
            key=f"studies.send_{form}",
            on_click=answer_thread,
            args=(study_id, thread.item_id, thread.judge_id, len(messages)),
        )
