"""The tour of the pages: shown the first time that a person opens the app, never again after.

It ends when the person finishes or skips it, and by itself FIRST_TIME after it was shown first. A
person is a session user's name, so that the local admin, who has no account, has one tour too.
"""

from datetime import timedelta
from typing import Final, Literal

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.store.bulk import insert_of
from db.tables import Tour, utc_now

FIRST_TIME: Final = timedelta(hours=12)
TourState = Literal["new", "shown", "over"]


def tour_of(session: Session, person: str) -> TourState:
    """Whether the person was never shown the tour, is being shown it, or is done with it."""
    query = select(Tour.created_at, Tour.ended_at).where(Tour.person == person)
    row = session.execute(query).one_or_none()
    if row is None:
        return "new"
    shown_at, ended_at = row
    return "shown" if ended_at is None and utc_now() - shown_at < FIRST_TIME else "over"


def begin_tour(session: Session, person: str) -> None:
    """Record that the person is shown the tour; nothing for who was before. Does not commit."""
    row = {"person": person, "created_at": utc_now()}
    # another tab may insert it at the same moment
    session.execute(insert_of(session)(Tour).values(row).on_conflict_do_nothing())


def end_tour(session: Session, person: str) -> None:
    """Record that the person finished or skipped the tour. Does not commit."""
    begin_tour(session, person)
    session.execute(update(Tour).where(Tour.person == person).values(ended_at=utc_now()))


def restart_tour(session: Session, person: str) -> None:
    """Show the person the tour again, as the first time. Does not commit."""
    begin_tour(session, person)
    again = {"created_at": utc_now(), "ended_at": None}
    session.execute(update(Tour).where(Tour.person == person).values(again))


def pass_tour_on(session: Session, person: str, to: str) -> None:
    """Give the tour of one name to another. Does not commit."""
    session.execute(update(Tour).where(Tour.person == person).values(person=to))
