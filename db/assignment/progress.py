"""A judge's own progress in a study."""

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.assignment.eligibility import free_gold, given_parts
from db.assignment.gold_places import planned_gold
from db.assignment.open_pairs import count_eligible
from db.study.rules import rules_of
from db.study.studies import get_study
from db.tables import Assignment, Judgment


@dataclass(frozen=True)
class OwnProgress:
    """One judge's progress: answered, skipped, still open, and the pace."""

    done: int
    skipped: int
    left: int
    seconds_per_item: float | None


def own_progress(session: Session, study_id: int, judge_id: int) -> OwnProgress:
    """A judge's progress in a study; the pace is the median of seconds from shown to decided.

    `left` counts what they would be given if no one else took a place meanwhile: items of pairs
    that they know, or judged in another study, are not. It counts hidden gold from the start, so
    that giving one changes nothing in the total.
    """
    states = dict(
        session.execute(
            select(Assignment.state, func.count())
            .where(Assignment.study_id == study_id, Assignment.judge_id == judge_id)
            .group_by(Assignment.state)
        ).all()
    )
    open_to_me = count_eligible(session, study_id, judge_id)
    gold = _gold_to_come(session, study_id, judge_id, open_to_me)
    times = session.execute(
        select(Judgment.shown_at, Judgment.decided_at)
        .where(
            Judgment.study_id == study_id,
            Judgment.judge_id == judge_id,
            Judgment.shown_at.is_not(None),
        )
        .order_by(Judgment.id.desc())
        .limit(50)
    )
    seconds = sorted((decided - shown).total_seconds() for shown, decided in times if shown)
    return OwnProgress(
        done=states.get("done", 0),
        skipped=states.get("skipped", 0),
        left=open_to_me + gold + states.get("leased", 0),
        seconds_per_item=seconds[len(seconds) // 2] if seconds else None,
    )


def _gold_to_come(session: Session, study_id: int, judge_id: int, open_to_me: int) -> int:
    """How many hidden gold items the judge will still be given."""
    free = len(free_gold(session, study_id, judge_id))
    if not free:
        return 0
    parts = given_parts(session, study_id, judge_id)
    given = parts.get("gold", 0)
    every = rules_of(get_study(session, study_id)).gold_every
    others = parts.get("main", 0) + open_to_me
    return planned_gold(others, given=given, free=free, every=every) - given
