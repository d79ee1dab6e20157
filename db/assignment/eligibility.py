"""Which items of a study a judge may get, and which are next: due gold, new ones, freed ones."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from db.study.judgments import ADJUDICATOR
from db.study.rules import rules_of
from db.study.studies import get_study
from db.tables import Assignment, Item, Judge, Judgment, Review, StudyItem, StudyJudge


def has_part(session: Session, study_id: int, part: str) -> bool:
    """Whether the study has items of this part (training, gold)."""
    query = select(StudyItem.item_id).where(StudyItem.study_id == study_id, StudyItem.part == part)
    return session.scalar(query.limit(1)) is not None


def eligible_items(
    session: Session, study_id: int, judge_id: int, item_ids: Sequence[int]
) -> list[int]:
    """Those of the items (of part main) that may be leased to this judge now."""
    query = (
        select(StudyItem.item_id)
        .join(Item, Item.id == StudyItem.item_id)
        .where(*_conditions(session, study_id, judge_id), StudyItem.item_id.in_(item_ids))
    )
    return list(session.scalars(query.order_by(StudyItem.position)))


def _conditions(
    session: Session, study_id: int, judge_id: int, part: str = "main"
) -> list[ColumnElement[bool]]:
    """Conditions on items with a free place whose group this judge has neither been given nor
    reviewed, and which they have not adjudicated."""
    name = session.get_one(Judge, judge_id).name
    sibling = aliased(Item)
    given = (
        select(Assignment.id)
        .join(sibling, sibling.id == Assignment.item_id)
        .where(
            sibling.group_id == Item.group_id,
            Assignment.judge_id == judge_id,
            or_(Assignment.state != "expired", Assignment.study_id != study_id),
        )
    )
    adjudicated = (
        select(Judgment.id)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judgment.item_id == StudyItem.item_id, Judge.name == ADJUDICATOR + name)
    )
    return [
        StudyItem.study_id == study_id,
        StudyItem.part == part,
        or_(StudyItem.places.is_(None), StudyItem.taken < StudyItem.places),
        ~exists(given),
        ~exists(
            select(Review.id).where(Review.group_id == Item.group_id, Review.reviewed_by == name)
        ),
        ~exists(adjudicated),
    ]


def _gold_due(session: Session, study_id: int, judge_id: int, count: int) -> list[int]:
    """Gold items that are due: one after every `gold_every` items this judge was given."""
    if not has_part(session, study_id, "gold"):
        return []
    every = rules_of(get_study(session, study_id)).gold_every
    parts = dict(
        session.execute(
            select(StudyItem.part, func.count())
            .join(
                Assignment,
                and_(
                    Assignment.study_id == StudyItem.study_id,
                    Assignment.item_id == StudyItem.item_id,
                ),
            )
            .where(Assignment.study_id == study_id, Assignment.judge_id == judge_id)
            .group_by(StudyItem.part)
        ).all()
    )
    due = parts.get("main", 0) // every - parts.get("gold", 0)
    if due < 1:
        return []
    query = (
        select(StudyItem.item_id)
        .join(Item, Item.id == StudyItem.item_id)
        .where(*_conditions(session, study_id, judge_id, "gold"))
        .order_by(StudyItem.position)
        .limit(min(due, count))
    )
    return list(session.scalars(query))


def choose_items(session: Session, member: StudyJudge, count: int) -> list[int]:
    """Up to `count` items for a judge: due gold, then those after their furthest, then freed ones.

    Moves `member.furthest`: the query of new items then starts there instead of passing over all
    that were given already.
    """
    gold = _gold_due(session, member.study_id, member.judge_id, count)
    count -= len(gold)
    free = (
        select(StudyItem.item_id, StudyItem.position)
        .join(Item, Item.id == StudyItem.item_id)
        .where(*_conditions(session, member.study_id, member.judge_id))
        .order_by(StudyItem.position)
    )
    after = member.furthest
    rows = session.execute(free.where(StudyItem.position > after).limit(count)).all()
    found = [item_id for item_id, _ in rows]
    member.furthest = max([after, *(position for _, position in rows)])
    if len(found) < count:
        before = free.where(StudyItem.position <= after).limit(count - len(found))
        found += [item_id for item_id, _ in session.execute(before)]
    return [*gold, *found]
