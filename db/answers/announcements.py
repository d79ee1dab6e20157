"""Messages of a study's curators to its people: to everyone, also who joins later, or to some.

They are about no item: a judge answers in the thread of an item (`db.assignment.threads`).
"""

from collections.abc import Sequence
from datetime import datetime

from pydantic import computed_field
from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session

from db.assignment.places import lock_study
from db.assignment.threads import message_text
from db.errors import Refused
from db.events import record_event
from db.rows import Row
from db.study.studies import get_study
from db.tables import Announcement, AnnouncementReader, Judge, StudyJudge, utc_now

MAX_ANNOUNCEMENTS = 500  # of one study


class SentRow(Row):
    """A message to people of a study: to whom ([]: everyone), and how many have read it."""

    id: int
    study_id: int
    body: str
    written_by: str
    to: tuple[str, ...]
    read: int
    created_at: datetime

    @computed_field  # type: ignore[prop-decorator]
    @property
    def name(self) -> str:
        """What lists call it."""
        return f"message {self.id}"


class ReceivedRow(Row):
    """A message as who it is for has it."""

    id: int
    body: str
    written_by: str
    created_at: datetime
    read_at: datetime | None


def announce(
    session: Session, study_id: int, body: str, *, by: str, to: Sequence[int] = ()
) -> Announcement:
    """Write to judges of a study, or to everyone in it. Does not commit.

    Raises NotFound, BadInput without a text that can be stored, Refused for a closed study and
    behind the last of MAX_ANNOUNCEMENTS.
    """
    study, text = lock_study(session, study_id), message_text(body)
    if study.status == "closed":
        raise Refused(
            f"the study {study.name!r} is closed: nobody reads messages on its card",
            "write to its people in another way",
            code="study_is_closed",
            study=study.name,
        )
    of_study = select(func.count(Announcement.id)).where(Announcement.study_id == study_id)
    if (session.scalar(of_study) or 0) >= MAX_ANNOUNCEMENTS:
        raise Refused(
            f"study {study_id} has {MAX_ANNOUNCEMENTS} messages to its people",
            "say the rest in its guidelines",
            code="announcements_full",
        )
    made = Announcement(study_id=study_id, body=text, written_by=by, for_all=not to)
    session.add(made)
    session.flush()
    session.add_all(
        AnnouncementReader(announcement_id=made.id, judge_id=judge_id) for judge_id in sorted({*to})
    )
    session.flush()
    record_event(session, by, "study.announce", study_id, announcement=made.id, to=sorted({*to}))
    return made


def sent(session: Session, study_id: int) -> list[SentRow]:
    """The messages to people of a study, newest first. Raises NotFound."""
    get_study(session, study_id)
    names: dict[int, list[str]] = {}
    read: dict[int, int] = {}
    for announcement_id, name, read_at in session.execute(
        select(AnnouncementReader.announcement_id, Judge.name, AnnouncementReader.read_at)
        .join(Announcement, Announcement.id == AnnouncementReader.announcement_id)
        .join(Judge, Judge.id == AnnouncementReader.judge_id)
        .where(Announcement.study_id == study_id)
        .order_by(Judge.name)
    ):
        names.setdefault(announcement_id, []).append(name)
        read[announcement_id] = read.get(announcement_id, 0) + (read_at is not None)
    rows = session.scalars(
        select(Announcement)
        .where(Announcement.study_id == study_id)
        .order_by(Announcement.id.desc())
    )
    return [
        SentRow.of(row, to=() if row.for_all else names.get(row.id, ()), read=read.get(row.id, 0))
        for row in rows
    ]


def received(session: Session, study_id: int, judge_id: int) -> list[ReceivedRow]:
    """The messages to a judge, newest first: those to everyone of who is in the study, and own."""
    rows = session.execute(
        select(Announcement, AnnouncementReader.read_at)
        .outerjoin(AnnouncementReader, _own_reading(judge_id))
        .where(Announcement.study_id == study_id, _is_for(judge_id))
        .order_by(Announcement.id.desc())
    )
    return [ReceivedRow.of(row, read_at=read_at) for row, read_at in rows]


def mark_read(session: Session, study_id: int, judge_id: int, up_to: int) -> None:
    """Record that a judge has read the messages to them up to this one; twice is once.

    Does not commit.
    """
    lock_study(session, study_id)  # a second tab may send the same
    for row in received(session, study_id, judge_id):
        if row.read_at is not None or row.id > up_to:
            continue
        reading = session.get(AnnouncementReader, (row.id, judge_id))
        if reading is None:
            reading = AnnouncementReader(announcement_id=row.id, judge_id=judge_id)
            session.add(reading)
        reading.read_at = utc_now()
    session.flush()


def _own_reading(judge_id: int) -> ColumnElement[bool]:
    return and_(
        AnnouncementReader.announcement_id == Announcement.id,
        AnnouncementReader.judge_id == judge_id,
    )


def _is_for(judge_id: int) -> ColumnElement[bool]:
    is_member = exists().where(
        StudyJudge.study_id == Announcement.study_id, StudyJudge.judge_id == judge_id
    )
    return or_(
        and_(Announcement.for_all, is_member), AnnouncementReader.announcement_id.is_not(None)
    )
