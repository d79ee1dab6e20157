"""Counts of the store's contents, and the next step of the workflow."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, select, union_all
from sqlalchemy.orm import Session

from db.jobs.jobs import live_of_run
from db.outcome.analyses import ids_by_kind
from db.outcome.checkpoints import trained_on
from db.release.releases import with_groups_of
from db.run.groups import released
from db.run.progress import list_runs
from db.run.runs import RunSummary
from db.run.workers import worker_totals
from db.tables import (
    Checkpoint,
    Group,
    Job,
    Judge,
    Judgment,
    Pair,
    Release,
    ReleaseGroup,
    Review,
    Study,
)
from db.values import NONE

LOST = (
    "No worker is running: the last one was killed, or its machine went down. "
    "Answers are kept; choose Resume to continue."
)


@dataclass(frozen=True)
class Overview:
    """Counts of a dataset, or of everything; of groups those that were kept and dropped."""

    pairs: int
    kept: int
    dropped: int
    offline_runs: int
    judgments: int
    simulated_judgments: int
    reviews: int
    analyses: dict[str, int]
    releases: int
    checkpoints: int
    jobs_failed: int


def overview(session: Session, dataset_id: int | None = None) -> Overview:
    """Count what the store holds, all of it or of one dataset; failed jobs always of all.

    `judgments` are those of studies, not of the validator. Groups are not counted, their runs'
    counts are added; archived runs have theirs, too.
    """

    def within(query: Any, condition: ColumnElement[bool]) -> Any:
        return query if dataset_id is None else query.where(condition)

    def count(query: Any) -> int:
        return session.scalar(query) or 0

    def rows(table: type, condition: ColumnElement[bool]) -> Any:
        return within(select(func.count()).select_from(table), condition)

    runs = list_runs(session, dataset_id, archived=True)
    in_studies = within(
        select(func.count(Judgment.id)).where(Judgment.is_current, Judgment.study_id.is_not(None)),
        Judgment.study_id.in_(select(Study.id).where(Study.dataset_id == dataset_id)),
    )
    simulated = in_studies.join(Judge, Judge.id == Judgment.judge_id).where(Judge.simulated)
    of_reviewed = exists().where(  # asked of each review: they are fewer than groups
        Group.id == Review.group_id, Group.run_id.in_([run.id for run in runs])
    )
    return Overview(
        pairs=count(rows(Pair, Pair.dataset_id == dataset_id)),
        kept=sum(run.kept for run in runs),
        dropped=sum(run.dropped for run in runs),
        offline_runs=sum(run.offline for run in runs),
        judgments=count(in_studies),
        simulated_judgments=count(simulated),
        reviews=count(rows(Review, of_reviewed).where(Review.is_current)),
        analyses={kind: len(ids) for kind, ids in ids_by_kind(session, dataset_id).items()},
        releases=count(rows(Release, with_groups_of(dataset_id or 0))),
        checkpoints=count(rows(Checkpoint, trained_on(dataset_id or 0))),
        jobs_failed=count(
            select(func.count()).select_from(Job).where(Job.status.in_(["failed", "lost"]))
        ),
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
    of_run = Group.run_id == run_id, Group.verdict == "kept"
    touched = union_all(
        select(Review.group_id).where(Review.is_current), select(ReleaseGroup.group_id)
    )
    rows = session.execute(
        select(review, is_released, is_used, func.count())
        .select_from(Group)
        .outerjoin(Review, and_(Review.group_id == Group.id, Review.is_current))
        .where(*of_run, Group.id.in_(touched))  # of the others nothing has to be looked up
        .group_by(review, is_released, is_used)
    )
    found = [KeptGroups(*row) for row in rows]
    kept = session.scalar(select(func.count()).select_from(Group).where(*of_run)) or 0
    others = kept - sum(each.groups for each in found)
    return found + [KeptGroups(NONE, False, False, others)] * (others > 0)


def with_actual_status(session: Session, run: RunSummary) -> RunSummary:
    """The run, with status `lost` if it is marked running but has neither worker nor live job."""
    if run.status != "running" or live_of_run(session, run.id):
        return run
    if worker_totals(session, run.id).alive:
        return run
    return run.model_copy(update={"status": "lost", "error": LOST})
