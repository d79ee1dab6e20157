"""Actions of the page My answers: list a judge's answers and threads, change, write."""

import streamlit as st

from app.access.language import language_now, say
from app.access.session_user import notify, require_permission
from app.judge.actions import judge_of
from app.text.languages import error_text
from db.answers.own_answers import OwnAnswer, count_answers, own_answers
from db.assignment.answering import Decision, submit_decision
from db.assignment.places import assignment_of_token
from db.assignment.threads import mark_read, unread_replies, write_as_judge
from db.errors import InfError
from db.store.store import open_store
from db.study.judgments import current_judgment
from db.study.studies import StudySummary, list_studies
from db.tables import utc_now
from db.values import NONE


def studies_to_show() -> list[StudySummary]:
    """The studies that are not closed: answers of a closed one are its result."""
    require_permission("judge")
    with open_store().read() as session:
        return list_studies(session, statuses=("open", "paused"))


def read_answers(
    study_id: int, only: str, *, start: int, count: int
) -> tuple[list[OwnAnswer], int]:
    """A page of the user's answers in the study, and how many there are; threads become read."""
    user = require_permission("judge")
    with open_store().write() as session:
        judge_id = judge_of(session, user).id
        found = own_answers(session, study_id, judge_id, only=only, start=start, count=count)
        total = count_answers(session, study_id, judge_id, only=only)
        items = [one.item.item_id for one in found if one.thread]
        mark_read(session, study_id, judge_id, items, by_judge=True)
        session.commit()
    return found, total


def count_replies(study_id: int) -> int:
    """In how many threads a curator's message waits for the user."""
    user = require_permission("judge")
    with open_store().write() as session:
        found = len(unread_replies(session, study_id, judge_of(session, user).id))
        session.commit()
    return found


def change_answer(study_id: int, token: str) -> None:
    """Store the choice of the form as the new answer, keeping note and flag. Idempotent."""
    chosen = st.session_state[f"answers.choice_{token}"]
    try:
        user = require_permission("judge")
        with open_store().write() as session:
            judge_id = judge_of(session, user).id
            assignment = assignment_of_token(session, study_id, judge_id, token)
            item_id, order = assignment.item_id, assignment.order_shown
            before = current_judgment(session, judge_id, item_id)
            if before and before.choice == (NONE if chosen < 0 else order[chosen]):
                notify(say("answers.same"))
                return
            decision = Decision(
                # of the answer that it replaces: a click that arrives twice changes once
                event_id=f"answers:{judge_id}/{before.id if before else 0}/{chosen}",
                item_id=item_id,
                position=None if chosen < 0 else chosen,
                decided_at=utc_now(),
                note=before.note if before else "",
                flagged=bool(before and before.flagged),
                reason=before.reason if before else "",
                change=True,
            )
            submit_decision(session, study_id, judge_id, decision)
            session.commit()
        notify(say("answers.changed"))
    except InfError as error:
        notify(error_text(language_now(), error), kind="error")


def send_message(study_id: int, token: str, written: int) -> None:
    """Store the message of the form; `written`: how many the thread had, so that twice is once."""
    body = str(st.session_state.get(f"answers.message_{token}_{written}") or "")
    try:
        user = require_permission("judge")
        with open_store().write() as session:
            judge_id = judge_of(session, user).id
            item_id = assignment_of_token(session, study_id, judge_id, token).item_id
            event_id = f"answers:{judge_id}/{token}/{written}"
            write_as_judge(session, study_id, judge_id, item_id, body, event_id=event_id)
            session.commit()
    except InfError as error:
        notify(error_text(language_now(), error), kind="error")
