"""Events: who did what to which thing, written in the transaction of the change itself.

One table is the audit log, and what streams (SSE) and webhooks read. An event has the name of what
happened (`study.extend`, `run.finished`), the noun and its id or name, and data.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.tables import Event

VIA = "via"
# Names that do not begin with the noun.
NOUNS = {
    **dict.fromkeys(("sign-in", "sign-out", "member", "openid"), "account"),
    **dict.fromkeys(("import", "demo"), "dataset"),
    **dict.fromkeys(("backup", "restore", "upgrade", "copy"), "store"),
    **dict.fromkeys(("review", "coverage"), "group"),
}
# What no person decided, or what happens many times in an hour of work: not in the audit log.
NOT_AUDITED = (
    *("judgment.stored", "study.finished", "training.finished"),
    *(f"run.{end}" for end in ("finished", "paused", "failed", "cancelled")),
    *(f"job.{end}" for end in ("done", "failed", "cancelled", "lost")),
)


def record_event(
    session: Session, actor: str, name: str, of: object | tuple[str, object] = "", **data: Any
) -> None:
    """Add an event: to the thing of this id or name, or (noun, id). Does not commit.

    Without a noun it is what the event's name begins with. Where an actor was admitted to the
    session, the data has `via`: the door.
    """
    if VIA in session.info:
        data["via"] = session.info[VIA]
    first = name.partition(".")[0]
    noun, noun_id = of if isinstance(of, tuple) else (NOUNS.get(first, first), of)
    session.add(Event(actor=actor, name=name, noun=noun, noun_id=str(noun_id), data=data))


def is_recorded(session: Session, name: str, of: object, data: Mapping[str, Any]) -> bool:
    """Whether there is an event of this name and noun id with these values in its data."""
    query = select(Event.data).where(Event.name == name, Event.noun_id == str(of))
    return any(data.items() <= each.items() for each in session.scalars(query))


def list_events(
    session: Session, *, names: Sequence[str] = (), offset: int = 0, limit: int = 50
) -> tuple[list[Event], int]:
    """A page of the audit log, newest first, and how many rows there are in all."""
    query = select(Event)
    query = query.where(Event.name.in_(names) if names else Event.name.not_in(NOT_AUDITED))
    total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    rows = session.scalars(query.order_by(Event.id.desc()).offset(offset).limit(limit))
    return list(rows), total


def event_names(session: Session) -> list[str]:
    """The names of events that occur in the audit log."""
    query = select(Event.name).where(Event.name.not_in(NOT_AUDITED))
    return list(session.scalars(query.distinct().order_by(Event.name)))
