"""Places of a study's items: locked, counted, and found by judge.

Every change of places happens under a lock on the study's row, so that two people never get the
last place; the check on `study_item` enforces it again.
"""

from collections.abc import Collection

from sqlalchemy import Select, exists, or_, select, update
from sqlalchemy.orm import Session

from db.errors import Refused
from db.study.judgments import of_person
from db.study.studies import get_study
from db.tables import Assignment, Group, Item, Judge, Study, StudyItem, StudyJudge


def lock_study(session: Session, study_id: int) -> Study:
    """The study, with a row lock (PostgreSQL; on SQLite a writing session is alone anyway).

    Raises NotFound, naming the existing ones.
    """
    found = session.scalar(_locked().where(Study.id == study_id))
    return found or get_study(session, study_id)  # which names the existing ones


def lock_studies(
    session: Session, study_id: int, others: Collection[int], *, judge_id: int
) -> dict[int, Study]:
    """Lock a study, and those of the others that the judge is a member of; those found, by id.

    In the order of their ids, so that two judges never wait for each other.
    """
    query = _locked()
    if others:
        joined = exists().where(StudyJudge.study_id == Study.id, StudyJudge.judge_id == judge_id)
        query = query.where(or_(Study.id == study_id, Study.id.in_(others) & joined))
    else:
        query = query.where(Study.id == study_id)
    return {study.id: study for study in session.scalars(query.order_by(Study.id))}


def _locked() -> Select[Study]:
    # key_share: inserts of judgments, which refer to the study, need not wait for this lock
    query = select(Study).with_for_update(key_share=True)
    # populate_existing: while this waited for the lock, another session may have closed the study
    return query.execution_options(populate_existing=True)


def own_assignments(study_id: int, judge_id: int) -> Select[Assignment]:
    """A query of the judge's assignments in the study, in any state."""
    return select(Assignment).where(
        Assignment.study_id == study_id, Assignment.judge_id == judge_id
    )


def find_assignment(session: Session, study_id: int, judge_id: int, item_id: int) -> Assignment:
    """The judge's assignment of the item. Raises Refused if it was never leased to them."""
    found = session.scalar(own_assignments(study_id, judge_id).where(Assignment.item_id == item_id))
    if found is None:
        raise never_given(study_id, item_id)
    return found


def never_given(study_id: int, item_id: int) -> Refused:
    """The refusal of an item that was never leased to the judge."""
    message = f"item {item_id} was never given to this judge in study {study_id}"
    return Refused(message, "go on with the next item", code="not_given")


def assignment_of_token(session: Session, study_id: int, judge_id: int, token: str) -> Assignment:
    """The judge's assignment with this token. Raises Refused if they were given none."""
    found = session.scalar(own_assignments(study_id, judge_id).where(Assignment.token == token))
    if found is None:
        raise not_given()
    return found


def not_given() -> Refused:
    """The refusal of a token under which the judge was given nothing."""
    return Refused(
        "this item was never given to you in this study",
        "go on with the next item",
        code="not_given",
    )


def change_taken(session: Session, study_id: int, item_ids: Collection[int], by: int) -> None:
    """Count a place of each item as taken (+1) or free (-1); call it under the study's lock."""
    session.execute(
        update(StudyItem)
        .where(StudyItem.study_id == study_id, StudyItem.item_id.in_(item_ids))
        .values(taken=StudyItem.taken + by)
        .execution_options(synchronize_session=False)
    )


def regain_place(session: Session, assignment: Assignment) -> bool:
    """Whether the assignment holds a place or could take a free one again."""
    if assignment.state == "leased":
        return True
    if assignment.state == "aside":
        return False
    return take_place(session, assignment.study_id, assignment.item_id)


def take_place(session: Session, study_id: int, item_id: int) -> bool:
    """Count a place of the item as taken, if one is free; whether it was."""
    # check and count in one statement: the condition holds at the moment of the update
    taken = session.execute(
        update(StudyItem)
        .where(
            StudyItem.study_id == study_id,
            StudyItem.item_id == item_id,
            or_(StudyItem.places.is_(None), StudyItem.taken < StudyItem.places),
        )
        .values(taken=StudyItem.taken + 1)
        .returning(StudyItem.item_id)
    ).all()
    return bool(taken)


def return_leases(session: Session, study_id: int, judge_id: int) -> int:
    """Free a judge's leases for others now. Returns how many. Does not commit."""
    lock_study(session, study_id)
    held = session.scalars(
        select(Assignment).where(
            Assignment.study_id == study_id,
            Assignment.judge_id == judge_id,
            Assignment.state == "leased",
        )
    ).all()
    for assignment in held:
        assignment.state, assignment.lease_until = "expired", None
    change_taken(session, study_id, [assignment.item_id for assignment in held], -1)
    session.flush()
    return len(held)


def return_item(session: Session, item_id: int, person: str) -> None:
    """Free the person's leases of an item and all others of its pair, in all studies, for others
    now. Does not commit."""
    pair = select(Group.pair_id).join(Item, Item.group_id == Group.id).where(Item.id == item_id)
    of_pair = (
        select(Item.id)
        .join(Group, Group.id == Item.group_id)
        .where(Group.pair_id == pair.scalar_subquery())
    )
    held = (
        select(Assignment)
        .join(Judge, Judge.id == Assignment.judge_id)
        .where(Assignment.item_id.in_(of_pair), Assignment.state == "leased", of_person(person))
        .order_by(Assignment.study_id)
    )
    for study_id in {one.study_id: None for one in session.scalars(held)}:
        lock_study(session, study_id)
    # again, as they may have answered while this waited for the locks
    for assignment in session.scalars(held.execution_options(populate_existing=True)).all():
        assignment.state, assignment.lease_until = "expired", None
        change_taken(session, assignment.study_id, [assignment.item_id], -1)
    session.flush()
