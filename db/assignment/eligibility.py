"""Which items of a study a judge may get, and which are next: new ones, then freed ones."""

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
    or_,
    select,
)
from sqlalchemy.orm import Session, aliased

from db.assignment.known_pairs import Person, opened_pair, reviewed_pair, saw_choices
from db.study.judgments import ADJUDICATOR
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
    """Those of the items that may be leased to this judge now."""
    query = _free().where(StudyItem.item_id.in_(item_ids)).order_by(StudyItem.position)
    return list(session.scalars(query, _values(session, study_id, judge_id)))


def unknown_pair(name: Person) -> list[ColumnElement[bool]]:
    """Conditions on a query with `Group`: the person reviewed and opened no group of its pair."""
    return [~reviewed_pair(Group.pair_id, name), ~opened_pair(Group.pair_id, name)]


# The statements below are built once: building one takes longer than SQLite takes to answer it, and
# every answer of every judge needs them. Their parameters are those of `_values`.
STUDY, JUDGE = bindparam("study_id", type_=Integer), bindparam("judge_id", type_=Integer)
NAME = bindparam("name", type_=String)
ADJUDICATOR_NAME = bindparam("adjudicator", type_=String)


def _values(session: Session, study_id: int, judge_id: int) -> dict[str, Any]:
    name = session.get_one(Judge, judge_id).person
    return {
        "study_id": study_id,
        "judge_id": judge_id,
        "name": name,
        "adjudicator": ADJUDICATOR + name,
    }


@cache
def _free() -> Select[int, int]:
    """Ids and positions of items with a free place that this judge was not given in this study, and
    of whose pair they have neither been given an item elsewhere or an example nor reviewed or
    opened a group, nor seen or decided an item in adjudication.

    By pair: another run of it has the same source passage, and maybe more of the same texts. The
    items of a group at one position are one card: who was given some of them may be given the rest.
    """
    sibling, other, place = aliased(Item), aliased(Group), aliased(StudyItem)
    given = (
        select(Assignment.id)
        .join(sibling, sibling.id == Assignment.item_id)
        .join(other, other.id == sibling.group_id)
        .outerjoin(
            place,
            and_(place.study_id == Assignment.study_id, place.item_id == Assignment.item_id),
        )
        .where(
            other.pair_id == Group.pair_id,
            Assignment.judge_id == JUDGE,
            or_(
                Assignment.study_id != STUDY,
                and_(
                    Assignment.state != "expired",
                    or_(
                        Assignment.item_id == StudyItem.item_id,
                        sibling.group_id != Item.group_id,
                        place.position != StudyItem.position,
                    ),
                ),
            ),
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
        .join(sibling, sibling.id == Judgment.item_id)
        .join(other, other.id == sibling.group_id)
        .where(
            other.pair_id == Group.pair_id,
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
            StudyItem.part != "training",
            or_(StudyItem.places.is_(None), StudyItem.taken < StudyItem.places),
            ~exists(given),
            *unknown_pair(NAME),
            ~exists(trained),
            ~exists(adjudicated),
            ~saw_choices(Group.pair_id, NAME),
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


def _whole(rows: Sequence[Any], count: int) -> list[Any]:
    """The first `count` rows, and those behind them of the same card: of the same position."""
    last = rows[count - 1][1] if len(rows) > count else None
    return [row for place, row in enumerate(rows) if place < count or row[1] == last]


def choose_items(
    session: Session, member: StudyJudge, count: int, *, per_card: int = 1
) -> list[Chosen]:
    """Up to `count` items for a judge: those after their furthest, then freed ones; of the last
    card all that is free. `per_card`: how many items a card may have.

    Hidden gold has its place among the others and is chosen as they are: no statement here reads
    which items it is. Moves `member.furthest`: the query of new items then starts there instead of
    passing over all that were given already.
    """
    values = _values(session, member.study_id, member.judge_id) | {"furthest": member.furthest}
    more = per_card - 1  # looked for in addition, to cut behind a whole card
    rows = _whole(session.execute(_next(True), values | {"count": count + more}).all(), count)
    if len(rows) < count:
        rest = count - len(rows)
        before = session.execute(_next(False), values | {"count": rest + more}).all()
        rows = [*rows, *_whole(before, rest)]
    member.furthest = max([member.furthest, *(row[1] for row in rows)])
    return [Chosen(*row[2:]) for row in rows]
