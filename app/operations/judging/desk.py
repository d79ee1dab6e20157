"""The desk where the groups of a run are reviewed: what the workbench sends is stored, and what it
asks for is read.

Input from a browser may be forged or stale: each entry is checked and stored in its own savepoint.
The answer to an event is None if it was stored, else the error that refused it. Who may curate the
dataset sees verdicts, calls and drop reasons. Others review blind unless a curator shows the run's
verdicts: nothing that is sent to their browser distinguishes kept from dropped. A group of which a
person may judge an item is shown to them neither way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.access.identity import Actor, SessionUser, owner
from app.jobs.kinds import KINDS
from app.operations.acting import queued, reading, record_read, writing
from app.operations.groups import PAGE, Prompts, Standing, page, prompts_of, standing, visible
from app.operations.judging.outbox import event_of
from curation.judging.request import JudgeStart
from curation.recipe.drop_reasons import reason_text
from curation.run.revalidation import check_edit
from db.errors import BadInput, InfError, Refused
from db.jobs.jobs import list_jobs
from db.review import queue
from db.review.queue import QueueFilter, can_review
from db.review.reviews import (
    approve_group,
    current_review,
    edit_group,
    reject_group,
    require_seen,
    review_of_event,
    undo_review,
)
from db.rows import Listed
from db.run.group_detail import GroupShown, get_group
from db.run.groups import GroupRow
from db.run.revalidations import WAITING, revalidation_of
from db.tables import Account, Group, Item, Job, Review
from db.values import is_storable

RIGHT = "groups"
MAX_DETAILS = 8
MAX_EVENTS = 200
CALLS = "calls"
VALIDATE = "validate"
MAX_EVENT_CHARACTERS = 64
MAX_TEXTS = 64  # of an edit; which of them a group has is checked with the edit
LIVE = ("queued", "running")
ENDED = ("done", "failed", "cancelled", "lost")
NO_RIGHT = Refused(
    "you have no right to review groups of this dataset",
    "ask a curator of the dataset for it",
    code="review_right_missing",
)
Answers = dict[str, InfError | None]


@dataclass(frozen=True)
class Desk:
    """The groups to list; `wanted_group` is the group that the URL names, if any."""

    wanted: QueueFilter
    wanted_group: int | None = None


@dataclass(frozen=True)
class GroupOnDesk:
    """A group in full as the person may see it (blind, without its verdict), what its validator
    found after an edit, and whether it is at work on it.

    `carried_from_run`: the run whose review this is a copy of; `why_not_validated`: why the last
    validation left texts without an answer, "" if it did not.
    """

    group: GroupShown
    revalidation: dict[str, str]
    carried_from_run: int | None
    is_validating: bool
    why_not_validated: str


@dataclass(frozen=True)
class OnDesk:
    """A page of the list from `offset` on, and the groups that the card asked for.

    `gone`: those of them that may not be seen; `calls`: a group with the prompts of its calls;
    `person`: the number and the time of the account, which a new name does not change.
    """

    standing: Standing
    queue: str
    offset: int
    listed: Listed[GroupRow]
    groups: list[GroupOnDesk]
    gone: list[int]
    calls: tuple[GroupShown, Prompts] | None
    answers: Answers
    person: tuple[int | None, datetime | str]


def on_desk(actor: Actor, desk: Desk, outbox: Mapping[str, Any]) -> OnDesk:
    """Store the card's reviews; read a page of the list and the groups that it asks for."""
    run_id = desk.wanted.run_id
    with reading(actor, RIGHT) as session:
        here = standing(session, actor, run_id)
    answers = _take(actor, here, outbox.get("events"))
    name = str(desk)
    is_same = outbox.get("queue") == name
    with reading(actor, RIGHT) as session:
        offset = wanted_page(outbox, PAGE) if is_same else _offset_of(session, desk, here)
        listed = page(session, here, desk.wanted, limit=PAGE, offset=offset)
        ids = numbers_of(outbox, "want")[:MAX_DETAILS] if is_same else []
        if not is_same:
            first = [desk.wanted_group] if desk.wanted_group is not None else []
            ids = list(dict.fromkeys([*first, *(row.id for row in listed.data)]))[:3]
        called = numbers_of(outbox, CALLS)[:1] if here.curates else []
        seen = visible(session, here, [*ids, *called])
        shown = [each for each in ids if each in seen]
        validated = groups_in_validation(session, run_id)
        groups = [_group(session, here, each, validated) for each in shown]
        calls = None
        for wanted in (each for each in called if each in seen):
            called_one = get_group(session, wanted)
            calls = called_one, prompts_of(session, called_one)
        person = _account_of(session, actor)
    record_read(shown, actor)
    return OnDesk(
        here,
        name,
        offset,
        listed,
        groups,
        [each for each in ids if each not in shown],
        calls,
        answers,
        person,
    )


def _group(
    session: Session, here: Standing, group_id: int, validated: set[int | None]
) -> GroupOnDesk:
    """A group that they may see, without what they may not see of it."""
    group, revalidation = get_group(session, group_id), revalidation_of(session, group_id)
    if here.blind:
        group = group.without_verdict()
    elif not here.curates:
        group = group.model_copy(update={"calls": ()})
    is_validating = not validated.isdisjoint({None, group_id})
    is_left = WAITING in revalidation.values() and not is_validating and here.curates
    return GroupOnDesk(
        group,
        {} if here.blind else revalidation,
        _run_of_original(session, group_id),
        is_validating,
        why_not_validated(session, here.run.id, group_id) if is_left else "",
    )


def _account_of(session: Session, actor: Actor) -> tuple[int | None, datetime | str]:
    number = actor.account_id if isinstance(actor, SessionUser) else None
    account = session.get(Account, number) if number else None
    return (None, "") if account is None else (account.id, account.created_at)


def _take(actor: Actor, here: Standing, sent: Any) -> Answers:
    """Store the reviews and start the validations that the card sent; the answer to each event."""
    events = sent if isinstance(sent, list) else []
    if not events:
        return {}
    if not here.reviews and not here.curates:
        raise NO_RIGHT
    answers: Answers = {}
    reviews = [each for each in events if not _is_validation(each)]
    if reviews and here.reviews:
        with writing(actor, "review") as session:
            answers, edited = store_reviews(
                session, actor.name, reviews, blind=here.blind, run_id=here.run.id
            )
        if edited and here.run.offline:
            _revalidate_soon(actor, here.run.id)
    elif reviews:
        answers = {event: NO_RIGHT for each in reviews if (event := event_of(each)) is not None}
    for each in events:
        event = event_of(each)
        if _is_validation(each) and event is not None and each.get("run") == here.run.id:
            try:
                _validate(actor, here, each)
                answers[event] = None
            except InfError as error:
                answers[event] = error
    return answers


def _is_validation(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("kind") == VALIDATE


def _validate(actor: Actor, here: Standing, entry: Mapping[str, Any]) -> None:
    """Queue the run's validator for one group, unless such a job is queued or running.

    Raises Refused without the right, and for texts that the validator has judged.
    """
    (group_id,) = numbers_of(entry, "group") or [0]
    with reading(actor, KINDS["judge"].permission) as session:
        if not here.curates or group_id not in visible(session, here, [group_id]):
            raise _not_in_queue(group_id)
        if WAITING not in revalidation_of(session, group_id).values():
            raise Refused(
                "the validator has judged exactly these texts",
                "edit one first",
                code="validator_judged_already",
            )
        validated = groups_in_validation(session, here.run.id)
    if not validated & {None, group_id}:
        wanted = JudgeStart(run_id=here.run.id, group_id=group_id)
        queued(owner(actor.name, "page"), "judge", wanted)


def _revalidate_soon(actor: Actor, run_id: int) -> None:
    """Queue the validator for edited groups, unless such a job is queued already."""
    with reading(actor, RIGHT) as session:
        is_queued = bool(validation_jobs(session, run_id, ("queued",)))
    if not is_queued:
        queued(owner(actor.name, "page"), "judge", JudgeStart(run_id=run_id))


def _offset_of(session: Session, desk: Desk, here: Standing) -> int:
    if desk.wanted_group is None:
        return 0
    place = queue.place_in_list(
        session, desk.wanted, desk.wanted_group, viewer=here.viewer, blind=here.blind
    )
    return 0 if place is None else place // PAGE * PAGE


def _run_of_original(session: Session, group_id: int) -> int | None:
    """The run whose group was reviewed, if the current review of this one is a copy of that."""
    original = select(Review.carried_from).where(Review.group_id == group_id, Review.is_current)
    query = select(Group.run_id).join(Review, Review.group_id == Group.id)
    return session.scalar(query.where(Review.id == original.scalar_subquery()))


def validation_jobs(session: Session, run_id: int, statuses: Sequence[str]) -> list[Job]:
    """The jobs, newest first, in which the run's validator judges edits, not a second judge's."""
    jobs = list_jobs(session, kind="judge", statuses=statuses)
    found = (one for one in jobs if one.config.get("run_id") == run_id)
    return [one for one in found if one.config.get("judge") is None]


def groups_in_validation(session: Session, run_id: int) -> set[int | None]:
    """The groups that live jobs let the validator judge; None: all edited ones."""
    return {job.config.get("group_id") for job in validation_jobs(session, run_id, LIVE)}


def why_not_validated(session: Session, run_id: int, group_id: int) -> str:
    """Why the last job that judged the group's newest texts left some unanswered; "" if none did.

    For a group of which some texts wait for the validator.
    """
    since = session.scalar(select(func.max(Item.created_at)).where(Item.group_id == group_id))
    for job in validation_jobs(session, run_id, ENDED):
        if since is None or job.created_at < since:
            return ""
        if job.config.get("group_id") in (None, group_id):
            return _why(job)
    return ""


def _why(job: Job) -> str:
    if job.status != "done":
        detail = f": {job.error}" if job.error else ""
        return (
            f"Not validated: job {job.id} {'was ' * (job.status != 'failed')}{job.status}{detail}"
        )
    found = job.result or {}
    reasons = [reason_text(reason) for reason in found.get("unusable", {})]
    if not reasons:
        return ""
    return f"Not validated: {found.get('judge')} has no usable answer ({'; '.join(reasons)})"


def store_reviews(
    session: Session, reviewer: str, events: Sequence[Any], *, blind: bool, run_id: int
) -> tuple[Answers, bool]:
    """Store a person's reviews of a run's groups. Returns the answer to each event by its id, and
    whether a text was edited. Does not commit."""
    answers: Answers = {}
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
            answers[event] = None
            edited |= entry.get("kind") == "edit"
        except InfError as error:
            answers[event] = error
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
        raise BadInput(
            "the event's id is too long",
            "reload the page and review the group again",
            code="event_id_too_long",
        )
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
        raise BadInput(
            f"unknown kind of review: {str(kind)[:40]!r}",
            "reload the page and review the group again",
            code="review_kind_unknown",
        )


def _not_in_queue(group_id: int) -> Refused:
    """The refusal of whatever is sent about a group that the reviewer may not see."""
    return Refused(
        f"group {group_id} is not in your queue",
        "reload the page and choose a group from the list",
        code="group_not_in_queue",
    )


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
            "reload the page to see it",
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
        raise BadInput(
            "the edit contains no texts",
            "change a text, or approve or reject the group",
            code="edit_empty",
        )
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
            f"the review's {name} is not an integer: {value!r:.40}",
            "reload the page and review the group again",
            code="review_value_invalid",
        )
    return int(str(value).partition(".")[0])
