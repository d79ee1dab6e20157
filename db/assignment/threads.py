"""Threads between one judge and the curators about an item of a study.

A thread is seen by its judge, who may write about any item they were given in the study, and by
curators; by nobody else as long as the study is not closed. In a closed one adjudicators read it
beside the item (`db.study.blind_adjudication`). A curator who opens one has seen a
judge's view of the item, which is recorded: the item is never given to them afterwards.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, update
from sqlalchemy.orm import Session

from db.assignment.places import find_assignment
from db.assignment.shown_items import ShownItem, show
from db.errors import BadInput, Refused
from db.events import record_event
from db.study.studies import get_study
from db.tables import ItemMessage, Judge, utc_now
from db.values import is_storable

MAX_MESSAGE_CHARACTERS = 2000
MAX_MESSAGES = 200  # of one thread


@dataclass(frozen=True)
class Message:
    """A message; `written_by` is "" for the judge whose thread it is."""

    written_by: str
    body: str
    created_at: datetime


@dataclass(frozen=True)
class Thread:
    """A judge's thread about an item, for curators; `unread` are the judge's new messages."""

    item_id: int
    judge_id: int
    judge: str
    unread: int
    last_at: datetime


def write_as_judge(
    session: Session, study_id: int, judge_id: int, item_id: int, body: str, *, event_id: str
) -> None:
    """Store a judge's message about an item they were given. Idempotent by the event id.

    Raises Refused for an item they were not given, in a closed study, or if the event is that of
    another message, BadInput without a text that can be stored. Does not commit.
    """
    find_assignment(session, study_id, judge_id, item_id)
    _write(session, study_id, judge_id, item_id, body, event_id=event_id, written_by="")


def write_as_curator(
    session: Session,
    study_id: int,
    judge_id: int,
    item_id: int,
    body: str,
    *,
    by: str,
    event_id: str,
) -> None:
    """Store a curator's answer in a thread that the judge began. Does not commit.

    Raises Refused if there is no such thread, and as `write_as_judge` does.
    """
    if not messages_of(session, study_id, judge_id, [item_id]):
        raise Refused(
            "there is no such thread: a judge begins it",
            "wait until a judge writes",
            code="thread_unknown",
        )
    _write(session, study_id, judge_id, item_id, body, event_id=event_id, written_by=by)


def messages_of(
    session: Session, study_id: int, judge_id: int, item_ids: Collection[int]
) -> dict[int, list[Message]]:
    """The messages of a judge's threads about these items, oldest first, by item."""
    if not item_ids:
        return {}
    mine = _of_judge(study_id, judge_id).where(ItemMessage.item_id.in_(item_ids))
    return _by_item(session.scalars(mine))


def threads_and_replies(
    session: Session, study_id: int, judge_id: int, item_ids: Collection[int]
) -> tuple[dict[int, list[Message]], int]:
    """`messages_of` these items, and the number of `unread_replies`, with one statement."""
    query = _of_judge(study_id, judge_id).where(
        or_(ItemMessage.item_id.in_(item_ids), _unread_by_judge())
    )
    rows = session.scalars(query).all()
    replied = {row.item_id for row in rows if row.written_by and row.read_at is None}
    return _by_item(row for row in rows if row.item_id in item_ids), len(replied)


def threads_of_item(session: Session, study_id: int, item_id: int) -> dict[int, list[Message]]:
    """All threads about an item, by judge; {} while the study is not closed. Raises NotFound."""
    if get_study(session, study_id).status != "closed":
        return {}
    found: dict[int, list[Message]] = {}
    rows = session.scalars(
        select(ItemMessage)
        .where(ItemMessage.study_id == study_id, ItemMessage.item_id == item_id)
        .order_by(ItemMessage.id)
    )
    for row in rows:
        message = Message(row.written_by, row.body, row.created_at)
        found.setdefault(row.judge_id, []).append(message)
    return found


def items_with_threads(session: Session, study_id: int) -> set[int]:
    """The items with a thread; none while the study is not closed. Raises NotFound."""
    if get_study(session, study_id).status != "closed":
        return set()
    query = select(ItemMessage.item_id).where(ItemMessage.study_id == study_id)
    return set(session.scalars(query))


def unread_replies(session: Session, study_id: int, judge_id: int) -> list[int]:
    """The items whose threads have a curator's message that the judge has not seen."""
    query = _of_judge(study_id, judge_id).where(_unread_by_judge())
    return sorted({row.item_id for row in session.scalars(query)})


def mark_read(
    session: Session, study_id: int, judge_id: int, item_ids: Collection[int], *, by_judge: bool
) -> None:
    """Record that one side has seen the other's messages about these items. Does not commit."""
    theirs = ItemMessage.written_by != "" if by_judge else ItemMessage.written_by == ""
    session.execute(
        update(ItemMessage)
        .where(
            ItemMessage.study_id == study_id,
            ItemMessage.judge_id == judge_id,
            ItemMessage.item_id.in_(item_ids),
            theirs,
            ItemMessage.read_at.is_(None),
        )
        .values(read_at=utc_now())
    )


def message_text(body: str) -> str:
    """The text of a message as it is stored. Raises BadInput for none, or half a character."""
    text = body.replace("\x00", "").strip()[:MAX_MESSAGE_CHARACTERS]
    if not text:
        raise BadInput("a message needs a text", "write one", code="message_empty")
    if not is_storable(text):
        raise BadInput("the message contains half a character", "change it", code="message_half")
    return text


def unread_by_judge(session: Session, study_id: int) -> dict[int, int]:
    """How many messages of each judge no curator has read, by judge."""
    query = (
        select(ItemMessage.judge_id, func.count())
        .where(
            ItemMessage.study_id == study_id,
            ItemMessage.written_by == "",
            ItemMessage.read_at.is_(None),
        )
        .group_by(ItemMessage.judge_id)
    )
    return dict(session.execute(query).all())


def list_threads(session: Session, study_id: int) -> list[Thread]:
    """All threads of a study, for a curator: those with unread messages first, then the newest.

    Raises NotFound.
    """
    get_study(session, study_id)
    rows = session.execute(
        select(
            ItemMessage.item_id,
            ItemMessage.judge_id,
            Judge.name,
            func.count().filter(ItemMessage.written_by == "", ItemMessage.read_at.is_(None)),
            func.max(ItemMessage.created_at),
        )
        .join(Judge, Judge.id == ItemMessage.judge_id)
        .where(ItemMessage.study_id == study_id)
        .group_by(ItemMessage.item_id, ItemMessage.judge_id, Judge.name)
    )
    found = [Thread(*row) for row in rows]
    return sorted(found, key=lambda one: (one.unread == 0, -one.last_at.timestamp()))


def shown_to_judge(session: Session, study_id: int, judge_id: int, item_id: int) -> ShownItem:
    """The item as the judge of a thread sees it: "passage 2" is the second one here, too.

    Raises NotFound, and Refused for an item that the judge was not given.
    """
    get_study(session, study_id)
    return show(session, find_assignment(session, study_id, judge_id, item_id))


def _of_judge(study_id: int, judge_id: int) -> Select[ItemMessage]:
    mine = select(ItemMessage).where(
        ItemMessage.study_id == study_id, ItemMessage.judge_id == judge_id
    )
    return mine.order_by(ItemMessage.id)


def _unread_by_judge() -> ColumnElement[bool]:
    return and_(ItemMessage.written_by != "", ItemMessage.read_at.is_(None))


def _by_item(rows: Iterable[ItemMessage]) -> dict[int, list[Message]]:
    found: dict[int, list[Message]] = {}
    for row in rows:
        message = Message(row.written_by, row.body, row.created_at)
        found.setdefault(row.item_id, []).append(message)
    return found


def _write(
    session: Session,
    study_id: int,
    judge_id: int,
    item_id: int,
    body: str,
    *,
    event_id: str,
    written_by: str,
) -> None:
    text = message_text(body)
    known = session.scalar(select(ItemMessage).where(ItemMessage.event_id == event_id))
    if known is not None:
        stored = (known.study_id, known.judge_id, known.item_id, known.body)
        if stored != (study_id, judge_id, item_id, text):  # of a second tab, or forged
            raise Refused(
                "another message was sent meanwhile (in another tab?): this one was not stored",
                "reload the page and send it again",
                code="other_message",
            )
        return
    study = get_study(session, study_id)
    if study.status == "closed":
        raise Refused(
            f"the study {study.name!r} is closed: its threads are, too",
            "write to the curators in another way",
            code="thread_closed",
            study=study.name,
        )
    count = select(func.count()).where(
        ItemMessage.study_id == study_id,
        ItemMessage.judge_id == judge_id,
        ItemMessage.item_id == item_id,
    )
    if (session.scalar(count) or 0) >= MAX_MESSAGES:
        raise Refused(
            f"the thread is full: {MAX_MESSAGES} messages",
            "write to the curators in another way",
            code="thread_full",
        )
    session.add(
        ItemMessage(
            study_id=study_id,
            item_id=item_id,
            judge_id=judge_id,
            written_by=written_by,
            body=text,
            event_id=event_id,
        )
    )
    session.flush()
    by = written_by or session.get_one(Judge, judge_id).person
    record_event(session, by, "study.message", study_id, item=item_id, judge=judge_id)
