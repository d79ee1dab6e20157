"""Counts of the store's contents, and the next step of the workflow."""

from dataclasses import dataclass

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from db.tables import (
    Analysis,
    Checkpoint,
    Dataset,
    Evaluation,
    Group,
    Job,
    Judge,
    Judgment,
    Pair,
    Passage,
    Release,
    Review,
    Run,
    Study,
)


@dataclass(frozen=True)
class Overview:
    """Counts of everything; `offline` and `simulated` report whether some of it is."""

    datasets: int
    pairs: int
    passages: int
    runs: int
    groups: int
    kept: int
    dropped: int
    studies: int
    judgments: int
    simulated_judgments: int
    reviews: int
    analyses: dict[str, int]
    releases: int
    checkpoints: int
    evaluations: int
    jobs_failed: int
    offline_runs: int


def overview(session: Session) -> Overview:
    """Count what the store holds. `judgments` are those of studies, not of the validator."""

    def count(query: Select[int]) -> int:
        return session.scalar(query) or 0

    def rows(table: type) -> int:
        return count(select(func.count()).select_from(table))

    verdicts = dict(
        session.execute(
            select(Group.verdict, func.count())
            .where(Group.verdict.is_not(None))
            .group_by(Group.verdict)
        ).all()
    )
    in_studies = select(func.count(Judgment.id)).where(
        Judgment.is_current, Judgment.study_id.is_not(None)
    )
    simulated = in_studies.join(Judge, Judge.id == Judgment.judge_id).where(Judge.simulated)
    kinds = session.execute(select(Analysis.kind, func.count()).group_by(Analysis.kind))
    return Overview(
        datasets=count(select(func.count(Dataset.id)).where(Dataset.archived_at.is_(None))),
        pairs=rows(Pair),
        passages=count(
            select(func.count()).select_from(Passage).where(Passage.origin != "generated")
        ),
        runs=count(select(func.count(Run.id)).where(Run.archived_at.is_(None))),
        groups=rows(Group),
        kept=verdicts.get("kept", 0),
        dropped=verdicts.get("dropped", 0),
        studies=rows(Study),
        judgments=count(in_studies),
        simulated_judgments=count(simulated),
        reviews=count(select(func.count()).select_from(Review).where(Review.is_current)),
        analyses=dict(kinds.all()),
        releases=rows(Release),
        checkpoints=rows(Checkpoint),
        evaluations=rows(Evaluation),
        jobs_failed=count(
            select(func.count()).select_from(Job).where(Job.status.in_(["failed", "lost"]))
        ),
        offline_runs=count(select(func.count()).select_from(Run).where(Run.offline)),
    )
