"""Answers too fast to be read: from the times an item was shown and decided.

An answer is too fast if it took less than the study's `too_fast_seconds`. A judgment without a time
(from a file, or with an unreadable clock) is never too fast.
"""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.rows import Row
from db.study.rules import rules_of
from db.study.studies import get_study
from db.tables import Judge, Judgment


class FastAnswer(Row):
    """A judgment made faster than its texts can be read."""

    judge: str
    item_id: int
    choice: str
    seconds: float
    decided_at: datetime


def seconds_taken(shown_at: datetime | None, decided_at: datetime) -> float | None:
    """Seconds from shown to decided; None if the time shown is unknown."""
    return None if shown_at is None else (decided_at - shown_at).total_seconds()


def too_fast_limit(session: Session, study_id: int) -> float:
    """The seconds below which an answer of this study is too fast."""
    return rules_of(get_study(session, study_id)).too_fast_seconds


def fast_answers(session: Session, study_id: int, *, limit: int = 200) -> list[FastAnswer]:
    """Current judgments by people in the study that were too fast, the fastest first.

    Only the last `limit` × 50 judgments are searched: this lists examples, it is not a count.
    """
    limit_seconds = too_fast_limit(session, study_id)
    rows = session.execute(
        select(
            Judge.name,
            Judgment.item_id,
            Judgment.choice,
            Judgment.shown_at,
            Judgment.decided_at,
        )
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(
            Judgment.study_id == study_id,
            Judgment.is_current,
            Judge.kind == "person",
            Judgment.shown_at.is_not(None),
        )
        .order_by(Judgment.id.desc())
        .limit(limit * 50)
    )
    found = []
    for name, item_id, choice, shown_at, decided_at in rows:
        seconds = seconds_taken(shown_at, decided_at)
        if seconds is not None and seconds < limit_seconds:
            found.append(
                FastAnswer(
                    judge=name,
                    item_id=item_id,
                    choice=choice,
                    seconds=seconds,
                    decided_at=decided_at,
                )
            )
    return sorted(found, key=lambda one: (one.seconds, one.item_id))[:limit]
