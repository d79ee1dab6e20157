"""Reviews: a person approves, rejects or edits a group. Append-only; the newest is current.

An edit writes the new texts into the triplets and keeps both texts in the review (decision 3). An
edited passage becomes a new generated passage: items that were judged keep the passage they had,
and new studies get items of the next revision with the new texts.

Note: an edit is not an approval. It replaces an earlier approval or rejection, which was given to
another text; whoever finds the new text good approves it.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from db.corpus.datasets import text_sha256
from db.errors import BadInput, NotFound, Refused
from db.people.audit import record_audit
from db.run.new_items import insert_items
from db.scenarios import SCENARIOS, TEXTS, Role, places
from db.tables import Group, Item, Passage, Review, Run, Triplet, utc_now
from db.values import is_storable

# The column of a release, and where its text is stored: (role, column) of the triplets.
FIELDS: dict[str, tuple[tuple[Role, str], ...]] = {
    text.column: places(text) for text in TEXTS.values() if not text.from_source
}
FROM_THE_SOURCE = tuple(text.column for text in TEXTS.values() if text.from_source)
MAX_TEXT_CHARACTERS = 1_000_000
MAX_REASON_CHARACTERS = 10_000


def approve_group(
    session: Session, group_id: int, *, reviewed_by: str, event_id: str | None = None
) -> Review:
    """Approve a group for release. Raises NotFound, Refused. Does not commit."""
    return _record(session, group_id, "approve", reviewed_by=reviewed_by, event_id=event_id)


def reject_group(
    session: Session, group_id: int, *, reason: str, reviewed_by: str, event_id: str | None = None
) -> Review:
    """Exclude a group from releases, with a reason.

    Raises BadInput without a reason, NotFound, Refused. Does not commit.
    """
    reason = reason.strip()
    if not reason:
        raise BadInput("a reject needs a reason: what is wrong with the group?")
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
    """Replace texts of the group's triplets; `changes` by the names in FIELDS.

    Raises BadInput for an unknown field, an empty or unchanged text, NotFound, Refused for a group
    without its three triplets. Does not commit.
    """
    _check_fields(changes)
    group = _reviewable(session, group_id)
    triplets = {
        triplet.role: triplet
        for triplet in session.scalars(
            select(Triplet).where(Triplet.group_id == group_id).with_for_update()
        )
    }
    if len(triplets) < len(SCENARIOS):
        raise Refused(
            f"group {group_id} was dropped before its triplets were written: nothing to edit"
        )
    before = {name: _text(session, triplets, name) for name in changes}
    after = {name: text for name, text in changes.items() if text != before[name]}
    if not after:
        raise BadInput(f"nothing to edit: group {group_id} has exactly this text already")
    before = {name: before[name] for name in after}
    review = _record(
        session,
        group_id,
        "edit",
        reason=reason.strip(),
        before=before,
        after=after,
        reviewed_by=reviewed_by,
        event_id=event_id,
    )
    replaced: dict[int, int] = {}
    for name, text in after.items():
        for role, column in FIELDS[name]:
            triplet = triplets[role]
            if column == "passage":
                passage = _new_passage(session, group, review, role, triplet.passage_id, text)
                replaced[triplet.passage_id] = passage.id
                triplet.passage_id = passage.id
            else:
                setattr(triplet, column, text)
    session.flush()
    _renew_items(session, group_id, triplets, replaced)
    return review


def review_of_event(session: Session, event_id: str, reviewed_by: str) -> Review | None:
    """The review stored for an event, None if it never arrived.

    Raises Refused if it is another person's.
    """
    found = session.scalar(select(Review).where(Review.event_id == event_id))
    if found is not None and found.reviewed_by != reviewed_by:
        raise Refused(f"event {event_id!r} is stored for another reviewer")
    return found


def require_seen(session: Session, group_id: int, seen: int | None) -> None:
    """Raise Refused unless `seen` is the group's current review: another person may have reviewed
    or edited it since it was shown. Locks the group until the transaction ends, so that no other
    review comes between this check and the write."""
    _reviewable(session, group_id)
    current = current_review(session, group_id)
    if (current.id if current else None) != seen:
        who = f"{current.reviewed_by} reviewed" if current else "another person reviewed"
        raise Refused(f"{who} group {group_id} since it was shown to you: check it again")


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


def _check_fields(changes: Mapping[str, str]) -> None:
    if not changes:
        raise BadInput(f"nothing to edit: give a text for one of {', '.join(FIELDS)}")
    for name, text in changes.items():
        if name in FROM_THE_SOURCE:
            raise BadInput(
                f"`{name}` comes from the source and is not edited: reject the group instead"
            )
        if name not in FIELDS:
            raise BadInput(f"no field {name!r}: one of {', '.join(FIELDS)}")
        if not text.strip():
            raise BadInput(f"`{name}` would be empty: reject the group instead")
        _require_storable(f"`{name}`", text, MAX_TEXT_CHARACTERS)


def _require_storable(place: str, text: str, max_characters: int) -> None:
    if len(text) > max_characters:
        raise BadInput(f"{place} is longer than {max_characters:,} characters")
    if not is_storable(text):
        raise BadInput(f"{place} holds a NUL byte or a lone surrogate, which cannot be stored")


def _reviewable(session: Session, group_id: int) -> Group:
    group = session.get(Group, group_id, with_for_update=True, populate_existing=True)
    if group is None:
        raise NotFound(f"no group {group_id}: see the Groups page")
    if group.verdict is None:
        raise Refused(f"group {group_id} is in work: review it when its run has finished")
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
    _reviewable(session, group_id)
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
            f"another person reviewed group {group_id} at the same moment: check it again"
        ) from error
    record_audit(session, reviewed_by, f"review.{action}", f"group {group_id}", review_id=review.id)
    return review


def _text(session: Session, triplets: Mapping[str, Triplet], name: str) -> str:
    role, column = FIELDS[name][0]
    if column == "passage":
        return session.get_one(Passage, triplets[role].passage_id).text
    return str(getattr(triplets[role], column))


def _new_passage(
    session: Session, group: Group, review: Review, role: Role, edited: int, text: str
) -> Passage:
    old = session.get_one(Passage, edited)
    dataset_id = session.scalars(select(Run.dataset_id).where(Run.id == group.run_id)).one()
    passage = Passage(
        dataset_id=dataset_id,
        external_id=f"review-{review.id}-{role}",
        title=old.title,
        text=text,
        sha256=text_sha256(text),
        origin="generated",
        meta={"edited_from": old.external_id},
    )
    session.add(passage)
    session.flush()
    return passage


def _renew_items(
    session: Session, group_id: int, triplets: Mapping[str, Triplet], replaced: Mapping[int, int]
) -> None:
    """The next revision of the group's items, with the triplets' texts and passages."""
    newest: dict[str, Item] = {}
    query = select(Item).where(Item.group_id == group_id).order_by(Item.revision)
    for item in session.scalars(query):
        newest[item.scenario] = item
    rows = [
        {
            "group_id": group_id,
            "scenario": scenario,
            "revision": item.revision + 1,
            "instruction": triplets[scenario].instruction,
            "query": triplets[scenario].query,
            "candidates": [
                {**entry, "passage_id": replaced.get(entry["passage_id"], entry["passage_id"])}
                for entry in item.candidates
            ],
            "created_at": utc_now(),
        }
        for scenario, item in newest.items()
    ]
    insert_items(session, rows)
