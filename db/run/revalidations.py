"""Revalidation of edited groups, and second judges: which items wait for a judge, and its answers.

An edit creates items of the next revision; the run's verdict does not change: it was given to the
text before the edit.
"""

from collections.abc import Collection

from sqlalchemy import ColumnElement, Select, and_, exists, or_, select
from sqlalchemy.orm import Session, aliased

from db.question import about_of, is_right
from db.run.new_items import in_order_of_roles, is_pick
from db.run.runs import shape_of, shapes_of_groups
from db.shape import TAKEN_OUT, Shape, text_name
from db.study.judgments import has_judged
from db.tables import Group, Item, Judge, Judgment, Review, SlotText

HOLDS, FAILS, WAITING = "holds", "fails", "waiting"


def waiting_items(
    session: Session,
    run_id: int,
    judge_id: int | None = None,
    group_id: int | None = None,
    *,
    checks: Collection[str] | None = None,
) -> list[int]:
    """Newest items of a run's edited groups, or of one of them, that the judge, or any model, has
    not answered: of these checks, by name, or picks where there is none; None: all."""
    by_a_model = exists(
        select(Judgment.id)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judgment.item_id == Item.id, Judgment.is_current, Judge.kind == "model")
    )
    judged = by_a_model if judge_id is None else has_judged(judge_id, Item.id)
    edited = select(Review.group_id).where(Review.action == "edit")  # of few, not of all items
    query = _newest_items(run_id).where(Group.id.in_(edited), Item.revision > 1, ~judged)
    if group_id is not None:
        query = query.where(Group.id == group_id)
    if checks is not None:
        named = (Item.scenario.startswith(f"{name}:", autoescape=True) for name in checks)
        query = query.where(or_(*named) if checks else is_pick())
    rows = session.execute(query.add_columns(Item.group_id, Item.scenario)).all()
    groups = {row[1] for row in rows}
    gone = _gone(session, shape_of(session, run_id), groups) if groups else {}
    return [item_id for item_id, group, place in rows if about_of(place) not in gone.get(group, ())]


def _gone(session: Session, shape: Shape, group_ids: Collection[int]) -> dict[int, set[str]]:
    """The places of lists that a person left empty, by group: nothing is asked about them."""
    names = {name for text in shape.lists for name in text.names}
    found = {group_id: set(names) for group_id in group_ids if names}
    query = select(SlotText.group_id, SlotText.slot, SlotText.ordinal).where(
        SlotText.group_id.in_(found), SlotText.dropped_reason.is_distinct_from(TAKEN_OUT)
    )
    for group_id, slot, ordinal in session.execute(query) if found else ():
        found[group_id].discard(text_name(slot, ordinal))
    return found


def items_of_run(session: Session, run_id: int, judge_id: int) -> tuple[int, list[int]]:
    """How many newest items the groups of a run have, and those that the judge has not answered."""
    picks = _newest_items(run_id).where(is_pick())
    rows = session.execute(picks.add_columns(has_judged(judge_id, Item.id))).all()
    return len(rows), [item_id for item_id, is_judged in rows if not is_judged]


def _superseded() -> ColumnElement[bool]:
    newer = aliased(Item)
    return exists().where(
        newer.group_id == Item.group_id,
        newer.scenario == Item.scenario,
        newer.revision > Item.revision,
    )


def _newest_items(run_id: int) -> Select[int]:
    """The items of a run's groups, each in its last revision: a query of their ids, in order."""
    return (
        select(Item.id)
        .join(Group, Group.id == Item.group_id)
        .where(Group.run_id == run_id, ~_superseded())
        .order_by(Item.id)
    )


def revalidation_of(session: Session, group_id: int) -> dict[str, str]:
    """By scenario, and by the place of a check (`fits:N[1]`): whether the group's judges answer as
    expected after the last edit (holds, fails) or have not answered yet (waiting). Empty for a
    group that was never edited."""
    of_group = select(Item.id).where(Item.group_id == group_id)
    validators = select(Judgment.judge_id).where(
        Judgment.item_id.in_(of_group), Judgment.run_id.is_not(None)
    )
    shape = shapes_of_groups(session, [group_id])[group_id]
    gone = _gone(session, shape, [group_id]).get(group_id, set())
    rows = session.execute(
        select(Item.scenario, Item.expected, Judgment.choice)
        .outerjoin(
            Judgment,
            and_(
                Judgment.item_id == Item.id,
                Judgment.is_current,
                Judgment.judge_id.in_(validators),
            ),
        )
        .where(Item.group_id == group_id, Item.revision > 1, ~_superseded())
        .order_by(*in_order_of_roles(shape))
    )
    return {
        place: WAITING if choice is None else HOLDS if is_right(choice, expected) else FAILS
        for place, expected, choice in rows
        if (expected is not None or choice is None) and about_of(place) not in gone
    }
