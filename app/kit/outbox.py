"""The card's outbox: what a browser says was decided, checked and stored, and the answers to it.

Whatever comes from a browser may be forged or stale: each entry is checked and stored by itself
(a savepoint), all of them in one transaction of the caller. The answer to an event is "" where it
is stored and the reason where it is refused; an event without an answer is sent again.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from db.errors import BadInput, InfError, Refused
from db.study.assignments import Decision, skip_item, submit_decision

MOST_EVENTS = 500
LONGEST_NOTE = 2000
LONGEST_EVENT = 64


def store_outbox(session: Session, judge_id: int, events: Sequence[Any]) -> dict[str, str]:
    """Store a judge's decisions. Returns the answer to each event by its id. Does not commit."""
    answers: dict[str, str] = {}
    for entry in list(events)[:MOST_EVENTS]:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("event"), str):
            continue  # nothing to answer to: not written by our card
        event = entry["event"]
        try:
            with session.begin_nested():
                _store(session, judge_id, entry)
            answers[event] = ""
        except InfError as error:
            answers[event] = str(error)
    return answers


def _store(session: Session, judge_id: int, entry: Mapping[str, Any]) -> None:
    study_id, item_id = whole_number(entry, "study"), whole_number(entry, "item")
    note = str(entry.get("note") or "").replace("\x00", "")[:LONGEST_NOTE]
    flagged = entry.get("flagged") is True
    if entry.get("kind") == "skip":
        skipped = skip_item(session, study_id, judge_id, item_id, note=note, flagged=flagged)
        if not skipped and entry.get("change") is True:
            raise Refused("an answered item cannot be skipped; the answer stands")
        return
    if len(entry["event"]) > LONGEST_EVENT:
        raise BadInput("the event's id is too long")
    decision = Decision(
        event_id=f"card:{judge_id}/{entry['event']}",
        item_id=item_id,
        position=None if entry.get("position") is None else whole_number(entry, "position"),
        shown_at=_moment(entry, "shown"),
        decided_at=_moment(entry, "decided"),
        note=note,
        flagged=flagged,
        change=entry.get("change") is True,
    )
    submit_decision(session, study_id, judge_id, decision)


def whole_number(entry: Mapping[str, Any], name: str) -> int:
    """A number of an entry. Raises BadInput where it is none that the store could hold."""
    value = entry.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 2**31 - 1:
        raise BadInput(f"the decision's {name} is no number: {value!r:.40}")
    return value


def _moment(entry: Mapping[str, Any], name: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(entry.get(name)))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
