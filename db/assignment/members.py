"""Members of a study: joining it, pausing and resuming a judge, the hidden gold that pauses one."""

import re
from datetime import date

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.assignment.places import lock_study, return_leases
from db.errors import BadInput, Refused
from db.events import record_event
from db.question import is_right
from db.study.judgments import of_person
from db.study.rules import GOLD_SEEN, SCORED_TOGETHER, fails_gold, rules_of
from db.study.studies import get_study
from db.tables import Judge, Judgment, Study, StudyItem, StudyJudge, utc_now

# Reasons that no curator wrote, by the code of what the judge reads in their own language.
GOLD_REASON = re.compile(r"(?P<right>\d+) of (?P<seen>\d+) gold items correct")
QUALIFICATION_REASON = re.compile(
    r"qualification not passed in (?P<rounds>\d+) rounds? "
    r"\((?P<right>\d+) of (?P<total>\d+) right in the last\).*"
)
AUTOMATIC_REASONS = {
    "paused_by_gold": GOLD_REASON,
    "paused_by_qualification": QUALIFICATION_REASON,
}


def membership(session: Session, study_id: int, judge_id: int) -> StudyJudge:
    """A judge's membership in the study, created for a new judge. Does not commit.

    Raises Refused for a new judge if the study is for invited people only.
    """
    member = session.get(StudyJudge, (study_id, judge_id))
    if member is not None:
        return member
    study = get_study(session, study_id)
    if study.settings.get("members_only"):
        raise Refused(
            f"the study {study.name!r} is for people invited into it",
            "ask its curator for a link",
            code="members_only",
            study=study.name,
        )
    return add_member(session, study_id, judge_id)


def may_be_given_items(session: Session, study_id: int, judge_id: int) -> bool:
    """Whether neither an invitation that the judge lacks nor a pause keeps them from the study.

    Creates no membership. Raises NotFound.
    """
    member = session.get(StudyJudge, (study_id, judge_id))
    if member is not None:
        return member.state != "paused"
    return not get_study(session, study_id).settings.get("members_only")


def not_open(study: Study) -> Refused:
    """The refusal of items of a study that is paused or closed."""
    return Refused(
        f"the study {study.name!r} is {study.status}: nothing can be judged in it",
        "ask a curator to open it",
        code=f"study_is_{study.status}",
        study=study.name,
    )


def require_active(member: StudyJudge) -> None:
    """Raise Refused with the reason if the judge is paused in the study."""
    if member.state != "paused":
        return
    message = f"you are paused in this study: {member.reason}"
    for code, pattern in AUTOMATIC_REASONS.items():
        if found := pattern.fullmatch(member.reason):
            raise Refused(
                message, "ask a curator to let you in again", code=code, **found.groupdict()
            )
    raise Refused(message, "ask a curator to let you in again", code="paused", reason=member.reason)


def add_member(session: Session, study_id: int, judge_id: int) -> StudyJudge:
    """Make a judge a member of a study, by invitation or by a curator. Does not commit."""
    member = session.get(StudyJudge, (study_id, judge_id))
    if member is None:
        member = StudyJudge(study_id=study_id, judge_id=judge_id)
        session.add(member)
        session.flush()
    return member


def is_member(session: Session, study_id: int, person: str) -> bool:
    """Whether the person has joined the study."""
    query = select(StudyJudge.study_id).join(Judge, Judge.id == StudyJudge.judge_id)
    query = query.where(StudyJudge.study_id == study_id, of_person(person))
    return session.scalar(query.limit(1)) is not None


def gold_score(session: Session, study_id: int, judge_id: int) -> tuple[int, int]:
    """(correct, answered) hidden gold items of the judge."""
    rows = session.execute(
        select(Judgment.choice, StudyItem.gold_choice)
        .join(StudyItem, StudyItem.item_id == Judgment.item_id)
        .where(
            StudyItem.study_id == study_id,
            StudyItem.part == "gold",
            Judgment.study_id == study_id,
            Judgment.judge_id == judge_id,
            Judgment.is_current,
        )
    ).all()
    return sum(bool(is_right(choice, gold)) for choice, gold in rows), len(rows)


def gold_is_due(study: Study, member: StudyJudge | None, answered: int, left: int) -> bool:
    """Whether a member's answered items are enough for `pause_on_failed_gold`, with N left."""
    # of one card alone a pause would say that it was gold, as items may come back one by one; the
    # items of a card are all gold or none
    enough = (SCORED_TOGETHER if left else GOLD_SEEN) * study.settings.get("per_card", 1)
    return member is not None and answered - member.scored_after >= enough


def pause_on_failed_gold(
    session: Session, study_id: int, judge_id: int, *, answered: int, left: int
) -> None:
    """Pause a judge below the gold threshold, if the study's rules require it.

    In a transaction of its own, after every SCORED_TOGETHER answers (times the items of a card) and
    when nothing is left, whichever items they are of: a pause right after an answer would tell
    which item was gold. Does
    not commit.
    """
    study = lock_study(session, study_id)
    member = session.get(StudyJudge, (study_id, judge_id), populate_existing=True)
    if member is None or not gold_is_due(study, member, answered, left):
        return  # of another tab, meanwhile
    member.scored_after = answered
    rules, (right, seen) = rules_of(study), gold_score(session, study_id, judge_id)
    is_below = fails_gold(right, seen, rules)
    if is_below and rules.gold_action == "pause" and member.state == "active":
        member.state, member.changed_at = "paused", utc_now()
        member.reason = f"{right} of {seen} gold items correct"
        about = {"judge": judge_id, "rule": "gold", "reason": member.reason}
        record_event(session, study.created_by, "study.pause_judge", study_id, **about)
    session.flush()


def pause_judge(session: Session, study_id: int, judge_id: int, reason: str) -> None:
    """Lease nothing more to the judge in the study and free their leases. Does not commit."""
    if not reason.strip():
        raise BadInput(
            "a pause needs a reason: the judge reads it",
            "Give `reason=`",
            code="pause_needs_reason",
        )
    lock_study(session, study_id)
    member = membership(session, study_id, judge_id)
    member.state, member.reason, member.changed_at = "paused", reason.strip(), utc_now()
    return_leases(session, study_id, judge_id)


def set_share(
    session: Session, study_id: int, judge_id: int, *, quota: int | None, due_on: date | None
) -> StudyJudge:
    """Set how many items of the study a judge is given, or until when; neither: no limit of both.

    A lower quota takes back nothing that they hold. Does not commit.
    """
    lock_study(session, study_id)
    member = membership(session, study_id, judge_id)
    is_unset = quota is None and due_on is None
    member.quota = quota if quota is not None or is_unset else member.quota
    member.due_on = due_on if due_on is not None or is_unset else member.due_on
    member.changed_at = utc_now()
    session.flush()
    return member


def readmit_judge(session: Session, study_id: int, judge_id: int) -> None:
    """Resume a paused judge; one paused by the qualification gets more rounds. Does not commit."""
    member = membership(session, study_id, judge_id)
    member.state, member.reason, member.changed_at = "active", "", utc_now()
    session.flush()
