"""A judge's own answers in a study: to look at, to go back to, and to change while they may be.

Only what the judge saw and did: texts in the order shown, under the assignment's token.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, func, select
from sqlalchemy.orm import Session

from db.assignment.hidden import was_opened
from db.assignment.shown_items import ShownItem, show
from db.assignment.threads import Message, messages_of
from db.question import Shown
from db.study.studies import get_study
from db.tables import Assignment, ItemMessage, Judge, Judgment, StudyJudge

FILTERS = ("all", "flagged", "noted", "thread")
SAME_ITEM = and_(
    Judgment.item_id == Assignment.item_id,
    Judgment.judge_id == Assignment.judge_id,
    Judgment.is_current,
)


@dataclass(frozen=True)
class OwnAnswer:
    """An answer: `position` as it was chosen on the screen (`db.question.Shown`).

    `state` of the assignment: `aside` came too late and does not count, `skipped` and `leased` have
    no answer. `judgment_id` is for the server: the answer that a change replaces.
    """

    item: ShownItem
    state: str
    judgment_id: int | None
    position: Shown
    decided_at: datetime | None
    note: str
    flagged: bool
    reason: str
    may_change: bool
    thread: tuple[Message, ...]


def own_answers(
    session: Session,
    study_id: int,
    judge_id: int,
    *,
    only: str = "all",
    before: str = "",
    start: int = 0,
    count: int = 10,
) -> list[OwnAnswer]:
    """The judge's answers, the last one first; `before`: those older than that of this token.

    With `only` "thread": the items with a thread, also those without an answer.
    """
    query = _answers(study_id, judge_id, only)
    if before:
        named = select(Judgment.id).join(Assignment, SAME_ITEM)
        last = session.scalar(named.where(*_mine(study_id, judge_id), Assignment.token == before))
        query = query.where(Judgment.id < last) if last is not None else query
    query = query.order_by(func.coalesce(Judgment.id, 0).desc(), Assignment.id.desc())
    rows = session.execute(query.offset(start).limit(count)).all()
    threads = messages_of(session, study_id, judge_id, [row[0].item_id for row in rows])
    allowed = _study_allows(session, study_id, judge_id)
    name = session.get_one(Judge, judge_id).name
    return [
        OwnAnswer(
            item=item,
            state=assignment.state,
            judgment_id=judgment.id if judgment else None,
            position=item.question.shown(assignment.order_shown, judgment.choice)
            if judgment
            else None,
            decided_at=judgment.decided_at if judgment else None,
            note=judgment.note if judgment else assignment.note,
            flagged=judgment.flagged if judgment else assignment.flagged,
            reason=judgment.reason if judgment else assignment.reason,
            may_change=judgment is not None
            and allowed
            and not was_opened(session, assignment.item_id, name),
            thread=tuple(threads.get(assignment.item_id, ())),
        )
        for assignment, judgment in rows
        for item in [show(session, assignment)]
    ]


def count_answers(session: Session, study_id: int, judge_id: int, *, only: str = "all") -> int:
    """How many answers `own_answers` lists in all."""
    rows = _answers(study_id, judge_id, only).with_only_columns(Assignment.id).subquery()
    return session.scalar(select(func.count()).select_from(rows)) or 0


def _answers(study_id: int, judge_id: int, only: str) -> Select[Assignment, Judgment | None]:
    query = select(Assignment, Judgment).outerjoin(Judgment, SAME_ITEM)
    if only == "thread":
        wrote = select(ItemMessage.item_id).where(
            ItemMessage.study_id == study_id, ItemMessage.judge_id == judge_id
        )
        return query.where(
            Assignment.study_id == study_id,
            Assignment.judge_id == judge_id,
            Assignment.item_id.in_(wrote),
        )
    query = query.where(*_mine(study_id, judge_id))
    if only == "flagged":
        return query.where(Judgment.flagged)
    return query.where(Judgment.note != "") if only == "noted" else query


def _mine(study_id: int, judge_id: int) -> list[ColumnElement[bool]]:
    return [
        Assignment.study_id == study_id,
        Assignment.judge_id == judge_id,
        Assignment.state.in_(("done", "aside")),
        Judgment.id.is_not(None),
    ]


def _study_allows(session: Session, study_id: int, judge_id: int) -> bool:
    member = session.get(StudyJudge, (study_id, judge_id))
    is_active = member is not None and member.state == "active"
    return is_active and get_study(session, study_id).status == "open"
