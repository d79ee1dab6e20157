"""Leasing the items of a study to judges, with exactly the requested overlap.

A lease holds a place of an item (`study_item.taken`) for ten minutes after the judge's last answer
or skip in the study, and for two minutes if there was none in the last ten: opening the page alone
holds nothing for longer. An expired lease returns its place when another judge requests an item.
"""

from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.assignment.eligibility import choose_items, has_part
from db.assignment.members import membership, not_open, require_active
from db.assignment.places import change_taken, lock_study, own_assignments
from db.assignment.shown_items import ShownItem, random_order, show_all
from db.errors import Refused
from db.tables import Assignment, Item, utc_now

LEASE = timedelta(minutes=10)
UNANSWERED_LEASE = timedelta(minutes=2)


def next_item(
    session: Session, study_id: int, judge_id: int, *, now: datetime | None = None
) -> ShownItem | None:
    """The item this judge should answer now, None if nothing is left for them.

    The same item is returned until it is answered or skipped. Raises Refused if the study is
    paused or closed. Does not commit.
    """
    items = lease_items(session, study_id, judge_id, 1, now=now)
    return items[0] if items else None


def lease_items(
    session: Session, study_id: int, judge_id: int, count: int, *, now: datetime | None = None
) -> list[ShownItem]:
    """Up to `count` items leased to this judge, the oldest lease first; renews all their leases.

    Raises Refused if the study is paused or closed, the judge is paused in it, or has not passed
    its qualification. Does not commit.
    """
    now = now or utc_now()
    study = lock_study(session, study_id)
    if study.status != "open":
        raise not_open(study)
    member = membership(session, study_id, judge_id)
    require_active(member)
    if member.passed_at is None and has_part(session, study_id, "training"):
        raise Refused("the qualification comes first", code="qualification_first")
    _release_expired(session, study_id, judge_id, now)
    held = list(
        session.scalars(
            own_assignments(study_id, judge_id)
            .where(Assignment.state == "leased")
            .order_by(Assignment.id)
        )
    )
    until = now + (LEASE if _is_working(session, study_id, judge_id, now) else UNANSWERED_LEASE)
    for assignment in held:  # one that was given by name is held for a day
        assignment.lease_until = max(until, assignment.lease_until or until)
    if len(held) < count:
        held += [
            lease_item(session, study_id, judge_id, item_id, until)
            for item_id in choose_items(session, member, count - len(held))
        ]
    session.flush()
    return show_all(session, held[:count])


def lease_item(
    session: Session, study_id: int, judge_id: int, item_id: int, until: datetime
) -> Assignment:
    """Lease an item, which must be eligible for the judge, until a time. Does not commit."""
    change_taken(session, study_id, item_id, +1)
    assignment = session.scalar(
        own_assignments(study_id, judge_id).where(Assignment.item_id == item_id)
    )
    if assignment is None:
        assignment = Assignment(
            study_id=study_id,
            item_id=item_id,
            judge_id=judge_id,
            order_shown=random_order(session.get_one(Item, item_id)),
        )
        session.add(assignment)
    assignment.state, assignment.lease_until = "leased", until
    session.flush()
    return assignment


def _is_working(session: Session, study_id: int, judge_id: int, now: datetime) -> bool:
    """Whether an answer or skip of the judge in the study was received in the last ten minutes.

    By the server's clock, and also where the answer came too late to count: a slow reader's do.
    """
    ended = select(func.max(Assignment.ended_at)).where(
        Assignment.study_id == study_id, Assignment.judge_id == judge_id
    )
    last = session.scalar(ended)
    return last is not None and last > now - LEASE


def _release_expired(session: Session, study_id: int, judge_id: int, now: datetime) -> None:
    """Free the places of expired leases, except those of the judge who is requesting."""
    expired = session.scalars(
        select(Assignment).where(
            Assignment.study_id == study_id,
            Assignment.state == "leased",
            Assignment.lease_until < now,
            Assignment.judge_id != judge_id,
        )
    )
    for assignment in expired:
        assignment.state = "expired"
        change_taken(session, study_id, assignment.item_id, -1)
