"""Actions of the Judge page: find the user's judge, lease items, store decisions.

A decision names its item by the assignment's token and carries an event id derived from judge,
study and item: a callback that runs twice, or with stale arguments, stores one judgment.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import streamlit as st
from sqlalchemy.orm import Session

from app.access.identity import SessionUser
from app.access.session_user import action, require_permission
from app.judge.qualification_card import answer_examples, example_now
from app.kit.outbox import store_outbox
from db.assignment import qualification
from db.assignment.answering import Decision
from db.assignment.answering import skip_item as store_skip
from db.assignment.answering import submit_decision as store_decision
from db.assignment.leasing import lease_items, next_item
from db.assignment.members import membership
from db.assignment.places import assignment_of_token
from db.assignment.progress import OwnProgress, own_progress
from db.assignment.qualification import QualificationState
from db.assignment.shown_items import ShownItem
from db.errors import Refused
from db.store.store import open_store
from db.study.judgments import get_or_create_judge
from db.tables import Judge, utc_now

SHOWN = "judge.shown"
FEEDBACK = "judge.feedback"
LEASED_AHEAD = 5
DWELL_MS = 300


def judge_of(session: Session, user: SessionUser) -> Judge:
    """The user's judge. Raises Refused if a model has the same name. Does not commit."""
    return get_or_create_judge(session, user.name, kind="person", account_id=user.account_id)


def take_next(study_id: int) -> tuple[ShownItem | None, OwnProgress]:
    """The next item, leased to the user, and their progress. Raises Refused."""
    user = require_permission("judge")
    with open_store().write() as session:
        judge = judge_of(session, user)
        item = next_item(session, study_id, judge.id)
        progress = own_progress(session, study_id, judge.id)
        session.commit()
    if item is not None and st.session_state.get(SHOWN, ("",))[0] != item.token:
        st.session_state[SHOWN] = (item.token, utc_now())
    return item, progress


def shown_at(token: str) -> datetime | None:
    """When this tab first showed the item; None if it shows another one."""
    shown = st.session_state.get(SHOWN)
    return shown[1] if shown and shown[0] == token else None


@action
def pick(study_id: int, token: str, position: int | None) -> None:
    """Store the user's answer: a position on the screen, or None for "None of them"."""
    user = require_permission("judge")
    with open_store().write() as session:
        judge = judge_of(session, user)
        item_id = assignment_of_token(session, study_id, judge.id, token).item_id
        decision = Decision(
            event_id=f"page:{judge.id}/{study_id}/{item_id}",
            item_id=item_id,
            position=position,
            shown_at=shown_at(token),
            decided_at=utc_now(),
        )
        store_decision(session, study_id, judge.id, decision)
        session.commit()


@action
def skip(study_id: int, token: str) -> None:
    """Return the item to the queue for another judge."""
    user = require_permission("judge")
    with open_store().write() as session:
        judge_id = judge_of(session, user).id
        item_id = assignment_of_token(session, study_id, judge_id, token).item_id
        store_skip(session, study_id, judge_id, item_id)
        session.commit()


def card_data(study_id: int, events: Sequence[Any]) -> dict[str, Any]:
    """The data of the judging card, after storing the decisions it sent, in one transaction.

    `scope` separates the outboxes of different judges and stores in the same browser.
    """
    user = require_permission("judge")
    items: list[dict[str, Any]] = []
    message = ""
    in_qualification: QualificationState | None = None
    with open_store().write() as session:
        judge = judge_of(session, user)
        examples = answer_examples(session, judge.id, events)
        acknowledged = {**examples.answers, **store_outbox(session, judge.id, examples.others)}
        try:
            state, example = example_now(session, study_id, judge.id)
            if state.passed:
                leased = lease_items(session, study_id, judge.id, LEASED_AHEAD)
                items = [_as_json(item) for item in leased]
            elif example is not None:
                in_qualification = state
                items = [{**_as_json(example), "round": state.round}]
        except Refused as refused:
            message = str(refused)
        progress = own_progress(session, study_id, judge.id)
        session.commit()
    scope = hashlib.sha256(f"{judge.id} {judge.name} {judge.created_at}".encode())
    return {
        "scope": scope.hexdigest()[:16],
        "study": study_id,
        "items": items,
        "qualification": None if in_qualification is None else asdict(in_qualification),
        "feedback": examples.feedback,
        "acknowledged": acknowledged,
        "message": message,
        "finished": not items,
        "done": progress.done,
        "left": progress.left if items or message else 0,
        "pace": progress.seconds_per_item,
        "dwell_ms": DWELL_MS,
    }


def _as_json(item: ShownItem) -> dict[str, Any]:
    """All that a browser receives of an item; tests/app/test_adversarial_annotator.py."""
    return {
        "token": item.token,
        "instruction": item.instruction,
        "query": item.query,
        "candidates": list(item.candidates),
    }


def qualification_of(study_id: int) -> tuple[QualificationState, ShownItem | None]:
    """The user's state in the study's qualification, and the next example to answer."""
    user = require_permission("judge")
    with open_store().write() as session:
        judge = judge_of(session, user)
        state = qualification.qualification_state(session, study_id, judge.id)
        example = None if state.passed else qualification.next_example(session, study_id, judge.id)
        member = membership(session, study_id, judge.id)
        session.commit()
    if member.state == "paused":
        raise Refused(f"you are paused in this study: {member.reason}")
    return state, example


@action
def answer_example(study_id: int, token: str, position: int | None) -> None:
    """Store the answer to an example and keep the feedback for the next rerun."""
    user = require_permission("judge")
    with open_store().write() as session:
        judge = judge_of(session, user)
        feedback = qualification.answer_example(session, study_id, judge.id, token, position)
        session.commit()
    st.session_state[FEEDBACK] = feedback


def feedback_to_show(study_id: int) -> qualification.Feedback | None:
    """The feedback on the last example, until the user dismisses it."""
    feedback: qualification.Feedback | None = st.session_state.get(FEEDBACK)
    return feedback if feedback is not None and feedback.item.study_id == study_id else None


def forget_feedback() -> None:
    """Dismiss the feedback."""
    st.session_state.pop(FEEDBACK, None)
