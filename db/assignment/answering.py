"""Answering a leased item: decisions and skips.

Hidden gold is answered as other items are: its answers are scored later, several together
(`db.assignment.members.pause_on_failed_gold`).

Note: a decision names a *position on the screen*, never a label; the assignment stores which
candidate was there. A decision that arrives after its place was taken by another judge is stored
with state `aside`, and not counted.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.answers.finishing import close_when_done
from db.assignment.guidelines import version_shown
from db.assignment.places import change_taken, find_assignment, never_given, regain_place
from db.assignment.standing import GivenItem, Standing, given_item, standing
from db.errors import BadInput, Refused
from db.events import record_event
from db.question import Shown
from db.run.new_items import question_of
from db.study.judgments import add_judgment
from db.tables import Judgment, Study, utc_now
from db.values import REMARK_REASONS

MAX_CHANGES = 20  # of one answer: every one is a row for ever


@dataclass(frozen=True)
class Decision:
    """A decision on a shown item; `position` is `db.question.Shown`: the place of a candidate, None
    for none of them, else an answer such as "2", "yes" or "ambiguous".

    `guidelines`: the version that was shown with it, by default the last one that the judge read.
    """

    event_id: str
    item_id: int
    position: Shown
    shown_at: datetime | None = None
    decided_at: datetime | None = None
    note: str = ""
    flagged: bool = False
    change: bool = False
    reason: str = ""
    guidelines: int | None = None


def submit_decision(
    session: Session,
    study_id: int,
    judge_id: int,
    decision: Decision,
    *,
    now: datetime | None = None,
) -> Judgment:
    """Store a judge's decision on an item leased to them, as `answer` does. Does not commit.

    Raises Refused if the item was never leased to this judge, too.
    """
    here = standing(session, study_id, judge_id)
    given = given_item(session, here, decision.event_id, item_id=decision.item_id)
    if given is None:
        raise never_given(study_id, decision.item_id)
    return answer(session, here, given, decision, now=now)


def answer(
    session: Session,
    here: Standing,
    given: GivenItem,
    decision: Decision,
    *,
    now: datetime | None = None,
) -> Judgment:
    """Store a decision on an item that was given to the judge. Idempotent by the event id.

    Raises Refused if the study is closed, the judge has opened the item's group, or it was answered
    already (unless `decision.change`, while neither the study nor the judge is paused, at most
    MAX_CHANGES times); BadInput for a position that does not exist. Does not commit.
    """
    now = now or utc_now()
    assignment = given.assignment
    if given.known is not None:
        if (given.known.judge_id, given.known.item_id) != (here.judge.id, assignment.item_id):
            raise Refused(
                f"event {decision.event_id!r} is stored for another judge or item",
                code="event_taken",
            )
        return given.known
    _require_open_to(session, here, given, decision)
    choice = question_of(session, given.item).chosen(assignment.order_shown, decision.position)
    reason = _checked_reason(decision.reason)
    counts = assignment.state == "done" or regain_place(session, assignment)
    shown_at, decided_at = times_within(
        decision.shown_at, decision.decided_at, leased_at=assignment.created_at, now=now
    )
    judgment = Judgment(
        judge_id=here.judge.id,
        item_id=assignment.item_id,
        choice=choice,
        order_shown=list(assignment.order_shown),
        event_id=decision.event_id,
        study_id=here.study.id if counts else None,
        guideline_id=version_shown(session, here, decision.guidelines),
        shown_at=shown_at,
        decided_at=decided_at,
        note=decision.note,
        flagged=decision.flagged,
        reason=reason,
        detail={} if counts else {"aside_in_study": here.study.id},
    )
    assignment.state = "done" if counts else "aside"
    assignment.lease_until, assignment.ended_at = None, now
    add_judgment(session, judgment, item=given.item, earlier=given.earlier)
    session.flush()
    record_event(session, here.judge.person, "judgment.stored", judgment.id, study=here.study.id)
    here.last_ended_at = now
    close_when_done(session, here.study)
    return judgment


def skip_item(
    session: Session,
    here: Standing,
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
    study_id = here.study.id
    assignment = find_assignment(session, study_id, here.judge.id, item_id)
    if assignment.state in ("done", "aside"):
        return False
    if here.study.status == "closed":
        raise study_closed(here.study)
    if assignment.state == "leased":
        change_taken(session, study_id, [item_id], -1)
    if assignment.state != "skipped":
        now = utc_now()
        assignment.shown_at, _ = times_within(
            shown_at, decided_at, leased_at=assignment.created_at, now=now
        )
        assignment.ended_at = here.last_ended_at = now
    assignment.state, assignment.lease_until = "skipped", None
    assignment.note, assignment.flagged = note, flagged
    assignment.reason = _checked_reason(reason)
    session.flush()
    close_when_done(session, here.study)  # the gold that was skipped may be all that was left
    return True


def study_closed(study: Study) -> Refused:
    """The refusal of an answer to a closed study."""
    return Refused(
        f"the study {study.name!r} is closed: the answer was not stored",
        "a curator can open another study",
        code="study_closed",
        study=study.name,
    )


def _checked_reason(reason: str) -> str:
    if reason and reason not in REMARK_REASONS:
        raise BadInput(
            f"no reason {reason!r:.40}",
            f"give one of {', '.join(REMARK_REASONS)}",
            code="malformed",
        )
    return reason


def _require_open_to(
    session: Session, here: Standing, given: GivenItem, decision: Decision
) -> None:
    """Raise Refused if no answer, or not this one, can be stored: see `answer`."""
    if here.study.status == "closed":
        raise study_closed(here.study)
    if given.was_opened:
        raise Refused(
            "you have opened this item's group, or seen others' choices on it, since: an answer "
            "given before stands, a new one is not stored",
            code="opened",
        )
    if given.assignment.state not in ("done", "aside"):
        return
    if not decision.change:
        raise Refused(
            "this item was answered already (in another tab?): the first answer stands",
            code="answered_already",
        )
    _require_not_paused(here)
    earlier = select(func.count()).where(
        Judgment.judge_id == here.judge.id, Judgment.item_id == given.assignment.item_id
    )
    if (session.scalar(earlier) or 0) > MAX_CHANGES:
        raise Refused(
            f"an answer can be changed {MAX_CHANGES} times: the last one stands",
            code="changed_too_often",
            most=MAX_CHANGES,
        )


def _require_not_paused(here: Standing) -> None:
    """Raise Refused for a change while the study or the judge in it is paused.

    First answers are stored, as they may have been in flight.
    """
    is_paused = here.member is not None and here.member.state == "paused"
    if here.study.status == "paused" or is_paused:
        raise Refused(
            "the study, or you in it, is paused: the answer given before stands",
            code="paused_change",
        )


# Times that a browser reports, held against the server's: its clock may be wrong, or forged.
#
# People are paid by these times and judged by them as too fast, so none may lie where nothing can
# have happened: an item is shown after it was leased, and decided before its answer is received.
def times_within(
    shown_at: datetime | None, decided_at: datetime | None, *, leased_at: datetime, now: datetime
) -> tuple[datetime | None, datetime]:
    """When an item was shown and decided, both from `leased_at` to `now`.

    Times outside come from a wrong clock, whose seconds are right all the same: the interval is
    moved to end now, and cut where it would begin before the lease. Without `decided_at` it is
    now; without `shown_at` that stays unknown.
    """
    leased_at = min(leased_at, now)
    ended = now if decided_at is None else decided_at
    if shown_at is None:
        return None, ended if leased_at <= ended <= now else now
    if leased_at <= shown_at <= ended <= now:
        return shown_at, ended
    length = max(ended - shown_at, timedelta(0))
    # cut first: 1970 to 8999 cannot be subtracted from now
    return now - min(length, now - leased_at), now
