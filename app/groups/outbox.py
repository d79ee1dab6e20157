"""The review card's outbox: validate and store the reviews a browser sends, and answer them.

Input from a browser may be forged or stale: each entry is checked and stored in its own savepoint.
The answer to an event is "" if it was stored, else the reason for the refusal.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.kit.outbox import event_of
from curation.judging.revalidation import check_edit
from db.errors import BadInput, InfError, Refused
from db.review.queue import can_review
from db.review.reviews import (
    approve_group,
    current_review,
    edit_group,
    reject_group,
    require_seen,
    review_of_event,
)
from db.review.texts import FIELDS
from db.values import is_storable

MAX_EVENTS = 200
MAX_LATER = 200
MAX_EVENT_CHARACTERS = 64


def store_reviews(
    session: Session, reviewer: str, events: Sequence[Any], *, blind: bool, run_id: int
) -> tuple[dict[str, str], bool]:
    """Store a person's reviews of a run's groups. Returns the answer to each event by its id, and
    whether a text was edited. Does not commit."""
    answers: dict[str, str] = {}
    edited = False
    for entry in list(events)[:MAX_EVENTS]:
        event = event_of(entry)
        if event is None:
            continue  # not from our card, so there is no event to answer
        if entry.get("run") != run_id:
            continue  # belongs to another run's page, which answers it
        try:
            with session.begin_nested():
                _store(session, reviewer, entry, blind)
            answers[event] = ""
            edited |= entry.get("kind") == "edit"
        except InfError as error:
            answers[event] = str(error)
    return answers, edited


def answered_groups(events: Any, answers: Mapping[str, str]) -> list[int]:
    """The groups whose reviews were stored."""
    entries = events if isinstance(events, list) else []
    return [
        _number(entry, "group")
        for entry in entries
        if isinstance(entry, Mapping) and answers.get(str(entry.get("event"))) == ""
    ]


def put_off(outbox: Mapping[str, Any]) -> list[int]:
    """The groups that the card has postponed."""
    later = outbox.get("later")
    found = [each for each in later if _is_number(each)] if isinstance(later, list) else []
    return [int(each) for each in found[-MAX_LATER:]]


def _store(session: Session, reviewer: str, entry: Mapping[str, Any], blind: bool) -> None:
    if len(entry["event"]) > MAX_EVENT_CHARACTERS:
        raise BadInput("the event's id is too long")
    event_id = f"card:{reviewer}/{entry['event']}"
    if review_of_event(session, event_id, reviewer) is not None:
        return
    group_id = _number(entry, "group")
    _require_current(session, reviewer, entry, group_id, blind)
    kind = entry.get("kind")
    if kind == "approve":
        approve_group(session, group_id, reviewed_by=reviewer, event_id=event_id)
    elif kind == "reject":
        reason = _text(entry.get("reason") or "")
        reject_group(session, group_id, reason=reason, reviewed_by=reviewer, event_id=event_id)
    elif kind == "edit":
        changes = _texts(entry)
        check_edit(session, group_id, changes)
        edit_group(session, group_id, changes, reviewed_by=reviewer, event_id=event_id)
    else:
        raise BadInput(f"unknown kind of review: {str(kind)[:40]!r}")


def _require_current(
    session: Session, reviewer: str, entry: Mapping[str, Any], group_id: int, blind: bool
) -> None:
    """Raise Refused unless the reviewed version is current and the reviewer may see the group."""
    after = entry.get("after")
    if isinstance(after, str) and after:
        current = current_review(session, group_id)
        if current is None or current.event_id != f"card:{reviewer}/{after}":
            raise Refused(f"group {group_id} has a newer review by someone else: check it again")
        return
    if not can_review(session, group_id, reviewer=reviewer, blind=blind):
        raise Refused(f"group {group_id} is not in your queue")
    seen = entry.get("seen")
    require_seen(session, group_id, None if seen is None else _number(entry, "seen"))


def _texts(entry: Mapping[str, Any]) -> dict[str, str]:
    texts = entry.get("texts")
    if not isinstance(texts, Mapping) or len(texts) > len(FIELDS):
        raise BadInput("the edit contains no texts")
    return {_text(name): _text(text) for name, text in texts.items()}


def _text(value: Any) -> str:
    text = str(value)
    if not is_storable(text):
        raise BadInput("the text contains a NUL or half a character: change it")
    return text


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return float(value).is_integer() and abs(value) <= 2**31 - 1


def _number(entry: Mapping[str, Any], name: str) -> int:
    value = entry.get(name)
    if not _is_number(value):
        raise BadInput(f"the review's {name} is not an integer: {value!r:.40}")
    return int(str(value).partition(".")[0])
