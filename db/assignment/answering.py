"""Answering a leased item: decisions and skips.

Note: a decision names a *position on the screen*, never a label; the assignment stores which
candidate was there. A decision that arrives after its place was taken by another judge is stored
with state `aside`, and not counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from db.answers.browser_times import times_within
from db.answers.finishing import close_when_done
from db.assignment.hidden import was_opened
from db.assignment.members import pause_on_failed_gold
from db.assignment.places import change_taken, find_assignment, lock_study, regain_place
from db.errors import BadInput, Refused
from db.study.judgments import find_judgment, record_judgment
from db.study.studies import current_guideline
from db.tables import Judge, Judgment, Study, StudyJudge, utc_now
from db.values import NONE, REMARK_REASONS


@dataclass(frozen=True)
class Decision:
    """A decision on a shown item; `position` None is "none of them"."""

    event_id: str
    item_id: int
    position: int | None
    shown_at: datetime | None = None
    decided_at: datetime | None = None
    note: str = ""
    flagged: bool = False
    change: bool = False
    reason: str = ""


def submit_decision(
    session: Session,
    study_id: int,
    judge_id: int,
    decision: Decision,
    *,
    now: datetime | None = None,
) -> Judgment:
    """Store a judge's decision on an item leased to them. Idempotent by the event id.

    Raises Refused if the study is closed, the item was never leased to this judge, they have opened
    its group, or it was answered already (unless `decision.change`, while neither the study nor the
    judge is paused); BadInput for a position that does not exist. Does not commit.
    """
    now = now or utc_now()
    study = lock_study(session, study_id)
    known = find_judgment(session, decision.event_id)
    if known is not None:
        if (known.judge_id, known.item_id) != (judge_id, decision.item_id):
            raise Refused(
                f"event {decision.event_id!r} is stored for another judge or item",
                code="event_taken",
            )
        return known
    assignment = find_assignment(session, study_id, judge_id, decision.item_id)
    if study.status == "closed":
        raise study_closed(study)
    if was_opened(session, assignment.item_id, session.get_one(Judge, judge_id).name):
        raise Refused(
            "you have opened this item's group, or seen others' choices on it, since: an answer "
            "given before stands, a new one is not stored",
            code="opened",
        )
    if assignment.state in ("done", "aside") and not decision.change:
        raise Refused(
            "this item was answered already (in another tab?): the first answer stands",
            code="answered_already",
        )
    if assignment.state in ("done", "aside"):
        _require_not_paused(session, study, judge_id)
    counts = assignment.state == "done" or regain_place(session, assignment)
    shown_at, decided_at = times_within(
        decision.shown_at, decision.decided_at, leased_at=assignment.created_at, now=now
    )
    judgment = record_judgment(
        session,
        judge_id=judge_id,
        item_id=assignment.item_id,
        choice=_label(assignment.order_shown, decision.position),
        order_shown=assignment.order_shown,
        event_id=decision.event_id,
        study_id=study_id if counts else None,
        guideline_id=current_guideline(session, study_id).id,
        shown_at=shown_at,
        decided_at=decided_at,
        note=decision.note,
        flagged=decision.flagged,
        reason=_checked_reason(decision.reason),
        detail={} if counts else {"aside_in_study": study_id},
    )
    assignment.state = "done" if counts else "aside"
    assignment.lease_until, assignment.ended_at = None, now
    session.flush()
    pause_on_failed_gold(session, study, judge_id, assignment.item_id)
    close_when_done(session, study)
    return judgment


def skip_item(
    session: Session,
    study_id: int,
    judge_id: int,
    item_id: int,
    *,
    note: str = "",
    flagged: bool = False,
    reason: str = "",
    shown_at: datetime | None = None,
    decided_at: datetime | None = None,
) -> bool:
    """Return a leased item to the queue; this judge does not see it again.

    Skipping twice is skipping once; an answered item stays answered. Returns whether the item is
    skipped now. Raises Refused if it was never leased to them, BadInput for an unknown reason. Does
    not commit.
    """
    study = lock_study(session, study_id)
    assignment = find_assignment(session, study_id, judge_id, item_id)
    if assignment.state in ("done", "aside"):
        return False
    if study.status == "closed":
        raise study_closed(study)
    if assignment.state == "leased":
        change_taken(session, study_id, item_id, -1)
    if assignment.state != "skipped":
        now = utc_now()
        assignment.shown_at, _ = times_within(
            shown_at, decided_at, leased_at=assignment.created_at, now=now
        )
        assignment.ended_at = now
    assignment.state, assignment.lease_until = "skipped", None
    assignment.note, assignment.flagged = note, flagged
    assignment.reason = _checked_reason(reason)
    session.flush()
    return True


def study_closed(study: Study) -> Refused:
    """The refusal of an answer to a closed study."""
    return Refused(
        f"the study {study.name!r} is closed: the answer was not stored",
        code="study_closed",
        study=study.name,
    )


def _checked_reason(reason: str) -> str:
    if reason and reason not in REMARK_REASONS:
        raise BadInput(
            f"no reason {reason!r:.40}: give one of {', '.join(REMARK_REASONS)}", code="malformed"
        )
    return reason


def _require_not_paused(session: Session, study: Study, judge_id: int) -> None:
    """Raise Refused for a change while the study or the judge in it is paused.

    First answers are stored, as they may have been in flight.
    """
    member = session.get(StudyJudge, (study.id, judge_id))
    if study.status == "paused" or (member is not None and member.state == "paused"):
        raise Refused(
            "the study, or you in it, is paused: the answer given before stands",
            code="paused_change",
        )


def _label(order_shown: Sequence[str], position: int | None) -> str:
    if position is None:
        return NONE
    if not 0 <= position < len(order_shown):
        raise BadInput(
            f"there is no passage {position + 1}: there are {len(order_shown)}",
            code="no_passage",
            number=position + 1,
            count=len(order_shown),
        )
    return str(order_shown[position])
