"""The judging card's outbox: validate and store the decisions a browser sends, and answer them.

Input from a browser may be forged or stale: each entry is checked and stored in its own savepoint,
all of them in one transaction of the caller. The answer to an event is "" if it was stored, else
the reason for the refusal; the browser resends an event without an answer. A notice is what the
judge has to know of an answer that was stored. Note: an entry that raised anything else would be
resent for ever, and everything behind it with it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from db.assignment.answering import Decision, answer, skip_item
from db.assignment.places import not_given
from db.assignment.standing import Standing, given_item
from db.assignment.threads import write_as_judge
from db.errors import BadInput, InfError, Refused
from db.question import Shown
from db.values import is_storable

MAX_EVENTS = 500
MAX_NOTE_CHARACTERS = 2000
MAX_EVENT_CHARACTERS = 64
MAX_ANSWER_CHARACTERS = 32
KINDS = ("pick", "skip", "message")
FIRST_YEAR = 1970  # a device whose clock was reset starts here; nothing was judged before
LAST_YEAR = 9000
TOO_LATE = Refused(
    "Your time for an item had run out and another judge was given it: your answer is kept, but it "
    "does not count",
    "go on with the next item",
    code="too_late",
)


def studies_named(events: Sequence[Any]) -> set[int]:
    """The studies that the decisions of a browser are for."""
    found = set()
    for entry in list(events)[:MAX_EVENTS]:
        with suppress(BadInput):  # answered where the entry is stored
            found.add(whole_number(entry if isinstance(entry, Mapping) else {}, "study"))
    return found


def store_outbox(
    session: Session,
    standings: Mapping[int, Standing],
    events: Sequence[Any],
    *,
    reword: Callable[[InfError], str] = str,
    notices: dict[str, str] | None = None,
) -> dict[str, str]:
    """Store a judge's decisions. Returns the answer to each event by its id. Does not commit.

    `standings` are the judge's in the studies that the events name (`studies_named`), locked before
    a savepoint that could give a lock back. `reword` gives an error in the judge's language;
    `notices` is filled, by event.
    """
    answers: dict[str, str] = {}
    for entry in list(events)[:MAX_EVENTS]:
        event = event_of(entry)
        if event is None:
            continue  # not from our card, so there is no event to answer
        try:
            with session.begin_nested():
                counts = _store(session, standings, entry)
            answers[event] = ""
            if not counts and notices is not None:
                notices[event] = reword(TOO_LATE)
        except InfError as error:
            answers[event] = reword(error)
    return answers


def event_of(entry: Any) -> str | None:
    """The id of an entry's event; None if it has none that an answer could name."""
    event = entry.get("event") if isinstance(entry, Mapping) else None
    return event if isinstance(event, str) and is_storable(event) else None


def malformed(message: str) -> BadInput:
    """What no card sends."""
    return BadInput(message, "reload the page and answer the item again", code="malformed")


def _store(session: Session, standings: Mapping[int, Standing], entry: Mapping[str, Any]) -> bool:
    """Whether what was stored counts; an answer whose place was given away does not."""
    here = standings.get(whole_number(entry, "study"))
    if here is None:
        raise not_given()
    if len(entry["event"]) > MAX_EVENT_CHARACTERS:
        raise malformed("the event's id is too long")
    event_id = f"card:{here.judge.id}/{entry['event']}"
    given = given_item(session, here, event_id, token=token_of(entry))
    if given is None:
        raise not_given()
    item_id = given.assignment.item_id
    note = note_of(entry)
    flagged = entry.get("flagged") is True
    kind = entry.get("kind")
    if kind not in KINDS:
        raise malformed(f"unknown kind of decision: {kind!r:.40}")
    reason = str(entry.get("reason") or "")
    if kind == "message":
        body = str(entry.get("body") or "")
        write_as_judge(session, here.study.id, here.judge.id, item_id, body, event_id=event_id)
        return True
    if kind == "skip":
        skipped = skip_item(
            session,
            here,
            item_id,
            note=note,
            flagged=flagged,
            reason=reason,
            shown_at=moment_of(entry, "shown"),
            decided_at=moment_of(entry, "decided"),
        )
        if not skipped and entry.get("change") is True:
            raise Refused(
                "an answered item cannot be skipped; the answer stands",
                "change the answer on the page My answers",
                code="skip_answered",
            )
        return True
    decision = Decision(
        event_id=event_id,
        item_id=item_id,
        position=answer_of(entry),
        shown_at=moment_of(entry, "shown"),
        decided_at=moment_of(entry, "decided"),
        note=note,
        flagged=flagged,
        change=entry.get("change") is True,
        reason=reason if flagged else "",
        guidelines=version_of(entry),
    )
    return answer(session, here, given, decision).study_id is not None


def note_of(entry: Mapping[str, Any]) -> str:
    """The note of an entry, cut to its limit. Raises BadInput for one with half a character."""
    note = str(entry.get("note") or "").replace("\x00", "")[:MAX_NOTE_CHARACTERS]
    if not is_storable(note):
        raise BadInput("the note contains half a character", "change it", code="note_half")
    return note


def token_of(entry: Mapping[str, Any]) -> str:
    """The token of the item that an entry answers. Raises BadInput without one."""
    token = entry.get("token")
    if not isinstance(token, str) or not token.isalnum() or len(token) > MAX_EVENT_CHARACTERS:
        raise BadInput(
            "the answer does not name its item (was it given before the server was updated?)",
            "answer the item again",
            code="item_token_missing",
        )
    return token


def answer_of(entry: Mapping[str, Any]) -> Shown:
    """What an entry chose: a place, None for none of them, or an answer in words or figures."""
    value = entry.get("position")
    if value is None:
        return None
    if isinstance(value, str) and is_storable(value) and len(value) <= MAX_ANSWER_CHARACTERS:
        return value
    return whole_number(entry, "position")


def version_of(entry: Mapping[str, Any]) -> int | None:
    """The version of the guidelines that an entry was given under; None of an older card."""
    return None if entry.get("guidelines") is None else whole_number(entry, "guidelines")


def whole_number(entry: Mapping[str, Any], name: str) -> int:
    """An integer field of an entry. Raises BadInput if it is not a 32-bit integer."""
    value = entry.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 2**31 - 1:
        raise malformed(f"the decision's {name} is not an integer: {value!r:.40}")
    return value


def moment_of(entry: Mapping[str, Any], name: str) -> datetime | None:
    """A time of an entry, None where it has none. Raises BadInput for an invalid one.

    Near the years 1 and 9999 neither a time zone nor a wrong clock could be subtracted.
    """
    value = entry.get(name)
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise malformed(f"the decision's time {name} is not a time: {value!r:.40}") from error
    if not FIRST_YEAR <= moment.year < LAST_YEAR:
        raise BadInput(
            f"the decision's time {name} is impossible: {value!r:.40}",
            "set the clock of this device, reload and answer the item again",
            code="bad_clock",
        )
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
