"""Groups whose requests the server fails on, and dropped groups that are opened again.

Both are part of a run's queue (`db.run.group_queue`): an open group is one that waits.
"""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import ColumnElement, Select, bindparam, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session

from db.errors import BadInput, Refused
from db.question import CHECK
from db.run.runs import shape_of
from db.shape import TOO_FEW, Shape
from db.tables import (
    Base,
    Group,
    GroupCall,
    Item,
    Judgment,
    Passage,
    ReleaseGroup,
    Review,
    SlotText,
    StudyItem,
    utc_now,
)

SLICE = 500  # groups per statement: SQLite takes 32,766 bound values in one
# such drop reasons are a judge's choice, no one answer's fault
BY_JUDGE = ("judge_", CHECK, TOO_FEW)
_GROUP = Base.metadata.tables[Group.__tablename__]


def add_failed_attempts(session: Session, group_id: int, attempts: int) -> int:
    """Count requests of a group that the server failed on; the total so far. Does not commit."""
    return session.scalars(
        update(Group)
        .where(Group.id == group_id)
        .values(
            failed_attempts=Group.failed_attempts + attempts,
            failed_at=func.coalesce(Group.failed_at, utc_now()),
        )
        .returning(Group.failed_attempts)
    ).one()


def others_finished_since(session: Session, run_id: int, group_id: int) -> bool:
    """Whether the server answered another group of the run after it first failed on this one."""
    failed_at = session.scalar(select(Group.failed_at).where(Group.id == group_id))
    if failed_at is None:
        return False
    finished = select(Group.id).where(
        Group.run_id == run_id,
        Group.id != group_id,
        Group.finished_at > failed_at,
        or_(Group.drop_reason.is_(None), Group.drop_reason != "server_error"),
    )
    return session.scalar(finished.limit(1)) is not None


def reopen_dropped(session: Session, run_id: int, reason: str) -> None:
    """Let the groups dropped for a reason wait again; the answers that led to the drop are not
    used another time.

    What the run wrote for them is deleted (texts, items, its judge's judgments); their calls stay
    in the journal. A group that a person or another judge has judged or reviewed, that is in a
    study or in a release, stays as it is. Raises BadInput for a reason no group was dropped for,
    Refused if all such groups stay. Does not commit.
    """
    dropped = session.scalars(_dropped(run_id, reason)).all()
    if not dropped:
        raise BadInput(
            _no_such_reason(session, run_id, reason),
            "name one of these",
            code="drop_reason_unknown",
        )
    free = session.scalars(_dropped(run_id, reason).where(~_referred_to(run_id))).all()
    if not free:
        raise Refused(
            f"all {len(dropped)} groups dropped as {reason} are in a release or a study, or were "
            "judged or reviewed: they stay as they are",
            "start a new run of their pairs",
            code="dropped_groups_in_use",
        )
    shape = shape_of(session, run_id)
    for start in range(0, len(free), SLICE):
        _reopen(session, free[start : start + SLICE], reason, shape)


def _dropped(run_id: int, reason: str) -> Select[int]:
    return (
        select(Group.id)
        .where(Group.run_id == run_id, Group.verdict == "dropped", Group.drop_reason == reason)
        .order_by(Group.id)
    )


def _no_such_reason(session: Session, run_id: int, reason: str) -> str:
    reasons = session.execute(
        select(Group.drop_reason, func.count())
        .where(Group.run_id == run_id, Group.verdict == "dropped")
        .group_by(Group.drop_reason)
        .order_by(func.count().desc())
    ).all()
    found = ", ".join(f"{name} ({count})" for name, count in reasons) or "nothing is dropped"
    return f"run {run_id} has no group dropped as {reason!r}: {found}"


def _referred_to(run_id: int) -> ColumnElement[bool]:
    """Whether anything but the run itself refers to a group."""
    # two levels deep, where SQLAlchemy correlates nothing by itself: it would be every item
    item = select(Item.id).where(Item.group_id == Group.id).correlate(Group)
    return or_(
        exists().where(Review.group_id == Group.id),
        exists().where(ReleaseGroup.group_id == Group.id),
        exists().where(StudyItem.item_id.in_(item)),
        exists().where(
            Judgment.item_id.in_(item),
            or_(
                Judgment.run_id.is_(None),
                Judgment.run_id != run_id,
                Judgment.study_id.is_not(None),
            ),
        ),
    )


def _reopen(session: Session, group_ids: Sequence[int], reason: str, shape: Shape) -> None:
    retries = _next_retries(session, group_ids, reason, shape)
    items = select(Item.id).where(Item.group_id.in_(group_ids))
    written = session.scalars(
        select(Passage.id)
        .join(SlotText, SlotText.passage_id == Passage.id)
        .where(SlotText.group_id.in_(group_ids), Passage.origin == "generated")
    ).all()
    session.execute(delete(Judgment).where(Judgment.item_id.in_(items)))
    for table in (Item, SlotText, GroupCall):
        session.execute(delete(table).where(table.group_id.in_(group_ids)))
    session.execute(delete(Passage).where(Passage.id.in_(written)))
    session.connection().execute(
        update(_GROUP)
        .where(_GROUP.c.id == bindparam("group_id"))
        .values(
            state="waiting",
            stage="",
            verdict=None,
            drop_reason=None,
            drop_detail=None,
            finished_at=None,
            failed_attempts=0,
            failed_at=None,
            retries=bindparam("to_retries", type_=_GROUP.c.retries.type),
        ),
        [{"group_id": each, "to_retries": retries[each]} for each in group_ids],
    )


def _next_retries(
    session: Session, group_ids: Sequence[int], reason: str, shape: Shape
) -> dict[int, dict[str, int]]:
    """`Group.retries` with one more for each answer that led to the drop.

    That is the answer at fault; of a drop by the judge's choice, which no single answer is to
    blame for, the judge's answers and the written passages they are about.
    """
    written = [text for text in (*shape.written, *shape.lists) if text.field == "passage"]
    of_judge = {shape.task_of(text) for text in written} | {"validation"}
    before = session.execute(select(Group.id, Group.retries).where(Group.id.in_(group_ids)))
    found = {group_id: Counter[str](retries) for group_id, retries in before}
    calls = session.execute(
        select(GroupCall.group_id, GroupCall.task, GroupCall.sample, GroupCall.outcome).where(
            GroupCall.group_id.in_(group_ids)
        )
    )
    for group_id, task, sample, outcome in calls:
        by_choice = reason.startswith(BY_JUDGE) and (task in of_judge or task.startswith(CHECK))
        if outcome != "ok" or by_choice:
            found[group_id][f"{task}/{sample}"] += 1
    return {group_id: dict(retries) for group_id, retries in found.items()}
