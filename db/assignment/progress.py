"""A judge's own progress in a study."""

from dataclasses import dataclass

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from db.tables import Assignment, Judgment, StudyItem


@dataclass(frozen=True)
class OwnProgress:
    """One judge's progress: answered, skipped, still open, and the pace."""

    done: int
    skipped: int
    left: int
    seconds_per_item: float | None


def own_progress(session: Session, study_id: int, judge_id: int) -> OwnProgress:
    """A judge's progress in a study; the pace is the median of seconds from shown to decided.

    `left` counts every item with a free place that they were not given: an upper bound, since
    items of groups they reviewed, or judged in another study, are never given to them.
    """
    states = dict(
        session.execute(
            select(Assignment.state, func.count())
            .where(Assignment.study_id == study_id, Assignment.judge_id == judge_id)
            .group_by(Assignment.state)
        ).all()
    )
    free = (
        select(func.count())
        .select_from(StudyItem)
        .where(
            StudyItem.study_id == study_id,
            StudyItem.part == "main",
            StudyItem.taken < StudyItem.places,
        )
    )
    mine = free.join(
        Assignment,
        and_(
            Assignment.study_id == StudyItem.study_id,
            Assignment.item_id == StudyItem.item_id,
            Assignment.judge_id == judge_id,
            Assignment.state != "expired",
        ),
    )
    open_to_me = (session.scalar(free) or 0) - (session.scalar(mine) or 0)
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
        left=open_to_me + states.get("leased", 0),
        seconds_per_item=seconds[len(seconds) // 2] if seconds else None,
    )
