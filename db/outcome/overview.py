"""Counts of the store's contents, and the next step of the workflow."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session

from db.jobs.jobs import live_of_run
from db.outcome.analyses import ids_by_kind
from db.outcome.checkpoints import trained_on
from db.release.releases import with_groups_of
from db.run.groups import released
from db.run.runs import RunSummary
from db.run.workers import worker_totals
from db.tables import (
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
from db.values import NONE

LOST = (
    "No worker is running: the last one was killed, or its machine went down. "
    "Answers are kept; choose Resume to continue."
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


def overview(session: Session, dataset_id: int | None = None) -> Overview:
    """Count what the store holds, all of it or of one dataset; failed jobs always of all.

    `judgments` are those of studies, not of the validator.
    """

    def within(query: Any, condition: ColumnElement[bool]) -> Any:
        return query if dataset_id is None else query.where(condition)

    def count(query: Any) -> int:
        return session.scalar(query) or 0

    def rows(table: type, condition: ColumnElement[bool]) -> Any:
        return within(select(func.count()).select_from(table), condition)

    runs = select(Run.id).where(Run.dataset_id == dataset_id)
    groups = Group.run_id.in_(runs)
    verdicts = dict(
        session.execute(
            within(
                select(Group.verdict, func.count())
                .where(Group.verdict.is_not(None))
                .group_by(Group.verdict),
                groups,
            )
        ).all()
    )
    in_studies = within(
        select(func.count(Judgment.id)).where(Judgment.is_current, Judgment.study_id.is_not(None)),
        Judgment.study_id.in_(select(Study.id).where(Study.dataset_id == dataset_id)),
    )
    simulated = in_studies.join(Judge, Judge.id == Judgment.judge_id).where(Judge.simulated)
    checkpoints = rows(Checkpoint, trained_on(dataset_id or 0))
    return Overview(
        datasets=count(
            rows(Dataset, Dataset.id == dataset_id).where(Dataset.archived_at.is_(None))
        ),
        pairs=count(rows(Pair, Pair.dataset_id == dataset_id)),
        passages=count(
            rows(Passage, Passage.dataset_id == dataset_id).where(Passage.origin != "generated")
        ),
        runs=count(rows(Run, Run.dataset_id == dataset_id).where(Run.archived_at.is_(None))),
        groups=count(rows(Group, groups)),
        kept=verdicts.get("kept", 0),
        dropped=verdicts.get("dropped", 0),
        studies=count(rows(Study, Study.dataset_id == dataset_id)),
        judgments=count(in_studies),
        simulated_judgments=count(simulated),
        reviews=count(
            rows(Review, Review.group_id.in_(select(Group.id).where(groups))).where(
                Review.is_current
            )
        ),
        analyses={kind: len(ids) for kind, ids in ids_by_kind(session, dataset_id).items()},
        releases=count(rows(Release, with_groups_of(dataset_id or 0))),
        checkpoints=count(checkpoints),
        evaluations=count(
            rows(
                Evaluation,
                Evaluation.checkpoint_id.in_(
                    select(Checkpoint.id).where(trained_on(dataset_id or 0))
                ),
            )
        ),
        jobs_failed=count(
            select(func.count()).select_from(Job).where(Job.status.in_(["failed", "lost"]))
        ),
        offline_runs=count(rows(Run, Run.dataset_id == dataset_id).where(Run.offline)),
    )


@dataclass(frozen=True)
class KeptGroups:
    """Kept groups of a run that are alike: their review (`none` without one), whether a release
    has them, and whether a model was trained on such a release."""

    review: str
    is_released: bool
    is_used: bool
    groups: int


def kept_groups(session: Session, run_id: int) -> list[KeptGroups]:
    """What became of a run's kept groups."""
    is_released, is_used = released().label("released"), released(trained=True).label("used")
    review = func.coalesce(Review.action, NONE)
    rows = session.execute(
        select(review, is_released, is_used, func.count())
        .select_from(Group)
        .outerjoin(Review, and_(Review.group_id == Group.id, Review.is_current))
        .where(Group.run_id == run_id, Group.verdict == "kept")
        .group_by(review, is_released, is_used)
    )
    return [KeptGroups(*row) for row in rows]


def with_actual_status(session: Session, run: RunSummary) -> RunSummary:
    """The run, with status `lost` if it is marked running but has neither worker nor live job."""
    if run.status != "running" or live_of_run(session, run.id):
        return run
    if worker_totals(session, run.id).alive:
        return run
    return run.model_copy(update={"status": "lost", "error": LOST})
