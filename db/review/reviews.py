"""Reviews: a person approves, rejects or edits a group. Append-only; the newest is current.

An edit writes the new texts into the triplets and keeps both texts in the review (decision 3). An
edited passage becomes a new generated passage: items that were judged keep the passage they had,
and new studies get items of the next revision with the new texts. An edit that gives all texts that
a group lacks completes it; a group that lacks texts cannot be approved.

Every review is also written for the groups of other runs that have the same pair and texts
(`db.review.carrying`). Undoing one makes the review before it current again, there too.

Note: an edit is not an approval. It replaces an earlier approval or rejection, which was given to
another text; whoever finds the new text good approves it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import computed_field
from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from db.errors import BadInput, NotFound, Refused
from db.events import record_event
from db.review.carrying import copies_of, lock_pair, same_texts, spread
from db.review.texts import group_texts, missing_texts, write_texts
from db.rows import Row
from db.run.runs import get_run, require_active_run, shape_of
from db.shape import GroupText, ListText, Shape
from db.tables import Group, Judge, Review, ReviewProposal, utc_now
from db.values import is_storable

MAX_TEXT_CHARACTERS = 1_000_000
MAX_REASON_CHARACTERS = 10_000


class ReviewRow(Row):
    """A review; `before` and `after`: the texts that an edit changed. A newer one of the group, or
    its undoing, makes it not current. `carried_from`: the review that it is a copy of."""

    id: int
    group_id: int
    action: str
    reason: str
    before: dict[str, str]
    after: dict[str, str]
    reviewed_by: str
    created_at: datetime
    is_current: bool
    carried_from: int | None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def name(self) -> str:
        """What was done to which group."""
        return f"{self.action} group {self.group_id}"


def approve_group(
    session: Session, group_id: int, *, reviewed_by: str, event_id: str | None = None
) -> Review:
    """Approve a group for release, also one that the filter dropped.

    Raises NotFound, Refused for one that lacks texts. Does not commit.
    """
    shape = shape_of(session, _reviewable(session, group_id).run_id)
    missing = missing_texts(shape, group_texts(session, [group_id])[group_id])
    if missing:
        raise Refused(
            f"group {group_id} lacks {_named(missing)}",
            "write the missing texts first, then approve",
            code="group_incomplete",
        )
    return _record(session, group_id, "approve", reviewed_by=reviewed_by, event_id=event_id)


def reject_group(
    session: Session, group_id: int, *, reason: str, reviewed_by: str, event_id: str | None = None
) -> Review:
    """Exclude a group from releases, with a reason.

    Raises BadInput without a reason, NotFound, Refused. Does not commit.
    """
    reason = reason.strip()
    if not reason:
        raise BadInput(
            "a reject needs a reason: what is wrong with the group?",
            "Give `reason=`",
            code="reject_needs_reason",
        )
    _require_storable("the reason", reason, MAX_REASON_CHARACTERS)
    return _record(
        session, group_id, "reject", reason=reason, reviewed_by=reviewed_by, event_id=event_id
    )


def edit_group(
    session: Session,
    group_id: int,
    changes: Mapping[str, str],
    *,
    reviewed_by: str,
    reason: str = "",
    event_id: str | None = None,
) -> Review:
    """Replace texts of the group; `changes` by the fields of the run's shape (`Shape.fields`).

    Of a group that lacks texts all missing ones have to be given: they complete it. To a list a
    text is added at a number that the group has not; an empty one takes it out.

    Raises BadInput for an unknown field, an empty, unchanged or missing text, NotFound, Refused.
    Does not commit.
    """
    shape = shape_of(session, _reviewable(session, group_id).run_id)
    _check_fields(shape, changes)
    known = group_texts(session, [group_id])[group_id]
    missing = [text for text in missing_texts(shape, known) if text.column not in changes]
    if missing:
        raise BadInput(
            f"group {group_id} lacks {_named(missing)}, too",
            "write all missing texts",
            code="group_incomplete",
        )
    _check_lists(shape, group_id, known, changes)
    after = {name: text for name, text in changes.items() if text != known.get(name)}
    if not after:
        raise BadInput(
            f"nothing to edit: group {group_id} has exactly this text already",
            "change a text, or approve the group",
            code="edit_without_change",
        )
    return _record(
        session,
        group_id,
        "edit",
        reason=reason.strip(),
        before={name: known[name] for name in after if name in known},
        after=after,
        reviewed_by=reviewed_by,
        event_id=event_id,
    )


def undo_review(session: Session, group_id: int, *, reviewed_by: str) -> Review:
    """Take back the group's current review, which has to be this person's; returns it.

    The review before it is current again, or none; texts of an edit are as before it. Raises
    NotFound, Refused. Does not commit.
    """
    group = _reviewable(session, group_id)
    lock_pair(session, group)
    review = current_review(session, group_id)
    if review is None:
        raise Refused(f"group {group_id} has no review to undo", code="group_review_missing")
    if review.reviewed_by != reviewed_by:
        raise Refused(
            f"{review.reviewed_by} reviewed group {group_id} since: nothing was undone",
            "reload the page to see it",
            code="group_review_newer",
        )
    fields = shape_of(session, group.run_id).fields
    added = (fields[name][0] for name in set(review.after) - set(review.before) if name in fields)
    if not all(isinstance(text, ListText) for text in added):
        raise Refused(
            f"the texts that completed group {group_id} stay",
            "edit them, or reject the group",
            code="completed_texts_stay",
        )
    for one in [review, *copies_of(session, review)]:
        _take_back(session, one)
    record_event(session, reviewed_by, "review.undo", ("group", group_id), review_id=review.id)
    return review


def undo_bulk(session: Session, run_id: int, bulk: str, *, reviewed_by: str) -> int:
    """Take back those reviews of a bulk that are still current; returns how many. Does not commit.

    `bulk` is the name it was given (`db.review.queue.review_in_bulk`). Raises Refused for none.
    """
    require_active_run(session, get_run(session, run_id))
    query = (
        select(Review)
        .join(Group, Group.id == Review.group_id)
        .where(
            Group.run_id == run_id,
            Review.is_current,
            Review.reviewed_by == reviewed_by,
            Review.event_id.startswith(f"bulk:{reviewed_by}/{bulk}/", autoescape=True),
        )
        .order_by(Review.id)
    )
    found = list(session.scalars(query))
    if not found:
        raise Refused(
            "none of these reviews is current any more: nothing was undone",
            code="reviews_outdated",
        )
    for review in found:
        for one in [review, *copies_of(session, review)]:
            _take_back(session, one)
    record_event(session, reviewed_by, "review.bulk_undo", ("run", run_id), groups=len(found))
    return len(found)


def review_of_event(session: Session, event_id: str, reviewed_by: str) -> Review | None:
    """The review stored for an event, None if it never arrived.

    Raises Refused if it is another person's.
    """
    found = session.scalar(select(Review).where(Review.event_id == event_id))
    if found is not None and found.reviewed_by != reviewed_by:
        raise Refused(
            f"event {event_id!r} is stored for another reviewer",
            code="event_of_another_reviewer",
        )
    return found


def require_seen(session: Session, group_id: int, seen: int | None) -> None:
    """Raise Refused unless `seen` is the group's current review: another person may have reviewed
    or edited it since it was shown. Locks the group until the transaction ends, so that no other
    review comes between this check and the write."""
    _reviewable(session, group_id)
    current = current_review(session, group_id)
    if (current.id if current else None) != seen:
        who = f"{current.reviewed_by} reviewed" if current else "another person reviewed"
        raise Refused(
            f"{who} group {group_id} since it was shown to you",
            "check it again",
            code="group_changed",
        )


def current_review(session: Session, group_id: int) -> Review | None:
    """The current review, None for an unreviewed group."""
    return session.scalar(select(Review).where(Review.group_id == group_id, Review.is_current))


def count_reviews(session: Session, run_id: int) -> dict[str, int]:
    """How many groups of a run are approved, rejected and edited now."""
    query = (
        select(Review.action, func.count())
        .join(Group, Group.id == Review.group_id)
        .where(Group.run_id == run_id, Review.is_current)
        .group_by(Review.action)
    )
    return {action: int(number) for action, number in session.execute(query)}


def _check_fields(shape: Shape, changes: Mapping[str, str]) -> None:
    names = ", ".join(shape.editable)
    if not changes:
        raise BadInput("nothing to edit", f"give a text for one of {names}", code="edit_empty")
    for name, text in changes.items():
        if name in shape.columns and name not in shape.editable:
            raise BadInput(
                f"`{name}` comes from the source and is not edited",
                "reject the group instead",
                code="field_not_editable",
            )
        if name not in shape.editable:
            raise BadInput(f"no field {name!r}", f"one of {names}", code="field_unknown")
        if not text and isinstance(shape.fields[name][0], ListText):
            continue
        if not text.strip():
            raise BadInput(
                f"`{name}` would be empty", "reject the group instead", code="field_empty"
            )
        _require_storable(f"`{name}`", text, MAX_TEXT_CHARACTERS)


def _check_lists(
    shape: Shape, group_id: int, known: Mapping[str, str], changes: Mapping[str, str]
) -> None:
    """Raise BadInput where a text is taken out that is not there, or too many of them, and where a
    negative of the pair is written."""
    for field, value in changes.items():
        text = shape.fields[field][0]
        if not isinstance(text, ListText):
            continue
        if value and text.from_source:
            raise BadInput(
                f"`{field}` comes from the source and is not edited",
                "take it out with an empty text, or import another one with its pair",
                code="field_not_editable",
            )
        if not value and field not in known:
            raise BadInput(
                f"group {group_id} has no `{field}`: it was dropped, or was never written",
                "take out a text that the group has",
                code="field_not_in_group",
            )
        after = {**known, **changes}
        left = sum(bool(after.get(each)) for each, (of, _) in shape.fields.items() if of == text)
        if not value and left < text.at_least:
            raise BadInput(
                f"group {group_id} would have {left} of the {text.at_least} texts of "
                f"{text.sign} that it needs",
                "reject the group instead",
                code="list_too_short",
            )


def _require_storable(place: str, text: str, max_characters: int) -> None:
    if len(text) > max_characters:
        raise BadInput(
            f"{place} is longer than {max_characters:,} characters",
            "shorten it",
            code="text_too_long",
        )
    if not is_storable(text):
        raise BadInput(
            f"{place} holds a NUL byte or a lone surrogate, which cannot be stored",
            "change it",
            code="text_invalid",
        )


def _reviewable(session: Session, group_id: int) -> Group:
    group = session.get(Group, group_id, with_for_update=True, populate_existing=True)
    if group is None:
        raise NotFound(f"no group {group_id}", "see the Groups page", code="group_unknown")
    if group.verdict is None:
        raise Refused(
            f"group {group_id} is in work",
            "review it when its run has finished",
            code="group_in_progress",
        )
    require_active_run(session, get_run(session, group.run_id))
    return group


def _record(
    session: Session,
    group_id: int,
    action: str,
    *,
    reviewed_by: str,
    reason: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    event_id: str | None = None,
) -> Review:
    group = _reviewable(session, group_id)
    lock_pair(session, group)
    same = same_texts(session, [group_id]).get(group_id, [])
    session.execute(
        update(Review)
        .where(Review.group_id == group_id, Review.is_current)
        .values(is_current=False)
    )
    review = Review(
        group_id=group_id,
        action=action,
        reason=reason,
        before=before or {},
        after=after or {},
        reviewed_by=reviewed_by,
        event_id=event_id,
    )
    session.add(review)
    try:
        session.flush()
    except IntegrityError as error:
        raise Refused(
            f"another person reviewed group {group_id} at the same moment",
            "check it again",
            code="group_reviewed_concurrently",
        ) from error
    if review.after:
        write_texts(session, group, f"review-{review.id}", review.after)
    spread(session, review, same)
    record_event(session, reviewed_by, f"review.{action}", ("group", group_id), review_id=review.id)
    return review


def _take_back(session: Session, review: Review) -> None:
    """Undo one review, which is current: its predecessor is current, its texts are as before."""
    review.is_current, review.undone_at = False, utc_now()
    session.flush()
    previous = session.scalars(
        select(Review)
        .where(
            Review.group_id == review.group_id,
            Review.id < review.id,
            Review.undone_at.is_(None),
        )
        .order_by(Review.id.desc())
    ).first()
    if previous is not None:
        previous.is_current = True
    session.flush()
    if review.after:
        group = session.get_one(Group, review.group_id)
        before = {name: review.before.get(name, "") for name in review.after}
        write_texts(session, group, f"undo-{review.id}", before)


def _named(texts: Sequence[GroupText]) -> str:
    return ", ".join(text.sign for text in texts)


# Reviews that agents propose: what a judge of kind model would decide, and a person reviews.
class ProposalRow(Row):
    """A review that an agent proposes, a judge of kind model; no review of its own."""

    id: int
    group_id: int
    action: str
    reason: str
    judge: str
    created_at: datetime


def add_proposal(
    session: Session, group_id: int, judge: Judge, *, action: str, reason: str
) -> ReviewProposal:
    """Add a proposal; it takes the place of an earlier one of the judge. Does not commit."""
    row = ReviewProposal(group_id=group_id, judge_id=judge.id, action=action, reason=reason)
    session.add(row)
    session.flush()
    return row


def proposals_of(session: Session, group_id: int) -> Sequence[ProposalRow]:
    """The newest proposal of each judge about a group, the oldest first."""
    query = (
        select(Judge.name, ReviewProposal)
        .join(Judge, Judge.id == ReviewProposal.judge_id)
        .where(ReviewProposal.group_id == group_id)
        .order_by(ReviewProposal.id)
    )
    newest = dict(session.execute(query).all())
    rows = sorted(newest.items(), key=lambda each: each[1].id)
    return [ProposalRow.of(row, judge=name) for name, row in rows]
