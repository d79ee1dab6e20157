"""What depends on a dataset or a run, so that neither may be deleted: a sentence each.

Releases; reviews (not the copies of those of other runs); judgments of people and of studies;
studies that are not closed, and those with messages; jobs and workers that are at work. Not the
run's own judgments: its validator made them, they are part of it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from db.archive.target import Target
from db.run.workers import silent_owners, working_owners
from db.tables import (
    Announcement,
    Group,
    Item,
    ItemMessage,
    Job,
    Judge,
    Judgment,
    Release,
    ReleaseGroup,
    ReleaseRun,
    Review,
    Study,
    StudyItem,
)

OPEN_JOBS = ("queued", "running")
MAX_NAMES = 5


def dependents(session: Session, target: Target) -> list[str]:
    """A sentence for everything that depends on it; empty if it may be deleted."""
    return [
        *_releases(session, target),
        *_reviews(session, target),
        *_studies(session, target),
        *_other_judgments(session, target),
        *_jobs(session, target),
        *_workers(session, target),
    ]


def studies_of(target: Target) -> ColumnElement[bool]:
    """Whether a study is of the target: sampled from it, or with items of it."""
    with_items = select(StudyItem.study_id).where(StudyItem.item_id.in_(target.item_ids))
    of_dataset = [Study.dataset_id == target.dataset.id] if target.run is None else []
    return or_(Study.run_id.in_(target.run_ids), Study.id.in_(with_items), *of_dataset)


def _releases(session: Session, target: Target) -> Iterator[str]:
    of_groups = select(ReleaseGroup.release_id).where(ReleaseGroup.group_id.in_(target.group_ids))
    of_runs = select(ReleaseRun.release_id).where(ReleaseRun.run_id.in_(target.run_ids))
    condition = or_(Release.id.in_(of_groups), Release.id.in_(of_runs))
    if target.run is None:
        condition = or_(condition, Release.dataset_id == target.dataset.id)
    for release in session.scalars(select(Release).where(condition).order_by(Release.id)):
        yield f"release {release.id} ({release.name})"


def _reviews(session: Session, target: Target) -> Iterator[str]:
    origin = aliased(Review)
    mine = and_(
        Review.group_id.in_(target.group_ids),
        # a copy is not lost with its group as long as the review that it copies is there
        ~exists().where(origin.id == Review.carried_from),
    )
    number, groups = session.execute(
        select(func.count(), func.count(Review.group_id.distinct())).where(mine)
    ).one()
    if number:
        people = session.scalars(select(Review.reviewed_by).where(mine).distinct())
        yield (
            f"{_counted(number, 'review')} of {_counted(groups, 'group')} by {_names(list(people))}"
        )


def _studies(session: Session, target: Target) -> Iterator[str]:
    judged = dict(
        session.execute(
            select(Judgment.study_id, func.count())
            .where(Judgment.study_id.is_not(None))
            .group_by(Judgment.study_id)
        ).all()
    )
    with_messages = or_(
        exists().where(ItemMessage.study_id == Study.id),
        exists().where(Announcement.study_id == Study.id),
    )
    query = select(Study, with_messages).where(studies_of(target)).order_by(Study.id)
    for study, messages in session.execute(query):
        number = judged.get(study.id, 0)
        if number or messages or study.status != "closed":
            more = f", {_counted(number, 'judgment')}" if number else ""
            more += ", messages" if messages else ""
            yield f"study {study.id} ({study.name}; {study.status}{more})"


def _other_judgments(session: Session, target: Target) -> Iterator[str]:
    """Judgments outside of studies that are not those of the run's validator."""
    query = (
        select(Judge.name, func.count())
        .join(Judgment, Judgment.judge_id == Judge.id)
        .join(Item, Item.id == Judgment.item_id)
        .join(Group, Group.id == Item.group_id)
        .where(
            Group.run_id.in_(target.run_ids),
            Judgment.study_id.is_(None),
            or_(Judgment.run_id.is_(None), Judgment.run_id != Group.run_id, Judge.kind != "model"),
        )
        .group_by(Judge.name)
        .order_by(Judge.name)
    )
    for name, number in session.execute(query):
        yield f"{_counted(number, 'judgment')} of {name}"


def _jobs(session: Session, target: Target) -> Iterator[str]:
    run_ids = {str(one) for one in session.scalars(target.run_ids)}
    study_ids = {str(one) for one in session.scalars(select(Study.id).where(studies_of(target)))}
    names = {target.dataset.name} if target.run is None else set()
    for job in session.scalars(select(Job).where(Job.status.in_(OPEN_JOBS)).order_by(Job.id)):
        config = job.config
        if (
            _named(config, "run_id", "run", "runs") & run_ids
            or _named(config, "study_id") & study_ids
            or _named(config, "name", "dataset", "datasets", "against_datasets") & names
        ):
            yield f"job {job.id} ({job.kind}, {job.status})"


def _named(config: Mapping[str, Any], *keys: str) -> set[str]:
    """What a job's config names under these keys, as texts."""
    found: set[str] = set()
    for key in keys:
        value = config.get(key)
        found |= {str(one) for one in (value if isinstance(value, list | tuple) else [value])}
    return found - {"None"}


def _workers(session: Session, target: Target) -> Iterator[str]:
    for run_id in session.scalars(target.run_ids):
        alive = set(working_owners(session, run_id)) - set(silent_owners(session, run_id))
        if alive:
            yield f"{_counted(len(alive), 'worker')} at work on run {run_id}"


def _names(names: list[str]) -> str:
    shown = sorted(names)[:MAX_NAMES]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
