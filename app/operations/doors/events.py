"""Events that programs follow: what happened to runs, jobs, studies and releases that they see.

An event names the thing and not what is in it: nothing of an answer, a review or a setting.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, func, select

from app.access.identity import Actor
from app.access.permissions import NEEDS, require
from app.operations.acting import reading
from db.rows import Row
from db.store.scope import unscoped
from db.store.store import open_store
from db.tables import Event, Job, Judgment, Release, Run, Study, StudyItem, utc_now

RIGHT = "jobs"
ANSWERS = select(Judgment.id).join(StudyItem, StudyItem.item_id == Judgment.item_id)
# By noun: who may see it, and the ids that there are.
SEEN: Mapping[str, tuple[str, Select[Any]]] = {
    "run": ("curate", select(Run.id)),
    "study": ("studies", select(Study.id)),
    "judgment": ("studies", ANSWERS),
    "release": ("export", select(Release.id)),
    "job": ("jobs", select(Job.id)),
    "training": ("jobs", select(Job.id)),
}
ENDS = ("finished", "paused", "failed", "cancelled")
BY_DEFAULT = (
    *(f"run.{end}" for end in ENDS),
    *(f"job.{what}" for what in ("launch", "resume", "cancel", "done", "failed", "lost")),
    *("job.cancelled", "training.finished", "release.created", "release.pushed"),
    *(f"study.{what}" for what in ("create", "open", "paused", "closed", "finished", "extend")),
)
# The last is of every answer: a webhook gets it where it is asked for.
NAMES = (*BY_DEFAULT, "judgment.stored")
# A number that is missing is of a transaction that is not over, or was undone, in this time.
SETTLED = timedelta(seconds=60)


class EventRow(Row):
    """What happened to which thing, when, and by whom."""

    id: int
    at: datetime
    name: str
    noun: str
    noun_id: str
    actor: str


class EventsAfter(Row):
    """Events in order; `last`: the number up to which everything was looked at."""

    data: tuple[EventRow, ...]
    last: int


def newest(actor: Actor, right: str = RIGHT) -> int:
    """The number of the newest event, whoever sees it."""
    require(actor, right)
    with unscoped(), open_store().read() as session:
        return session.scalar(select(func.max(Event.id))) or 0


def list_after(actor: Actor, after: int, *, limit: int = 500) -> EventsAfter:
    """What the actor sees of the `limit` events after the one of this number.

    Transactions end in another order than their events are numbered on PostgreSQL: it stops before
    a missing number until that is settled, so that none is skipped.
    """
    with reading(actor, RIGHT), unscoped(), open_store().read() as session:
        query = select(Event).where(Event.id > after).order_by(Event.id).limit(limit)
        found, last = [], after
        for event in session.scalars(query):
            if last and event.id != last + 1 and utc_now() - event.at < SETTLED:
                break
            last = event.id
            found.append(event)
    shown = [event for event in found if event.name in NAMES and event.noun in SEEN]
    visible = {noun: _visible(actor, noun, shown) for noun in {event.noun for event in shown}}
    rows = [event for event in shown if event.noun_id in visible[event.noun]]
    return EventsAfter(data=tuple(map(EventRow.model_validate, rows)), last=last)


def _visible(actor: Actor, noun: str, events: Sequence[Event]) -> set[str]:
    """The ids of this noun's things that the actor sees."""
    permission, query = SEEN[noun]
    if not NEEDS[permission].is_met(actor):
        return set()
    of = query.selected_columns.id
    ids = {int(one.noun_id) for one in events if one.noun == noun and one.noun_id.isdecimal()}
    with reading(actor, permission) as session:
        return set(map(str, session.scalars(query.where(of.in_(ids)))))
