"""Time and work per person and study: what coordinators pay by.

Active time is the union of the intervals from shown to decided: an answer that was open in two tabs
counts once. The intervals of an item, changes of its answer included, count `MAX_ITEM_SECONDS` in
all, an interval from its end: whoever left the item open over lunch was not working on it. So no
times that a browser states make more minutes than the items have.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from db.question import is_right
from db.rows import Row
from db.tables import Assignment, Judge, Judgment, Study, StudyItem, StudyJudge

MAX_ITEM_SECONDS = 300.0
Interval = tuple[datetime, datetime]


class WorkRow(Row):
    """One person's work in one study. Counts are of items: a changed answer counts once.

    `items` counts hidden gold, too; `late` were answered after the place was given away. `worker`,
    `submission` and `code`: a recruit's ids of the platform, and the code that they earned.
    """

    study_id: int
    study: str
    judge_id: int
    person: str
    simulated: bool
    items: int
    late: int
    skipped: int
    changed: int
    gold_right: int
    gold_seen: int
    qualification_right: int
    qualification_seen: int
    qualified_at: datetime | None
    active_minutes: float
    first_at: datetime | None
    last_at: datetime | None
    worker: str | None
    submission: str | None
    code: str | None


def active_seconds(intervals: Iterable[Interval]) -> float:
    """The length of the union of the intervals, each cut to its last `MAX_ITEM_SECONDS`."""
    longest = timedelta(seconds=MAX_ITEM_SECONDS)
    total, reached = timedelta(0), None
    for start, end in sorted((max(shown, ended - longest), ended) for shown, ended in intervals):
        begin = start if reached is None or start > reached else reached
        if end > begin:
            total += end - begin
        reached = end if reached is None or end > reached else reached
    return total.total_seconds()


def within_limit_per_item(timed: Iterable[tuple[int, datetime, datetime]]) -> list[Interval]:
    """The intervals of (item, start, end), each cut to its end, `MAX_ITEM_SECONDS` for an item.

    Earlier ones go first: who changes an answer again and again, and states a time for each change,
    is paid for no more than who takes long over the item once.
    """
    left: dict[int, timedelta] = {}
    found = []
    for item_id, start, end in timed:
        rest = left.get(item_id, timedelta(seconds=MAX_ITEM_SECONDS))
        length = min(end - start, rest)
        left[item_id] = rest - length
        if length > timedelta(0):
            found.append((end - length, end))
    return found


def work_report(
    session: Session,
    *,
    study_id: int | None = None,
    since: date | None = None,
    until: date | None = None,
) -> list[WorkRow]:
    """The work of every person, by study and name; of one study or all.

    `since` and `until`: only what was done on these days (UTC) and between them.
    """
    pairs = session.execute(_pairs(study_id)).all()
    found = []
    for study, judge in pairs:
        done = _PersonsAnswers.read(session, study.id, judge.id, since, until)
        if done.is_empty and (since or until):
            continue
        member = session.get_one(StudyJudge, (study.id, judge.id))
        found.append(
            WorkRow(
                study_id=study.id,
                study=study.name,
                judge_id=judge.id,
                person=judge.name,
                simulated=judge.simulated,
                items=len(done.of("main", "gold")),
                late=len({one.item_id for one in done.judgments if one.study_id is None}),
                skipped=len(done.skips),
                changed=sum(
                    one.replaces_id is not None and done.part[one.item_id] != "training"
                    for one in done.judgments
                ),
                gold_right=done.right("gold"),
                gold_seen=len(done.of("gold")),
                qualification_right=done.right("training"),
                qualification_seen=len(done.of("training")),
                qualified_at=member.passed_at,
                active_minutes=round(active_seconds(done.intervals) / 60, 2),
                first_at=min(done.moments, default=None),
                last_at=max(done.moments, default=None),
                worker=member.worker,
                submission=member.submission,
                code=member.code,
            )
        )
    return found


@dataclass(frozen=True)
class _PersonsAnswers:
    """What one person did in a study in a time: all judgments, also replaced ones, and skips."""

    judgments: Sequence[Judgment]
    skips: Sequence[Assignment]
    part: dict[int, str]
    gold: dict[int, str]

    @staticmethod
    def read(
        session: Session, study_id: int, judge_id: int, since: date | None, until: date | None
    ) -> "_PersonsAnswers":
        rows = session.execute(
            select(Judgment, StudyItem.part, StudyItem.gold_choice)
            .join(StudyItem, StudyItem.item_id == Judgment.item_id)
            .where(
                StudyItem.study_id == study_id,
                Judgment.judge_id == judge_id,
                func.coalesce(Judgment.study_id, Judgment.detail["aside_in_study"].as_integer())
                == study_id,
            )
        ).all()
        skipped = session.scalars(
            select(Assignment).where(
                Assignment.study_id == study_id,
                Assignment.judge_id == judge_id,
                Assignment.state == "skipped",
            )
        )
        return _PersonsAnswers(
            [row[0] for row in rows if _is_between(row[0].decided_at, since, until)],
            [one for one in skipped if _is_between(one.ended_at or one.created_at, since, until)],
            {judgment.item_id: part for judgment, part, _ in rows},
            {judgment.item_id: gold for judgment, _, gold in rows if gold is not None},
        )

    def of(self, *parts: str) -> dict[int, Judgment]:
        """The last answer to each item of these parts that counts."""
        rows = sorted(self.judgments, key=lambda one: one.id)
        return {
            one.item_id: one
            for one in rows
            if self.part[one.item_id] in parts and one.study_id is not None
        }

    def right(self, part: str) -> int:
        """How many gold answers of a part are right."""
        return sum(
            bool(is_right(one.choice, self.gold.get(item))) for item, one in self.of(part).items()
        )

    @property
    def intervals(self) -> list[Interval]:
        """From shown to decided, of answers and skips with known times, as far as they count."""
        answers = sorted(self.judgments, key=lambda one: one.id)
        timed = [
            *((one.item_id, one.shown_at, one.decided_at) for one in answers),
            *((one.item_id, one.shown_at, one.ended_at) for one in self.skips),
        ]
        return within_limit_per_item(
            (item_id, shown, ended)
            for item_id, shown, ended in timed
            if shown is not None and ended is not None and shown < ended
        )

    @property
    def moments(self) -> list[datetime]:
        """When each answer and skip was made."""
        return [
            *(one.decided_at for one in self.judgments),
            *(one.ended_at or one.created_at for one in self.skips),
        ]

    @property
    def is_empty(self) -> bool:
        """Whether nothing was done in the time."""
        return not self.judgments and not self.skips


def _pairs(study_id: int | None) -> Select[Study, Judge]:
    joined = select(StudyJudge.judge_id).where(StudyJudge.study_id == Study.id)
    query = (
        select(Study, Judge)
        .join(Judge, Judge.id.in_(joined))
        .where(Judge.kind == "person")
        .order_by(Study.id, Judge.name)
    )
    return query if study_id is None else query.where(Study.id == study_id)


def _is_between(moment: datetime, since: date | None, until: date | None) -> bool:
    day = moment.date()
    return (since is None or day >= since) and (until is None or day <= until)
