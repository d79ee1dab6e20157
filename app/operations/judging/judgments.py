"""Judgments of a study, its gold items, and the threads about items, as curators see them.

Blind: whoever may be given an item sees no answer to it. The judging card has its own way
(`app.judge.actions`), and so has adjudication.
"""

from app.access.identity import Actor
from app.operations.acting import reading, writing
from curation.judging.request import CuratorMessage
from db.assignment import threads as item_threads
from db.assignment.hidden import hidden_groups, hidden_in_study, hidden_items
from db.assignment.shown_items import ShownItem
from db.assignment.threads import Message, Thread
from db.errors import NotFound
from db.rows import Listed
from db.study import blind_adjudication
from db.study.gold_items import GoldItem, list_gold_items
from db.study.judgments import (
    JudgmentShown,
    ListedJudgment,
    find_shown,
    list_judgments,
)
from db.study.speed import FastAnswer
from db.study.speed import fast_answers as answers_too_fast
from db.study.studies import get_study

RIGHT = "studies"
PAGE = 100  # judgments of a list
HIDDEN_ITEM = "hidden: you may be given this item"
WITHOUT_ANSWER = {"instruction": HIDDEN_ITEM, "right": "", "explanation": ""}


class StudyJudgments(Listed[ListedJudgment]):
    """Judgments that count in a study."""

    study_id: int


def list_some(
    actor: Actor, study_id: int, *, after: int = 0, limit: int = PAGE
) -> Listed[ListedJudgment]:
    """Judgments that count in a study, by id; `next`: the id to go on `after`.

    Without those of items that the actor may be given, but for the store's owner. Raises NotFound.
    """
    with reading(actor, RIGHT) as session:
        get_study(session, study_id)
        is_blind = not actor.owns_store
        hidden = hidden_in_study(session, study_id, actor.name) if is_blind else None
        rows, total = list_judgments(session, study_id, without=hidden, after=after, limit=limit)
    is_last = len(rows) < limit
    return Listed[ListedJudgment](
        data=tuple(rows), next=None if is_last else rows[-1].id, total=total
    )


def show(actor: Actor, judgment_id: int) -> JudgmentShown:
    """Show one judgment: its item, its choice, and the order in which the judge saw them.

    Raises NotFound, also where `list_some` leaves it out.
    """
    with reading(actor, RIGHT) as session:
        found = find_shown(session, judgment_id)
        is_blind = found is not None and not actor.owns_store
        if found is None or (is_blind and hidden_items(session, {found.item_id}, actor.name)):
            raise NotFound(
                f"no judgment {judgment_id}",
                "`judgments list N` has their ids",
                code="judgment_unknown",
            )
        return found


def fast_answers(actor: Actor, study_id: int) -> list[FastAnswer]:
    """The answers given in less time than the study's rules allow; no choice of an item that is
    hidden from the actor."""
    with reading(actor, RIGHT) as session:
        found = answers_too_fast(session, study_id)
        hidden = hidden_items(session, {one.item_id for one in found}, actor.name)
    return [
        one.model_copy(update={"choice": ""}) if one.item_id in hidden else one for one in found
    ]


def gold(actor: Actor, study_id: int) -> list[GoldItem]:
    """The qualification and gold items of a study; without answers those hidden from the actor."""
    with reading(actor, RIGHT) as session:
        hidden = set(session.scalars(hidden_groups(session, actor.name)))
        found = list_gold_items(session, study_id)
    return [
        one.model_copy(update=WITHOUT_ANSWER) if one.group_id in hidden else one for one in found
    ]


def threads(actor: Actor, study_id: int) -> list[Thread]:
    """All threads of judges with the curators in a study, unread ones first."""
    with reading(actor, RIGHT) as session:
        return item_threads.list_threads(session, study_id)


def open_thread(actor: Actor, study_id: int, item_id: int, judge_id: int) -> None:
    """Record that the curator sees this item, and mark the judge's messages as read.

    As a view of the item in adjudication: it is never given to this curator to judge, nor is its
    answer changed.
    """
    with writing(actor, RIGHT) as session:
        blind_adjudication.record_view(session, study_id, item_id, actor.name)
        item_threads.mark_read(session, study_id, judge_id, [item_id], by_judge=False)


def thread(
    actor: Actor, study_id: int, item_id: int, judge_id: int
) -> tuple[ShownItem, list[Message]]:
    """The item in the judge's order, without roles, and the messages."""
    with reading(actor, RIGHT) as session:
        shown = item_threads.shown_to_judge(session, study_id, judge_id, item_id)
        found = item_threads.messages_of(session, study_id, judge_id, [item_id])
        return shown, found[item_id]


def answer_thread(actor: Actor, wanted: CuratorMessage) -> None:
    """Send the curator's message."""
    study_id, item_id, judge_id = wanted.study_id, wanted.item_id, wanted.judge_id
    with writing(actor, RIGHT) as session:
        item_threads.write_as_curator(
            session,
            study_id,
            judge_id,
            item_id,
            wanted.body,
            by=actor.name,
            event_id=f"studies:{study_id}/{item_id}/{judge_id}/{wanted.written}/{actor.name}",
        )
