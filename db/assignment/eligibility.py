"""Which items of a study a judge may get, and which are next: new ones, freed ones, gold."""

import secrets
from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from db.assignment.gold_places import draw_place, interleave
from db.assignment.known_pairs import opened_pair, reviewed_pair, saw_choices
from db.study.judgments import ADJUDICATOR
from db.study.rules import rules_of
from db.study.studies import get_study
from db.tables import (
    AdjudicationView,
    Assignment,
    Example,
    Group,
    Item,
    Judge,
    Judgment,
    OpenedGroup,
    Review,
    StudyItem,
    StudyJudge,
)


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
        .join(Group, Group.id == Item.group_id)
        .where(*_conditions(session, study_id, judge_id), StudyItem.item_id.in_(item_ids))
    )
    return list(session.scalars(query.order_by(StudyItem.position)))


def count_eligible(session: Session, study_id: int, judge_id: int) -> int:
    """How many more items of part main the judge can be given: one of each pair.

    As `_conditions`, but each exclusion is one list of pairs instead of a search per item: this is
    counted at every answer. A pair of which they were given a *gold* item counts on: otherwise the
    count would fall by one where a hidden gold item is given. (Sampled gold is of no pair of the
    study; gold from a file can be.)
    """
    name = session.get_one(Judge, judge_id).name
    of_item = select(Group.pair_id).join(Item, Item.group_id == Group.id)
    gold = select(StudyItem.item_id).where(StudyItem.study_id == study_id, StudyItem.part == "gold")
    given = of_item.join(Assignment, Assignment.item_id == Item.id).where(
        Assignment.judge_id == judge_id,
        or_(Assignment.state != "expired", Assignment.study_id != study_id),
        or_(Assignment.study_id != study_id, Assignment.item_id.not_in(gold)),
    )
    trained = of_item.join(Example, Example.item_id == Item.id).where(Example.judge_id == judge_id)
    reviewed = select(Group.pair_id).join(Review, Review.group_id == Group.id)
    opened = select(Group.pair_id).join(OpenedGroup, OpenedGroup.group_id == Group.id)
    known_pairs = (
        given,
        trained,
        reviewed.where(Review.reviewed_by == name),
        opened.where(OpenedGroup.opened_by == name),
    )
    known_items = (
        select(Judgment.item_id)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judge.name == ADJUDICATOR + name),
        select(AdjudicationView.item_id).where(AdjudicationView.seen_by == name),
    )
    query = (
        select(func.count(Group.pair_id.distinct()))
        .select_from(StudyItem)
        .join(Item, Item.id == StudyItem.item_id)
        .join(Group, Group.id == Item.group_id)
        .where(
            StudyItem.study_id == study_id,
            StudyItem.part == "main",
            or_(StudyItem.places.is_(None), StudyItem.taken < StudyItem.places),
            *(Group.pair_id.not_in(pairs) for pairs in known_pairs),
            *(StudyItem.item_id.not_in(items) for items in known_items),
        )
    )
    return session.scalar(query) or 0


def unknown_pair(name: str) -> list[ColumnElement[bool]]:
    """Conditions on a query with `Group`: the person reviewed and opened no group of its pair."""
    return [~reviewed_pair(Group.pair_id, name), ~opened_pair(Group.pair_id, name)]


def _conditions(
    session: Session, study_id: int, judge_id: int, part: str = "main"
) -> list[ColumnElement[bool]]:
    """Conditions on items with a free place of whose pair this judge has neither been given an item
    or example nor reviewed or opened a group, and which they have not seen in adjudication.

    By pair: another run of it has the same source passage, and maybe more of the same texts.
    """
    name = session.get_one(Judge, judge_id).name
    sibling, other = aliased(Item), aliased(Group)
    given = (
        select(Assignment.id)
        .join(sibling, sibling.id == Assignment.item_id)
        .join(other, other.id == sibling.group_id)
        .where(
            other.pair_id == Group.pair_id,
            Assignment.judge_id == judge_id,
            or_(Assignment.state != "expired", Assignment.study_id != study_id),
        )
    )
    trained = (  # its explanation named the roles
        select(Example.id)
        .join(sibling, sibling.id == Example.item_id)
        .join(other, other.id == sibling.group_id)
        .where(other.pair_id == Group.pair_id, Example.judge_id == judge_id)
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
        *unknown_pair(name),
        ~exists(trained),
        ~exists(adjudicated),
        ~saw_choices(StudyItem.item_id, name),
    ]


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
    if not has_part(session, study_id, "gold"):
        return []
    query = (
        select(StudyItem.item_id)
        .join(Item, Item.id == StudyItem.item_id)
        .join(Group, Group.id == Item.group_id)
        .where(*_conditions(session, study_id, judge_id, "gold"))
    )
    found = list(session.scalars(query))
    secrets.SystemRandom().shuffle(found)  # judges who compare notes share no order
    return found


def choose_items(session: Session, member: StudyJudge, count: int) -> list[int]:
    """Up to `count` items for a judge: those after their furthest, then freed ones, and gold.

    Moves `member.furthest`: the query of new items then starts there instead of passing over all
    that were given already; and `member.next_gold`.
    """
    position_of = _main_items(session, member, count)
    found = list(position_of)
    gold = free_gold(session, member.study_id, member.judge_id)
    if gold:
        every = rules_of(get_study(session, member.study_id)).gold_every
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
    reached = [position_of[item_id] for item_id in found if item_id in position_of]
    member.furthest = max([member.furthest, *reached])
    return found


def _main_items(session: Session, member: StudyJudge, count: int) -> dict[int, int]:
    """The position of each of the next items of part main: new ones first, then freed ones."""
    free = (
        select(StudyItem.item_id, StudyItem.position)
        .join(Item, Item.id == StudyItem.item_id)
        .join(Group, Group.id == Item.group_id)
        .where(*_conditions(session, member.study_id, member.judge_id))
        .order_by(StudyItem.position)
    )
    after = member.furthest
    rows = session.execute(free.where(StudyItem.position > after).limit(count)).all()
    if len(rows) < count:
        before = free.where(StudyItem.position <= after).limit(count - len(rows))
        rows = [*rows, *session.execute(before).all()]
    return dict(rows)
