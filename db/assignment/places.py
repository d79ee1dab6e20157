"""Places of a study's items: locked, counted, and found by judge.

Every change of places happens under a lock on the study's row, so that two people never get the
last place; the check on `study_item` enforces it again.
"""

from sqlalchemy import Select, or_, select, update
from sqlalchemy.orm import Session

from db.errors import Refused
from db.study.studies import get_study
from db.tables import Assignment, Judge, Study, StudyItem


def lock_study(session: Session, study_id: int) -> Study:
    """The study, with a row lock (PostgreSQL; on SQLite a writing session is alone anyway).

    Raises NotFound, naming the existing ones.
    """
    # key_share: inserts of judgments, which refer to the study, need not wait for this lock
    query = select(Study).where(Study.id == study_id).with_for_update(key_share=True)
    # populate_existing: while this waited for the lock, another session may have closed the study
    found = session.scalar(query.execution_options(populate_existing=True))
    return found or get_study(session, study_id)  # which names the existing ones


def own_assignments(study_id: int, judge_id: int) -> Select[Assignment]:
    """A query of the judge's assignments in the study, in any state."""
    return select(Assignment).where(
        Assignment.study_id == study_id, Assignment.judge_id == judge_id
    )


def find_assignment(session: Session, study_id: int, judge_id: int, item_id: int) -> Assignment:
    """The judge's assignment of the item. Raises Refused if it was never leased to them."""
    found = session.scalar(own_assignments(study_id, judge_id).where(Assignment.item_id == item_id))
    if found is None:
        raise Refused(
            f"item {item_id} was never given to this judge in study {study_id}", code="not_given"
        )
    return found


def assignment_of_token(session: Session, study_id: int, judge_id: int, token: str) -> Assignment:
    """The judge's assignment with this token. Raises Refused if they were given none."""
    found = session.scalar(own_assignments(study_id, judge_id).where(Assignment.token == token))
    if found is None:
        raise Refused("this item was never given to you in this study", code="not_given")
    return found


def change_taken(session: Session, study_id: int, item_id: int, by: int) -> None:
    """Count a place of an item as taken (+1) or free (-1); call it under the study's lock."""
    session.execute(
        update(StudyItem)
        .where(StudyItem.study_id == study_id, StudyItem.item_id == item_id)
        .values(taken=StudyItem.taken + by)
    )


def regain_place(session: Session, assignment: Assignment) -> bool:
    """Whether the assignment holds a place or could take a free one again."""
    if assignment.state == "leased":
        return True
    if assignment.state == "aside":
        return False
    # check and count in one statement: the condition holds at the moment of the update
    taken = session.execute(
        update(StudyItem)
        .where(
            StudyItem.study_id == assignment.study_id,
            StudyItem.item_id == assignment.item_id,
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
        change_taken(session, study_id, assignment.item_id, -1)
    session.flush()
    return len(held)


def return_item(session: Session, item_id: int, person: str) -> None:
    """Free the person's leases of an item, in all studies, for others now. Does not commit."""
    held = (
        select(Assignment)
        .join(Judge, Judge.id == Assignment.judge_id)
        .where(Assignment.item_id == item_id, Assignment.state == "leased", Judge.name == person)
        .order_by(Assignment.study_id)
    )
    for study_id in {one.study_id: None for one in session.scalars(held)}:
        lock_study(session, study_id)
    # again, as they may have answered while this waited for the locks
    for assignment in session.scalars(held.execution_options(populate_existing=True)).all():
        assignment.state, assignment.lease_until = "expired", None
        change_taken(session, assignment.study_id, item_id, -1)
    session.flush()
