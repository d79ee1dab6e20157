"""Actions of the Judge page: find the user's judge, lease items, store decisions.

A decision names its item by the assignment's token; storing it twice stores one judgment.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from app.access.identity import SessionUser
from app.access.session_user import require_permission
from app.judge.qualification_card import answer_examples, example_now
from app.judge.text_language import lang_of
from app.kit.outbox import store_outbox
from app.text.languages import DEFAULT, error_text
from db.answers.own_answers import OwnAnswer, own_answers
from db.assignment.leasing import lease_items
from db.assignment.progress import own_progress
from db.assignment.qualification import QualificationState
from db.assignment.shown_items import ShownItem
from db.assignment.threads import Message, messages_of, unread_replies
from db.errors import Refused
from db.store.store import open_store
from db.study.judgments import get_or_create_judge
from db.tables import Judge, Study, StudyJudge

LEASED_AHEAD = 5
DWELL_MS = 300
EARLIER_ANSWERS = 10  # sent at once to who goes back after a reload


def judge_of(session: Session, user: SessionUser) -> Judge:
    """The user's judge. Raises Refused if a model has the same name. Does not commit."""
    return get_or_create_judge(session, user.name, kind="person", account_id=user.account_id)


def card_data(
    study_id: int,
    events: Sequence[Any],
    *,
    language: str = DEFAULT,
    before: str | None = None,
) -> dict[str, Any]:
    """The data of the judging card, after storing the decisions it sent: all in one transaction.

    `scope` separates the outboxes of different judges and stores in the same browser. `before`
    requests the judge's answers older than that of this token ("": the last ones).
    """
    user = require_permission("judge")
    reword = partial(error_text, language)
    leased: list[ShownItem] = []
    example: ShownItem | None = None
    notices: dict[str, str] = {}
    message = ""
    in_qualification: QualificationState | None = None
    with open_store().write() as session:
        judge = judge_of(session, user)
        # a session's hold on its rows is weak: what is read again and again is held here
        _held = session.get(Study, study_id), session.get(StudyJudge, (study_id, judge.id))
        examples = answer_examples(session, judge.id, events, reword=reword)
        stored = store_outbox(session, judge.id, examples.others, reword=reword, notices=notices)
        acknowledged = {**examples.answers, **stored}
        try:
            state, example = example_now(session, study_id, judge.id)
            if state.passed:
                leased = lease_items(session, study_id, judge.id, LEASED_AHEAD)
            elif example is not None:
                in_qualification = state
        except Refused as refused:
            message = reword(refused)
        session.commit()
        judge_id, about = judge.id, f"{judge.id} {judge.name} {judge.created_at}"
    # what is only read waits for nobody, and nobody waits for it: the study's lock is free again
    with open_store().read() as session:
        threads = messages_of(session, study_id, judge_id, [one.item_id for one in leased])
        items = [_as_json(item, threads.get(item.item_id, ())) for item in leased]
        if in_qualification is not None and example is not None:
            items = [{**_as_json(example), "round": in_qualification.round}]
        past = [] if before is None else _past(session, study_id, judge_id, before)
        progress = own_progress(session, study_id, judge_id)
        replies = len(unread_replies(session, study_id, judge_id))
    scope = hashlib.sha256(about.encode())
    return {
        "language": language,
        "scope": scope.hexdigest()[:16],
        "study": study_id,
        "items": items,
        "past": past,
        "past_before": before,
        "qualification": None if in_qualification is None else asdict(in_qualification),
        "feedback": examples.feedback,
        "acknowledged": acknowledged,
        "notices": notices,
        "message": message,
        "finished": not items,
        "done": progress.done,
        "left": progress.left if items or message else 0,
        "pace": progress.seconds_per_item,
        "replies": replies,
        "dwell_ms": DWELL_MS,
    }


def _as_json(item: ShownItem, thread: Sequence[Message] = ()) -> dict[str, Any]:
    """All that a browser receives of an item; tests/app/test_adversarial_annotator.py."""
    texts = (item.instruction, item.query, *item.candidates)
    return {
        "token": item.token,
        "instruction": item.instruction,
        "query": item.query,
        "candidates": list(item.candidates),
        "langs": [lang_of(text) for text in texts],
        "thread": [{"mine": not one.written_by, "body": one.body} for one in thread],
    }


def _past(session: Session, study_id: int, judge_id: int, before: str) -> list[dict[str, Any]]:
    """The judge's earlier answers that may be changed, the last one first, as the card has them."""
    found = own_answers(session, study_id, judge_id, before=before, count=EARLIER_ANSWERS)
    return [_past_as_json(one) for one in found if one.may_change]


def _past_as_json(answer: OwnAnswer) -> dict[str, Any]:
    entry = {
        "kind": "pick",
        "position": answer.position,
        "note": answer.note,
        "flagged": answer.flagged,
        "reason": answer.reason,
    }
    return {"item": _as_json(answer.item, answer.thread), "entry": entry}
