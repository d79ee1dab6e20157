"""Actions of the page My answers: change an answer, write to the curators."""

import streamlit as st

from app.access.language import language_now, say
from app.access.session_user import cookie_holder, notify
from app.operations.judging import answers
from app.text.languages import error_text
from curation.judging.request import AnswerChange, JudgeMessage
from db.errors import InfError


def change_answer(study_id: int, token: str) -> None:
    """Store the choice of the form as the new answer. Idempotent."""
    chosen = st.session_state[f"answers.choice_{token}"]
    try:
        wanted = AnswerChange(study_id=study_id, token=token, position=chosen)
        changed = answers.change(cookie_holder(), wanted)
        notify(say("answers.changed" if changed else "answers.same"))
    except InfError as error:
        notify(error_text(language_now(), error), kind="error")


def send_message(study_id: int, token: str, written: int) -> None:
    """Store the message of the form; `written`: how many the thread had."""
    body = str(st.session_state.get(f"answers.message_{token}_{written}") or "")
    try:
        wanted = JudgeMessage(study_id=study_id, token=token, body=body, written=written)
        answers.write(cookie_holder(), wanted)
    except InfError as error:
        notify(error_text(language_now(), error), kind="error")
