"""Revalidation of edited groups, and second judges: which items wait for a judge, and its answers.

An edit creates items of the next revision; the run's verdict does not change: it was given to the
text before the edit.
"""

from sqlalchemy import Select, and_, exists, func, select
from sqlalchemy.orm import Session, aliased

from db.run.new_items import in_order_of_roles, is_pick
from db.run.runs import shapes_of_groups
from db.study.judgments import has_judged
from db.tables import Group, Item, Judge, Judgment, Review

HOLDS, FAILS, WAITING = "holds", "fails", "waiting"


def waiting_items(
    session: Session, run_id: int, judge_id: int | None = None, group_id: int | None = None
) -> list[int]:
    """Newest items of a run's edited groups, or of one of them, that the judge, or any model, has
    not answered."""
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
    return list(session.scalars(query))


def items_of_run(session: Session, run_id: int, judge_id: int) -> tuple[int, list[int]]:
    """How many newest items the groups of a run have, and those that the judge has not answered."""
    rows = session.execute(_newest_items(run_id).add_columns(has_judged(judge_id, Item.id))).all()
    return len(rows), [item_id for item_id, is_judged in rows if not is_judged]


def _newest_items(run_id: int) -> Select[int]:
    """The items of a run's groups, each in its last revision: a query of their ids, in order."""
    newer = aliased(Item)
    superseded = select(newer.id).where(
        newer.group_id == Item.group_id,
        newer.scenario == Item.scenario,
        newer.revision > Item.revision,
    )
    return (
        select(Item.id)
        .join(Group, Group.id == Item.group_id)
        .where(Group.run_id == run_id, is_pick(), ~exists(superseded))
        .order_by(Item.id)
    )


def revalidation_of(session: Session, group_id: int) -> dict[str, str]:
    """By scenario: whether the group's validator finds the passage after the last edit (holds,
    fails) or has not answered yet (waiting). Empty for a group that was never edited."""
    of_group = select(Item.id).where(Item.group_id == group_id)
    validators = select(Judgment.judge_id).where(
        Judgment.item_id.in_(of_group), Judgment.run_id.is_not(None)
    )
    shape = shapes_of_groups(session, [group_id])[group_id]
    newest = select(func.max(Item.revision)).where(Item.group_id == group_id).scalar_subquery()
    rows = session.execute(
        select(Item.scenario, Item.expected, Item.revision, Judgment.choice)
        .outerjoin(
            Judgment,
            and_(
                Judgment.item_id == Item.id,
                Judgment.is_current,
                Judgment.judge_id.in_(validators),
            ),
        )
        .where(Item.group_id == group_id, Item.revision == newest, is_pick())
        .order_by(*in_order_of_roles(shape))
    )
    return {
        scenario: WAITING if choice is None else HOLDS if choice == expected else FAILS
        for scenario, expected, revision, choice in rows
        if revision > 1
    }
