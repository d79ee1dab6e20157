"""Reviews: approve, reject and edit groups, one or all of a filter; let their validator check."""

from collections.abc import Sequence
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.access.identity import Actor, TokenHolder
from app.operations.acting import Launch, reading, writing
from app.operations.groups import standing
from curation.judging.request import (
    JudgeStart,
    ReviewMany,
    ReviewPropose,
    ReviewSet,
    VerdictsShown,
)
from curation.run.revalidation import check_edit
from db.assignment.hidden import require_visible
from db.errors import BadInput, NotFound, Refused
from db.events import record_event
from db.review import queue
from db.review.queue import BulkPreview
from db.review.reviews import (
    ProposalRow,
    ReviewRow,
    add_proposal,
    approve_group,
    edit_group,
    reject_group,
)
from db.review.reviews import undo_bulk as undo_reviews
from db.rows import Listed, Row
from db.run.group_detail import get_group
from db.run.runs import get_run
from db.study.judgments import get_or_create_judge
from db.tables import Group, Review

RIGHT, RIGHT_OF_MANY = "review", "review_many"
MAX_SELECTED = 2000
T = TypeVar("T")


class BulkReview(Row):
    """A review of all groups of a run that match a filter, and whether it was `done`."""

    run_id: int
    action: str
    groups: int
    done: bool


class VerdictsNow(Row):
    """Whether people who review a run see its verdicts."""

    run_id: int
    verdicts_shown: bool


def list_some(
    actor: Actor, run_id: int, *, limit: int | None = None, offset: int = 0
) -> Listed[ReviewRow]:
    """List the reviews of a run's groups, newest first, those that were replaced, too.

    Raises NotFound.
    """
    with reading(actor, "groups") as session:
        here = standing(session, actor, run_id)
        found, total = queue.list_reviews(
            session, run_id, viewer=here.viewer, blind=here.blind, offset=offset, limit=limit
        )
        rows = [ReviewRow.model_validate(each) for each in found]
    return Listed[ReviewRow].page(rows, offset=offset, total=total)


def show(actor: Actor, review_id: int) -> ReviewRow:
    """Show one review, and what an edit changed.

    Raises NotFound, also where its group is hidden from the actor.
    """
    with reading(actor, "groups") as session:
        query = select(Review, Group).join(Group, Group.id == Review.group_id)
        found = session.execute(query.where(Review.id == review_id)).one_or_none()
        here = None if found is None else standing(session, actor, found.Group.run_id)
        if (
            found is None
            or here is None
            or not queue.can_review(session, found.Group.id, reviewer=here.viewer, blind=here.blind)
        ):
            raise NotFound(
                f"no review {review_id}",
                "`reviews list RUN` lists them",
                code="review_unknown",
            )
        return ReviewRow.model_validate(found.Review)


def set_one(actor: Actor, wanted: ReviewSet) -> ReviewRow:
    """Approve, reject (with a reason) or edit a group.

    The blind rules hold but for the store's owner: a group that the actor may still judge, or that
    blind reviewers do not see, is refused as one that is not there. Raises BadInput, NotFound.
    """
    group_id, reason, changes = wanted.group_id, wanted.reason, wanted.changes
    with writing(actor, RIGHT) as session:
        _require_in_queue(session, actor, group_id)
        if wanted.action == "approve":
            made = approve_group(session, group_id, reviewed_by=actor.name)
        elif wanted.action == "reject":
            made = reject_group(session, group_id, reason=reason, reviewed_by=actor.name)
        else:
            check_edit(session, group_id, changes)
            made = edit_group(session, group_id, changes, reviewed_by=actor.name, reason=reason)
        return ReviewRow.model_validate(made)


def propose(actor: Actor, wanted: ReviewPropose) -> ProposalRow:
    """Propose a review, which a person decides: what an agent would do, as a judge of kind model.

    The blind rules hold as for a review. Raises NotFound, Refused.
    """
    program = actor.token if isinstance(actor, TokenHolder) else actor.name
    with writing(actor, RIGHT) as session:
        _require_in_queue(session, actor, wanted.group_id)
        get_group(session, wanted.group_id)
        judge = get_or_create_judge(session, f"agent:{program}", kind="model", provider="agent")
        made = add_proposal(
            session, wanted.group_id, judge, action=wanted.action, reason=wanted.reason
        )
        of = ("group", wanted.group_id)
        record_event(session, actor.name, "review.propose", of, judge=judge.name, id=made.id)
        return ProposalRow.of(made, judge=judge.name)


def count(actor: Actor, wanted: ReviewMany) -> int:
    """How many groups a bulk review would change. Raises NotFound, BadInput for a drop reason that
    the run does not have."""
    with reading(actor, RIGHT_OF_MANY) as session:
        get_run(session, wanted.run_id)
        queue.require_drop_reason(session, wanted)
        return queue.count_matching(session, wanted, reviewer=actor.name, action=wanted.action)


def preview(actor: Actor, wanted: ReviewMany) -> BulkPreview:
    """What a bulk review would change, without groups that are hidden from the actor."""
    with reading(actor, RIGHT_OF_MANY) as session:
        return queue.preview_bulk(session, wanted, wanted.action, reviewer=actor.name)


def bulk(actor: Actor, wanted: ReviewMany) -> BulkReview:
    """Review all groups that match, each for itself, if they are as many as `expected`.

    With a `mark`, `undo_bulk` finds them again. Raises as `review_in_bulk`, BadInput where no
    number is expected.
    """
    if wanted.expected is None:
        raise BadInput(
            "the number of groups that match is missing",
            "give `expected=` as `count` says it",
            code="request_invalid",
        )
    with writing(actor, RIGHT_OF_MANY) as session:
        groups = queue.review_in_bulk(
            session,
            wanted,
            wanted.action,
            expected=wanted.expected,
            reviewed_by=actor.name,
            reason=wanted.because,
            bulk=wanted.mark,
        )
    return BulkReview(run_id=wanted.run_id, action=wanted.action, groups=groups, done=True)


def reject_selected(actor: Actor, group_ids: Sequence[int], reason: str) -> int:
    """Reject the groups of a selection, all of them or none; returns how many.

    Raises Refused where one is hidden from the actor, BadInput without a reason, for more than
    MAX_SELECTED.
    """
    if len(group_ids) > MAX_SELECTED:
        raise BadInput(
            f"{len(group_ids):,} groups: at most {MAX_SELECTED:,} at once",
            "select fewer",
            code="groups_too_many",
        )
    with writing(actor, RIGHT_OF_MANY) as session:
        for group_id in group_ids:
            require_visible(session, group_id, actor.name)
            reject_group(session, group_id, reason=reason.strip(), reviewed_by=actor.name)
        number = len(group_ids)
        record_event(session, actor.name, "coverage.reject", str(number), reason=reason.strip())
    return number


def undo_bulk(actor: Actor, run_id: int, mark: str) -> int:
    """Undo those of the reviews with this mark that are still current. Returns how many."""
    with writing(actor, RIGHT_OF_MANY) as session:
        return undo_reviews(session, run_id, mark, reviewed_by=actor.name)


def verdicts(actor: Actor, wanted: VerdictsShown) -> VerdictsNow:
    """Show or hide a run's verdicts for annotators; without an option, show the setting.

    Raises NotFound.
    """
    run_id, shown = wanted.run_id, wanted.shown
    if shown is None:
        with reading(actor, RIGHT) as session:
            shown = get_run(session, run_id).verdicts_shown
            return VerdictsNow(run_id=run_id, verdicts_shown=shown)
    with writing(actor, "show_verdicts") as session:
        get_run(session, run_id)
        queue.show_verdicts(session, run_id, shown, actor=actor.name)
    return VerdictsNow(run_id=run_id, verdicts_shown=shown)


def validate(actor: Actor, run_id: int, launch: Launch[T]) -> T:
    """Let a run's validator judge its edited groups. Raises NotFound before it is launched."""
    with reading(actor, "studies") as session:
        get_run(session, run_id)
    return launch(actor, "judge", JudgeStart(run_id=run_id))


def _require_in_queue(session: Session, actor: Actor, group_id: int) -> None:
    if actor.owns_store:
        return
    run = get_run(session, get_group(session, group_id).run_id)
    blind = not actor.rights.on_dataset("curate", run.dataset_id) and not run.verdicts_shown
    if not queue.can_review(session, group_id, reviewer=actor.name, blind=blind):
        raise Refused(
            f"group {group_id} is not in your queue",
            "choose another one: `groups list N`",
            code="group_not_in_queue",
        )
