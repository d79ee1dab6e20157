"""Reviews: approve, reject and edit groups, one or all of a filter; let their validator check."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeVar

from sqlalchemy.orm import Session

from app.access.identity import Actor
from app.operations.acting import Launch, reading, writing
from curation.judging.request import JudgeStart
from curation.judging.revalidation import check_edit
from db.assignment.hidden import require_visible
from db.errors import BadInput, Refused
from db.events import record_event
from db.review import queue
from db.review.queue import BulkPreview, QueueFilter
from db.review.reviews import approve_group, edit_group, reject_group
from db.review.reviews import undo_bulk as undo_reviews
from db.rows import Row
from db.run.group_detail import get_group
from db.run.runs import get_run

RIGHT, RIGHT_OF_MANY = "review", "review_many"
MAX_SELECTED = 2000
Action = Literal["approve", "reject"]
T = TypeVar("T")


class ReviewRow(Row):
    """A review; `before` and `after`: the texts that an edit changed."""

    id: int
    group_id: int
    action: str
    reason: str
    before: dict[str, str]
    after: dict[str, str]
    reviewed_by: str
    created_at: datetime


class BulkReview(Row):
    """A review of all groups of a run that match a filter, and whether it was `done`."""

    run_id: int
    action: str
    groups: int
    done: bool


class VerdictsShown(Row):
    """Whether people who review a run see its verdicts."""

    run_id: int
    verdicts_shown: bool


def set_one(
    actor: Actor,
    group_id: int,
    action: Literal["approve", "reject", "edit"],
    *,
    reason: str = "",
    changes: Mapping[str, str] | None = None,
) -> ReviewRow:
    """Approve, reject (with a reason) or edit (`changes`, by field) a group.

    The blind rules hold but for the store's owner: a group that the actor may still judge, or that
    blind reviewers do not see, is refused as one that is not there. Raises BadInput, NotFound.
    """
    with writing(actor, RIGHT) as session:
        _require_in_queue(session, actor, group_id)
        if action == "approve":
            made = approve_group(session, group_id, reviewed_by=actor.name)
        elif action == "reject":
            made = reject_group(session, group_id, reason=reason, reviewed_by=actor.name)
        else:
            check_edit(session, group_id, changes or {})
            made = edit_group(
                session, group_id, changes or {}, reviewed_by=actor.name, reason=reason
            )
        return ReviewRow.model_validate(made)


def count(actor: Actor, wanted: QueueFilter, action: Action) -> int:
    """How many groups a bulk review would change. Raises NotFound, BadInput for a drop reason that
    the run does not have."""
    with reading(actor, RIGHT_OF_MANY) as session:
        get_run(session, wanted.run_id)
        queue.require_drop_reason(session, wanted)
        return queue.count_matching(session, wanted, reviewer=actor.name, action=action)


def preview(actor: Actor, wanted: QueueFilter, action: Action) -> BulkPreview:
    """What a bulk review would change, without groups that are hidden from the actor."""
    with reading(actor, RIGHT_OF_MANY) as session:
        return queue.preview_bulk(session, wanted, action, reviewer=actor.name)


def bulk(
    actor: Actor,
    wanted: QueueFilter,
    action: Action,
    *,
    expected: int,
    reason: str = "",
    mark: str = "",
) -> BulkReview:
    """Review all `expected` groups that match, each for itself. Raises as `review_in_bulk`.

    With a `mark`, `undo_bulk` finds them again.
    """
    with writing(actor, RIGHT_OF_MANY) as session:
        groups = queue.review_in_bulk(
            session,
            wanted,
            action,
            expected=expected,
            reviewed_by=actor.name,
            reason=reason,
            bulk=mark,
        )
    return BulkReview(run_id=wanted.run_id, action=action, groups=groups, done=True)


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


def verdicts(actor: Actor, run_id: int, shown: bool | None = None) -> VerdictsShown:
    """Show or hide a run's verdicts to those who review it; None leaves them. Raises NotFound."""
    if shown is None:
        with reading(actor, RIGHT) as session:
            return VerdictsShown(
                run_id=run_id, verdicts_shown=get_run(session, run_id).verdicts_shown
            )
    with writing(actor, "show_verdicts") as session:
        get_run(session, run_id)
        queue.show_verdicts(session, run_id, shown, actor=actor.name)
    return VerdictsShown(run_id=run_id, verdicts_shown=shown)


def validate(actor: Actor, run_id: int, launch: Launch[T]) -> T:
    """Let a run's validator judge its edited groups. Raises NotFound before it is launched."""
    with reading(actor, "studies") as session:
        get_run(session, run_id)
    return launch(actor, "judge", JudgeStart(run_id=run_id))


def _require_in_queue(session: Session, actor: Actor, group_id: int) -> None:
    if actor.via == "command":
        return
    run = get_run(session, get_group(session, group_id).run_id)
    blind = not actor.rights.on_dataset("curate", run.dataset_id) and not run.verdicts_shown
    if not queue.can_review(session, group_id, reviewer=actor.name, blind=blind):
        raise Refused(
            f"group {group_id} is not in your queue",
            "choose another one: `groups list run=N`",
            code="group_not_in_queue",
        )
