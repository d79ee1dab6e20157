"""Which items of a study a judge may get, and which are next: new ones, freed ones, gold."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    String,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
)
from sqlalchemy.orm import Session, aliased

from db.assignment.gold_places import draw_place, interleave
from db.assignment.known_pairs import Person, opened_pair, reviewed_pair, saw_choices
from db.assignment.standing import Standing
from db.study.judgments import ADJUDICATOR
from db.study.rules import rules_of
from db.tables import (
    Assignment,
    Example,
    Group,
    Item,
    Judge,
    Judgment,
    StudyItem,
    StudyJudge,
)


@dataclass(frozen=True)
class Chosen:
    """An item for a judge, and their lease of it that expired before, if there was one."""

    item: Item
    expired: Assignment | None


def eligible_items(
    session: Session, study_id: int, judge_id: int, item_ids: Sequence[int]
) -> list[int]:
    """Those of the items (of part main) that may be leased to this judge now."""
    query = _free().where(StudyItem.item_id.in_(item_ids)).order_by(StudyItem.position)
    return list(session.scalars(query, _values(session, study_id, judge_id)))


def unknown_pair(name: Person) -> list[ColumnElement[bool]]:
    """Conditions on a query with `Group`: the person reviewed and opened no group of its pair."""
    return [~reviewed_pair(Group.pair_id, name), ~opened_pair(Group.pair_id, name)]


# The statements below are built once: building one takes longer than SQLite takes to answer it, and
# every answer of every judge needs them. Their parameters are those of `_values`.
STUDY, JUDGE = bindparam("study_id", type_=Integer), bindparam("judge_id", type_=Integer)
NAME, PART = bindparam("name", type_=String), bindparam("part", type_=String)
ADJUDICATOR_NAME = bindparam("adjudicator", type_=String)


def _values(session: Session, study_id: int, judge_id: int, part: str = "main") -> dict[str, Any]:
    name = session.get_one(Judge, judge_id).person
    return {
        "study_id": study_id,
        "judge_id": judge_id,
        "name": name,
        "adjudicator": ADJUDICATOR + name,
        "part": part,
    }


@cache
def _free() -> Select[int, int]:
    """Ids and positions of items with a free place of whose pair this judge has neither been given
    an item or example nor reviewed or opened a group, and which they have not seen in adjudication.

    By pair: another run of it has the same source passage, and maybe more of the same texts.
    """
    sibling, other = aliased(Item), aliased(Group)
    given = (
        select(Assignment.id)
        .join(sibling, sibling.id == Assignment.item_id)
        .join(other, other.id == sibling.group_id)
        .where(
            other.pair_id == Group.pair_id,
            Assignment.judge_id == JUDGE,
            or_(Assignment.state != "expired", Assignment.study_id != STUDY),
        )
    )
    trained = (  # its explanation named the roles
        select(Example.id)
        .join(sibling, sibling.id == Example.item_id)
        .join(other, other.id == sibling.group_id)
        .where(other.pair_id == Group.pair_id, Example.judge_id == JUDGE)
    )
    adjudicated = (
        select(Judgment.id)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(
            Judgment.item_id == StudyItem.item_id,
            Judge.name == ADJUDICATOR_NAME,
            Judge.kind == "adjudicator",
        )
    )
    return (
        select(StudyItem.item_id, StudyItem.position)
        .join(Item, Item.id == StudyItem.item_id)
        .join(Group, Group.id == Item.group_id)
        .where(
            StudyItem.study_id == STUDY,
            StudyItem.part == PART,
            or_(StudyItem.places.is_(None), StudyItem.taken < StudyItem.places),
            ~exists(given),
            *unknown_pair(NAME),
            ~exists(trained),
            ~exists(adjudicated),
            ~saw_choices(StudyItem.item_id, NAME),
        )
    )


@cache
def _next(is_after: bool) -> Select[int, int, Item, Assignment]:
    """Free items after, or up to, a position, in order."""
    furthest = bindparam("furthest", type_=Integer)
    at, mine = StudyItem.position, aliased(Assignment)
    expired = and_(
        mine.study_id == STUDY, mine.judge_id == JUDGE, mine.item_id == StudyItem.item_id
    )
    return (
        _free()
        .add_columns(Item, mine)
        .outerjoin(mine, expired)
        .where(at > furthest if is_after else at <= furthest)
        .order_by(at)
        .limit(bindparam("count", type_=Integer))
    )


def chosen_items(
    session: Session, study_id: int, judge_id: int, item_ids: Sequence[int]
) -> list[Chosen]:
    """These items, in their order, for leases that the judge does not hold now."""
    mine = and_(
        Assignment.item_id == Item.id,
        Assignment.study_id == study_id,
        Assignment.judge_id == judge_id,
    )
    rows = session.execute(
        select(Item, Assignment).outerjoin(Assignment, mine).where(Item.id.in_(item_ids))
    )
    found = {item.id: Chosen(item, expired) for item, expired in rows}
    return [found[item_id] for item_id in item_ids]


def given_parts(session: Session, study_id: int, judge_id: int) -> dict[str, int]:
    """How many items of each part the judge was given, but for expired leases."""
    query = (
        select(StudyItem.part, func.count())
        .join(
            Assignment,
            and_(
                Assignment.study_id == StudyItem.study_id,
                Assignment.item_id == StudyItem.item_id,
            ),
        )
        .where(
            Assignment.study_id == study_id,
            Assignment.judge_id == judge_id,
            Assignment.state != "expired",
        )
        .group_by(StudyItem.part)
    )
    return dict(session.execute(query).all())


def free_gold(session: Session, study_id: int, judge_id: int) -> list[int]:
    """The gold items that the judge may still be given, in a random order."""
    found = list(session.scalars(_free(), _values(session, study_id, judge_id, "gold")))
    secrets.SystemRandom().shuffle(found)  # judges who compare notes share no order
    return found


def choose_items(session: Session, here: Standing, member: StudyJudge, count: int) -> list[Chosen]:
    """Up to `count` items for a judge: those after their furthest, then freed ones, and gold.

    Moves `member.furthest`: the query of new items then starts there instead of passing over all
    that were given already; and `member.next_gold`.
    """
    free = _main_items(session, member, count)
    found = list(free)
    gold = free_gold(session, member.study_id, member.judge_id) if here.has_gold else []
    if gold:
        every = rules_of(here.study).gold_every
        parts = given_parts(session, member.study_id, member.judge_id)
        gold_given = parts.get("gold", 0)
        if member.next_gold is None:
            member.next_gold = draw_place(gold_given, every)
        found, member.next_gold = interleave(
            found,
            gold,
            count,
            given=parts.get("main", 0),
            gold_given=gold_given,
            every=every,
            next_gold=member.next_gold,
        )
    reached = [free[item_id][0] for item_id in found if item_id in free]
    member.furthest = max([member.furthest, *reached])
    chosen = {item_id: one for item_id, (_, one) in free.items()}
    if golden := [item_id for item_id in found if item_id not in free]:
        of_gold = chosen_items(session, member.study_id, member.judge_id, golden)
        chosen |= {one.item.id: one for one in of_gold}
    return [chosen[item_id] for item_id in found]


def _main_items(session: Session, member: StudyJudge, count: int) -> dict[int, tuple[int, Chosen]]:
    """The next items of part main by id, with their positions: new ones first, then freed ones."""
    values = _values(session, member.study_id, member.judge_id) | {"furthest": member.furthest}
    rows = session.execute(_next(True), values | {"count": count}).all()
    if len(rows) < count:
        before = session.execute(_next(False), values | {"count": count - len(rows)})
        rows = [*rows, *before.all()]
    return {row[0]: (row[1], Chosen(*row[2:])) for row in rows}
