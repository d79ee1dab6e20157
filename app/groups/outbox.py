"""The workbench's outbox: validate and store the reviews a browser sends, and answer them.

Input from a browser may be forged or stale: each entry is checked and stored in its own savepoint.
The answer to an event is "" if it was stored, else the reason for the refusal.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.operations.judging.outbox import event_of
from app.text.remedies import in_pages
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
    undo_review,
)
from db.tables import Group
from db.values import is_storable

MAX_EVENTS = 200
CALLS = "calls"
VALIDATE = "validate"
MAX_EVENT_CHARACTERS = 64
MAX_TEXTS = 64  # of an edit; which of them a group has is checked with the edit


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
                _store(session, reviewer, entry, blind, run_id)
            answers[event] = ""
            edited |= entry.get("kind") == "edit"
        except InfError as error:
            answers[event] = in_pages(str(error))
    return answers, edited


def numbers_of(sent: Mapping[str, Any], name: str) -> list[int]:
    """The integers, or the integer, that the card sent under a name; anything else is left out."""
    found = sent.get(name)
    values = found if isinstance(found, list) else [found]
    return [int(str(each).partition(".")[0]) for each in values if _is_number(each)]


def wanted_page(sent: Mapping[str, Any], rows: int) -> int:
    """The offset of the page that the card asks for: a multiple of `rows`."""
    return max(0, *numbers_of(sent, "offset")[:1], 0) // rows * rows


def _store(
    session: Session, reviewer: str, entry: Mapping[str, Any], blind: bool, run_id: int
) -> None:
    if len(entry["event"]) > MAX_EVENT_CHARACTERS:
        raise BadInput("the event's id is too long", code="event_id_too_long")
    event_id = f"card:{reviewer}/{entry['event']}"
    if review_of_event(session, event_id, reviewer) is not None:
        return
    group_id = _number(entry, "group")
    if session.scalar(select(Group.run_id).where(Group.id == group_id)) != run_id:
        raise _not_in_queue(group_id)  # its run may be reviewed blind
    if not can_review(session, group_id, reviewer=reviewer, blind=blind):
        raise _not_in_queue(group_id)
    kind = entry.get("kind")
    if kind == "undo":
        _undo(session, reviewer, entry, group_id)
        return
    _require_current(session, reviewer, entry, group_id)
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
        raise BadInput(f"unknown kind of review: {str(kind)[:40]!r}", code="review_kind_unknown")


def _not_in_queue(group_id: int) -> Refused:
    """The refusal of whatever is sent about a group that the reviewer may not see."""
    return Refused(f"group {group_id} is not in your queue", code="group_not_in_queue")


def _undo(session: Session, reviewer: str, entry: Mapping[str, Any], group_id: int) -> None:
    """Undo the review of the event `after`, or the one that was shown; what is undone stays so."""
    named = _own_event(entry, reviewer)
    done = None if named is None else review_of_event(session, named, reviewer)
    if done is not None and done.undone_at is not None and done.group_id == group_id:
        return
    if named is None:
        require_seen(session, group_id, _number(entry, "seen"))
    elif done is None:
        return  # it was refused: nothing of it is stored
    elif not done.is_current or done.group_id != group_id:
        raise Refused(
            f"group {group_id} has a newer review: nothing was undone",
            code="group_review_newer",
        )
    undo_review(session, group_id, reviewed_by=reviewer)


def _own_event(entry: Mapping[str, Any], reviewer: str) -> str | None:
    after = entry.get("after")
    return f"card:{reviewer}/{after}" if isinstance(after, str) and after else None


def _require_current(
    session: Session, reviewer: str, entry: Mapping[str, Any], group_id: int
) -> None:
    """Raise Refused unless the reviewed version is current."""
    own = _own_event(entry, reviewer)
    if own is not None:
        current = current_review(session, group_id)
        if current is None or current.event_id != own:
            raise Refused(
                f"group {group_id} has a newer review by someone else",
                "check it again",
                code="group_review_newer",
            )
        return
    seen = entry.get("seen")
    require_seen(session, group_id, None if seen is None else _number(entry, "seen"))


def _texts(entry: Mapping[str, Any]) -> dict[str, str]:
    texts = entry.get("texts")
    if not isinstance(texts, Mapping) or len(texts) > MAX_TEXTS:
        raise BadInput("the edit contains no texts", code="edit_empty")
    return {_text(name): _text(text) for name, text in texts.items()}


def _text(value: Any) -> str:
    text = str(value)
    if not is_storable(text):
        raise BadInput(
            "the text contains a NUL or half a character",
            "change it",
            code="text_invalid",
        )
    return text


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return float(value).is_integer() and abs(value) <= 2**31 - 1


def _number(entry: Mapping[str, Any], name: str) -> int:
    value = entry.get(name)
    if not _is_number(value):
        raise BadInput(
            f"the review's {name} is not an integer: {value!r:.40}", code="review_value_invalid"
        )
    return int(str(value).partition(".")[0])
