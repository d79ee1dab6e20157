"""Items leased to a judge, shown as the card and `studies judge` show them."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from db.assignment.leasing import hold_items
from db.assignment.shown_items import ShownItem, show_all
from db.assignment.standing import standing


def lease_items(
    session: Session, study_id: int, judge_id: int, count: int, *, now: datetime | None = None
) -> Sequence[ShownItem]:
    """Up to `count` cards of items leased to this judge, the oldest lease first."""
    here = standing(session, study_id, judge_id, now=now)
    return show_all(session, hold_items(session, here, count, now=now))


def next_item(
    session: Session, study_id: int, judge_id: int, *, now: datetime | None = None
) -> ShownItem | None:
    """The item that this judge is given now; None if nothing is left for them."""
    items = lease_items(session, study_id, judge_id, 1, now=now)
    return items[0] if items else None
