"""The groups of a run as a person may list and review them, and bulk reviews by a filter.

Note: an annotator reviews blind, unless the run's curator allows verdicts: kept and dropped groups
are then mixed, and only complete ones are listed, since a group that lacks texts was dropped. A
group of which the person may judge an item is not shown to them (`db.assignment.hidden`): they
would see which passage is which.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Select, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from db.assignment.hidden import hidden_pair
from db.errors import BadInput, Refused
from db.events import record_event
from db.requests import Request, option
from db.review.carrying import replace_reviews, same_texts
from db.run.groups import (
    STATUSES,
    UNFINISHED,
    GroupPage,
    is_complete,
    matching_groups,
    page_of_groups,
)
from db.run.runs import STAGES, drop_reasons, get_run, require_active_run, shape_of
from db.run.versions import reasons_of, verdicts_of
from db.store.bulk import Row
from db.tables import Group, Review, Run, utc_now
from db.values import Verdict

CHUNK = 1000
REVIEW_STATES = ("none", "approve", "reject", "edit")


class QueueFilter(Request):
    """Which groups of a run are listed, or reviewed at once: all of them, or those that match."""

    run_id: int = option(..., "Id of the run.", names=(), metavar="RUN_ID")
    verdict: Verdict | None = option(None, "Only kept or only dropped groups.")
    reason: str | None = option(
        None, "Only groups dropped for this reason.", names=("--drop-reason",)
    )
    verdict_version: int | None = option(
        None, "With the verdicts of this version; default: what the run uses.", ge=1
    )
    stage: str | None = option(None, "Only groups that ended at this stage.", choices=STAGES)
    source: str | None = option(None, "Only groups whose pair is of this source.")
    review: str | None = option(
        None,
        "Only groups of this review status; none: not reviewed.",
        names=("--review", "--reviewed"),
        choices=REVIEW_STATES,
    )
    status: str | None = option(
        None,
        "Only groups that are not finished, are in a release, or trained a model.",
        choices=STATUSES,
    )
    search: str | None = option(None, "Only groups with this text in the query or an instruction.")
    in_passages: bool = option(False, "Search the passages, too.")
    ids: tuple[int, ...] | None = option(None, "Only these groups.", names=())


@dataclass(frozen=True)
class BulkPreview:
    """What a bulk review would change: groups by their current review ("none": unreviewed), of
    which the filter dropped `dropped`; `left_out` lack texts and cannot be approved."""

    groups: int
    by_review: dict[str, int]
    dropped: int
    left_out: int


def listed_groups(
    session: Session,
    wanted: QueueFilter,
    *,
    viewer: str | None,
    blind: bool,
    offset: int,
    limit: int | None,
) -> GroupPage:
    """A page of the finished groups that match and are not hidden from the viewer, and their total.

    Groups in work: by their status only, or without a viewer, for a program. Blind, rows are
    without verdict, reason, stage, state and whether texts are missing. Raises Refused for a blind
    filter by any of these.
    """
    reveals = (wanted.verdict, wanted.reason, wanted.stage, wanted.status, wanted.verdict_version)
    if blind and any(reveals):
        raise Refused(
            "this run is reviewed without verdicts",
            "leave out the filter by verdict or status",
            code="run_without_verdicts",
        )
    query = _reviewable_by(session, wanted, reviewer=viewer, blind=blind)
    found = page_of_groups(
        session,
        query,
        is_search=bool(wanted.search),
        offset=offset,
        limit=limit,
        held=verdicts_of(session, wanted.run_id, wanted.verdict_version),
    )
    if blind:
        unseen = {
            "verdict": None,
            "drop_reason": None,
            "stage": "",
            "state": "",
            "is_complete": True,
        }
        return GroupPage([row.model_copy(update=unseen) for row in found.rows], found.total)
    return found


def list_reviews(
    session: Session,
    run_id: int,
    *,
    viewer: str | None,
    blind: bool,
    offset: int = 0,
    limit: int | None = None,
) -> tuple[list[Review], int]:
    """Reviews of a run's groups that are listed for the viewer, newest first, and how many.

    With those that a newer one replaced, which are never overwritten.
    """
    groups = _reviewable_by(session, QueueFilter(run_id=run_id), reviewer=viewer, blind=blind)
    query = select(Review).where(Review.group_id.in_(groups))
    total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    page = query.order_by(Review.id.desc()).offset(offset).limit(limit)
    return list(session.scalars(page)), total


def place_in_list(
    session: Session, wanted: QueueFilter, group_id: int, *, viewer: str | None, blind: bool
) -> int | None:
    """How many groups of the filter come before this one; None if it is not among them."""
    query = _reviewable_by(session, wanted, reviewer=viewer, blind=blind)
    if session.scalar(query.where(Group.id == group_id)) is None:
        return None
    before = query.where(Group.id < group_id).subquery()
    return session.scalar(select(func.count()).select_from(before)) or 0


def can_review(session: Session, group_id: int, *, reviewer: str | None, blind: bool) -> bool:
    """Whether the group may be shown to this person for a review."""
    group = session.get(Group, group_id)
    return group is not None and bool(
        reviewable(session, group.run_id, [group_id], reviewer=reviewer, blind=blind)
    )


def reviewable(
    session: Session,
    run_id: int,
    group_ids: Collection[int],
    *,
    reviewer: str | None,
    blind: bool,
    in_work: bool = False,
) -> set[int]:
    """Those of these groups that are of the run and may be shown to this person for a review; with
    `in_work` also those that are not finished."""
    wanted = QueueFilter(run_id=run_id)
    query = _reviewable_by(session, wanted, reviewer=reviewer, blind=blind, in_work=in_work)
    return set(session.scalars(query.where(Group.id.in_(group_ids))))


def _reviewable_by(
    session: Session,
    wanted: QueueFilter,
    *,
    reviewer: str | None,
    blind: bool,
    in_work: bool = False,
) -> Select[int]:
    query = matching_groups(
        wanted.run_id,
        verdict=wanted.verdict,
        reason=wanted.reason,
        source=wanted.source,
        review=wanted.review,
        status=wanted.status,
        search=wanted.search,
        stage=wanted.stage,
        in_passages=wanted.in_passages,
        held=verdicts_of(session, wanted.run_id, wanted.verdict_version),
        without=None if reviewer is None else hidden_pair(session, reviewer, Group.pair_id),
    )
    if reviewer is not None and not in_work and wanted.status != UNFINISHED:
        query = query.where(Group.verdict.is_not(None))
    if blind:
        query = query.where(is_complete(shape_of(session, wanted.run_id)))
    if wanted.ids is not None:
        query = query.where(Group.id.in_(wanted.ids))
    return query


def _reviewed_by(session: Session, wanted: QueueFilter, action: str, reviewer: str) -> Select[int]:
    query = _reviewable_by(session, wanted, reviewer=reviewer, blind=False)
    query = query.where(Group.verdict.is_not(None))
    if action != "approve":
        return query
    return query.where(is_complete(shape_of(session, wanted.run_id)))


def require_drop_reason(session: Session, wanted: QueueFilter) -> None:
    """Raise BadInput if the filter's drop reason is none of the run's."""
    known: Sequence[str] = ()
    if wanted.reason is not None:
        known = drop_reasons(session, wanted.run_id)
        if wanted.verdict_version is not None:
            known = reasons_of(session, wanted.run_id, wanted.verdict_version)
    if wanted.reason is not None and wanted.reason not in known:
        raise BadInput(
            f"run {wanted.run_id} has no drop reason {wanted.reason!r}: "
            f"{', '.join(known) or 'no groups were dropped'}",
            "name one of these",
            code="drop_reason_unknown",
        )


def count_matching(
    session: Session, wanted: QueueFilter, *, reviewer: str, action: str = ""
) -> int:
    """How many finished groups match the filter and are not hidden from the reviewer; those that
    lack texts do not count for an `action` "approve"."""
    query = _reviewed_by(session, wanted, action, reviewer)
    return session.scalar(select(func.count()).select_from(query.subquery())) or 0


def preview_bulk(
    session: Session, wanted: QueueFilter, action: str, *, reviewer: str
) -> BulkPreview:
    """What `review_in_bulk` would change now."""
    chosen = _reviewed_by(session, wanted, action, reviewer)
    rows = session.execute(
        select(Review.action, Group.verdict, func.count())
        .select_from(Group)
        .outerjoin(Review, (Review.group_id == Group.id) & Review.is_current)
        .where(Group.id.in_(chosen))
        .group_by(Review.action, Group.verdict)
    ).all()
    by_review: dict[str, int] = {}
    for review, _, number in rows:
        name = review or "none"
        by_review[name] = by_review.get(name, 0) + number
    groups = sum(by_review.values())
    return BulkPreview(
        groups=groups,
        by_review=by_review,
        dropped=sum(number for _, verdict, number in rows if verdict == "dropped"),
        left_out=count_matching(session, wanted, reviewer=reviewer) - groups,
    )


def review_in_bulk(
    session: Session,
    wanted: QueueFilter,
    action: str,
    *,
    expected: int,
    reviewed_by: str,
    reason: str = "",
    bulk: str = "",
) -> int:
    """Approve or reject every group that matches the filter and is not hidden from the reviewer.

    Groups that lack texts are not approved. `bulk` is a name by which all can be undone.

    Returns how many: a count of hidden groups by verdict or text would be their answer.
    `expected` is the number the user confirmed. Raises Refused if it has changed since, BadInput
    for no groups, an unknown action, or a reject without a reason. Does not commit.
    """
    if action not in ("approve", "reject"):
        raise BadInput(
            f"{action!r} is not a bulk action", "approve or reject", code="bulk_action_unknown"
        )
    if action == "reject" and not reason.strip():
        raise BadInput(
            "a reject needs a reason: what is wrong with the groups?",
            "Give `reason=`",
            code="reject_needs_reason",
        )
    require_active_run(session, get_run(session, wanted.run_id))
    query = _reviewed_by(session, wanted, action, reviewed_by)
    ids = list(session.scalars(query.order_by(Group.id)))
    if len(ids) != expected:
        raise Refused(
            f"the filter matches {len(ids):,} groups now, not the confirmed {expected:,}",
            "try again",
            code="filter_matches_changed",
        )
    if not ids:
        raise BadInput(
            "the filter matches no group", "choose a wider filter", code="filter_matches_nothing"
        )
    shared: Row = {
        "action": action,
        "reason": reason.strip() if action == "reject" else "",
        "before": {},
        "after": {},
        "reviewed_by": reviewed_by,
        "is_current": True,
        "created_at": utc_now(),
    }
    try:
        for start in range(0, len(ids), CHUNK):
            _review_part(session, ids[start : start + CHUNK], shared, bulk)
    except IntegrityError as error:
        raise Refused(
            "another person reviewed one of these groups at the same moment",
            "check again",
            code="group_reviewed_concurrently",
        ) from error
    conditions = {name: value for name, value in vars(wanted).items() if value and name != "run_id"}
    record_event(
        session,
        reviewed_by,
        f"review.bulk_{action}",
        ("run", wanted.run_id),
        groups=len(ids),
        filter=conditions,
    )
    return len(ids)


def _review_part(session: Session, ids: Sequence[int], shared: Row, bulk: str) -> None:
    """Write the review for these groups, and for those of other runs with the same texts."""
    same = same_texts(session, ids)
    name = f"bulk:{shared['reviewed_by']}/{bulk}/"
    made = replace_reviews(
        session,
        [
            {
                **shared,
                "group_id": each,
                "event_id": f"{name}{each}" if bulk else None,
                "carried_from": None,
            }
            for each in ids
        ],
    )
    copies = [
        {**shared, "group_id": other, "event_id": None, "carried_from": review_id}
        for each, review_id in zip(ids, made, strict=True)
        for other in same.get(each, ())
    ]
    for start in range(0, len(copies), CHUNK):
        replace_reviews(session, copies[start : start + CHUNK])


def show_verdicts(session: Session, run_id: int, shown: bool, *, actor: str) -> None:
    """Set whether annotators who review the run's groups see verdicts. Does not commit."""
    session.get_one(Run, run_id).verdicts_shown = shown
    session.flush()
    record_event(session, actor, "review.verdicts", ("run", run_id), shown=shown)
