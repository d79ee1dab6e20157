"""The review queue: which groups a person reviews next, and bulk reviews by a filter.

Note: an annotator reviews blind, unless the run's curator allows verdicts: kept and dropped groups
are then mixed, and only complete ones are listed, since a group without its triplets was dropped. A
group of which the person may judge an item is not shown to them (`db.assignment.hidden`): they
would see which passage is which.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from db.assignment.hidden import hidden_pair
from db.errors import BadInput, Refused
from db.people.audit import record_audit
from db.run.groups import complete_groups, matching_groups
from db.tables import Group, Review, Run, utc_now

CHUNK = 1000


@dataclass(frozen=True)
class QueueFilter:
    """Filter of a run's groups: verdict, drop reason, source, review ("none": unreviewed), text."""

    run_id: int
    verdict: str | None = None
    reason: str | None = None
    source: str | None = None
    review: str | None = None
    search: str | None = None


def queued_groups(
    session: Session,
    wanted: QueueFilter,
    *,
    reviewer: str,
    blind: bool,
    limit: int,
    passed_over: Sequence[int] = (),
) -> tuple[list[int], int]:
    """The next groups for a person, and how many there are; `passed_over` come last.

    Raises Refused if a blind reviewer filters by verdict.
    """
    if blind and (wanted.verdict or wanted.reason):
        raise Refused("this run is reviewed without verdicts")
    query = _reviewable_by(session, wanted, reviewer=reviewer, blind=blind)
    total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    ahead = query.where(Group.id.not_in(passed_over)) if passed_over else query
    ids = list(session.scalars(ahead.order_by(Group.id).limit(limit)))
    if len(ids) < limit and passed_over:
        later = query.where(Group.id.in_(passed_over)).order_by(Group.id)
        ids += session.scalars(later.limit(limit - len(ids)))
    return ids, total


def can_review(session: Session, group_id: int, *, reviewer: str, blind: bool) -> bool:
    """Whether the group may be shown to this person for a review."""
    group = session.get(Group, group_id)
    if group is None:
        return False
    query = _reviewable_by(session, QueueFilter(group.run_id), reviewer=reviewer, blind=blind)
    return session.scalar(query.where(Group.id == group_id)) is not None


def _reviewable_by(
    session: Session, wanted: QueueFilter, *, reviewer: str, blind: bool
) -> Select[int]:
    query = matching_groups(
        wanted.run_id,
        verdict=wanted.verdict,
        reason=wanted.reason,
        source=wanted.source,
        review=wanted.review,
        search=wanted.search,
        without=hidden_pair(session, reviewer, Group.pair_id),
    ).where(Group.verdict.is_not(None))
    if blind:
        query = query.where(Group.id.in_(complete_groups()))
    return query


def count_matching(session: Session, wanted: QueueFilter, *, reviewer: str) -> int:
    """How many finished groups match the filter and are not hidden from the reviewer."""
    query = _reviewable_by(session, wanted, reviewer=reviewer, blind=False)
    return session.scalar(select(func.count()).select_from(query.subquery())) or 0


def review_in_bulk(
    session: Session,
    wanted: QueueFilter,
    action: str,
    *,
    expected: int,
    reviewed_by: str,
    reason: str = "",
) -> int:
    """Approve or reject every group that matches the filter and is not hidden from the reviewer.

    Returns how many: a count of hidden groups by verdict or text would be their answer.
    `expected` is the number the user confirmed. Raises Refused if it has changed since, BadInput
    for no groups, an unknown action, or a reject without a reason. Does not commit.
    """
    if action not in ("approve", "reject"):
        raise BadInput(f"{action!r} is not a bulk action: approve or reject")
    if action == "reject" and not reason.strip():
        raise BadInput("a reject needs a reason: what is wrong with the groups?")
    query = _reviewable_by(session, wanted, reviewer=reviewed_by, blind=False)
    ids = list(session.scalars(query.order_by(Group.id)))
    if len(ids) != expected:
        raise Refused(
            f"the filter matches {len(ids):,} groups now, not the confirmed {expected:,}: try again"
        )
    if not ids:
        raise BadInput("the filter matches no group")
    now = utc_now()
    try:
        for start in range(0, len(ids), CHUNK):
            part = ids[start : start + CHUNK]
            session.execute(
                update(Review)
                .where(Review.group_id.in_(part), Review.is_current)
                .values(is_current=False)
            )
            session.execute(
                insert(Review),
                [
                    {
                        "group_id": group_id,
                        "action": action,
                        "reason": reason.strip() if action == "reject" else "",
                        "before": {},
                        "after": {},
                        "reviewed_by": reviewed_by,
                        "is_current": True,
                        "created_at": now,
                    }
                    for group_id in part
                ],
            )
    except IntegrityError as error:
        raise Refused(
            "another person reviewed one of these groups at the same moment: check again"
        ) from error
    conditions = {name: value for name, value in vars(wanted).items() if value and name != "run_id"}
    subject = f"run {wanted.run_id}"
    record_audit(
        session, reviewed_by, f"review.bulk_{action}", subject, groups=len(ids), filter=conditions
    )
    return len(ids)


def show_verdicts(session: Session, run_id: int, shown: bool, *, actor: str) -> None:
    """Set whether annotators who review the run's groups see verdicts. Does not commit."""
    session.get_one(Run, run_id).verdicts_shown = shown
    session.flush()
    record_audit(session, actor, "review.verdicts", f"run {run_id}", shown=shown)
