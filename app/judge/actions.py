"""Actions of the Judge page: find the user's judge, lease items, store decisions.

A decision names its item by the assignment's token; storing it twice stores one judgment.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from app.access.identity import SessionUser
from app.access.scope import writing_as
from app.judge.qualification_card import answer_examples, example_now
from app.judge.text_language import lang_of
from app.kit.outbox import store_outbox, studies_named
from app.kit.outbox_card import outbox_scope
from app.text.languages import DEFAULT, error_text
from db.answers.own_answers import OwnAnswer, own_answers
from db.assignment.guidelines import acknowledge, has_new_guidelines
from db.assignment.leasing import hold_items
from db.assignment.members import gold_is_due, pause_on_failed_gold
from db.assignment.progress import own_progress
from db.assignment.qualification import QualificationState
from db.assignment.shown_items import ShownItem, show_all
from db.assignment.standing import standings
from db.assignment.threads import Message, threads_and_replies
from db.errors import Refused
from db.store.store import open_store
from db.study.judgments import get_or_create_judge
from db.tables import Assignment, Judge

LEASED_AHEAD = 5
DWELL_MS = 300
EARLIER_ANSWERS = 10  # sent at once to who goes back after a reload
UNREAD = Refused(
    "the guidelines have changed", "read the new version first", code="guidelines_changed"
)


def judge_of(session: Session, user: SessionUser) -> Judge:
    """The user's judge. Raises Refused if a model has the same name. Does not commit."""
    return get_or_create_judge(session, user.name, kind="person", account_id=user.account_id)


def card_data(
    study_id: int,
    events: Sequence[Any],
    *,
    language: str = DEFAULT,
    before: str | None = None,
    guidelines: int | None = None,
) -> dict[str, Any]:
    """The data of the judging card, after storing the decisions it sent: all in one transaction.

    Answers to hidden gold are scored later, several together, in a transaction of their own.

    `scope` separates the outboxes of different judges and stores in the same browser; `formerly` is
    what an earlier version made of the name, under which answers may still wait. `before`
    requests the judge's answers older than that of this token ("": the last ones). `guidelines` is
    the version that the page drew, by default the newest; in the data, the one that the card names
    in its answers. While a newer one is `unread`, the judge's leases are held, and no item is sent.
    Raises Refused without the permission.
    """
    reword = partial(error_text, language)
    leased: list[Assignment] = []
    qualification: tuple[QualificationState, ShownItem] | None = None
    notices: dict[str, str] = {}
    message = ""
    with writing_as("judge") as (session, user):
        judge = judge_of(session, user)
        there = standings(session, judge, study_id, studies_named(events))
        here = there[study_id]
        examples = answer_examples(session, there, judge.id, events, reword=reword)
        stored = store_outbox(session, there, examples.others, reword=reword, notices=notices)
        acknowledged = {**examples.answers, **stored}
        try:
            if here.is_qualified:
                leased = hold_items(session, here, LEASED_AHEAD, shown=guidelines)
            else:
                qualification = example_now(session, here, guidelines)
        except Refused as refused:
            message = reword(refused)
        if is_unread := not message and has_new_guidelines(here):
            leased, qualification, message = [], None, reword(UNREAD)
        session.commit()
    # what is only read waits for nobody, and nobody waits for it: the study's lock is free again
    with open_store().read() as session:
        # as they were read: a session looks up what it holds before it asks the store
        judge, _study = session.merge(judge, load=False), session.merge(here.study, load=False)
        shown = show_all(session, leased)
        item_ids = [one.item_id for one in shown]
        threads, replies = threads_and_replies(session, study_id, judge.id, item_ids)
        items = [_as_json(item, threads.get(item.item_id, ())) for item in shown]
        if qualification is not None:
            state, example = qualification
            items = [{**_as_json(example), "round": state.round}]
        past = [] if before is None else _past(session, study_id, judge.id, before)
        progress = own_progress(session, study_id, judge.id)
    counts = {"answered": progress.done, "left": progress.left}
    if gold_is_due(here.member, **counts):
        with open_store().write() as session:
            pause_on_failed_gold(session, study_id, judge.id, **counts)
            session.commit()
    return {
        "language": language,
        "scope": outbox_scope(judge.id, judge.created_at),
        "formerly": outbox_scope(judge.id, judge.name, judge.created_at),
        "study": study_id,
        "items": items,
        "past": past,
        "past_before": before,
        "qualification": None if qualification is None else asdict(qualification[0]),
        "feedback": examples.feedback,
        "acknowledged": acknowledged,
        "notices": notices,
        "message": message,
        "guidelines": here.read_version,
        "unread": is_unread,
        "finished": not items,
        "done": progress.done,
        "left": progress.left if items or message else 0,
        "pace": progress.seconds_per_item,
        "replies": replies,
        "dwell_ms": DWELL_MS,
    }


def acknowledge_guidelines(study_id: int, version: int) -> None:
    """Record that the user has read this version of the study's guidelines."""
    with writing_as("judge") as (session, user):
        acknowledge(session, study_id, judge_of(session, user).id, version)
        session.commit()


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
