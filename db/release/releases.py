"""The records of releases, with their groups, recipe and pushes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, insert, or_, select
from sqlalchemy.orm import Session

from db.errors import NotFound
from db.tables import Job, Prompt, Recipe, Release, ReleaseGroup, ReleaseRun, Review
from db.tables import Run as RunTable

BATCH = 2000


def pushes(session: Session) -> dict[int, list[Job]]:
    """The successful pushes by release, the newest first."""
    found: dict[int, list[Job]] = {}
    query = select(Job).where(Job.kind == "push", Job.status == "done").order_by(Job.id.desc())
    for job in session.scalars(query):
        release_id = job.config.get("release_id")
        if release_id is not None and (job.result or {}).get("pushed"):
            found.setdefault(int(release_id), []).append(job)
    return found


def record_release(
    session: Session,
    *,
    dataset_id: int,
    run_ids: Sequence[int],
    name: str,
    content_sha256: str,
    path: str,
    format: str,
    filter: dict[str, Any],
    counts: dict[str, Any],
    offline: bool,
    created_by: str,
    groups: Iterable[tuple[int, str, str]],
) -> Release:
    """Store a release, its runs, and its groups: id, split, sha256 of the row.

    `dataset_id` is the first run's dataset.
    The card is stored later: it needs the id. Does not commit.
    """
    release = Release(
        dataset_id=dataset_id,
        name=name,
        content_sha256=content_sha256,
        path=path,
        format=format,
        filter=filter,
        counts=counts,
        card="",
        offline=offline,
        created_by=created_by,
    )
    session.add(release)
    session.flush()
    session.add_all(ReleaseRun(release_id=release.id, run_id=run_id) for run_id in run_ids)
    session.flush()
    batch: list[dict[str, Any]] = []
    for group_id, split, row_sha256 in groups:
        batch.append(
            {
                "release_id": release.id,
                "group_id": group_id,
                "split": split,
                "row_sha256": row_sha256,
            }
        )
        if len(batch) == BATCH:
            session.execute(insert(ReleaseGroup), batch)
            batch = []
    if batch:
        session.execute(insert(ReleaseGroup), batch)
    return release


def get_release(session: Session, release_id: int) -> Release:
    """The release. Raises NotFound."""
    release = session.get(Release, release_id)
    if release is None:
        raise NotFound(
            f"no release {release_id}",
            "`releases create NAME out=DIR` makes one",
            code="release_unknown",
        )
    return release


def runs_of_filter(filter: Mapping[str, Any]) -> list[int]:
    """The runs that a release's filter names, in the order of precedence."""
    named = filter.get("runs") or [filter.get("run_id")]
    return [int(number) for number in named if number is not None]


def datasets_of_release(session: Session, release: Release) -> set[int]:
    """The ids of the datasets that a release has groups of."""
    of_runs = select(RunTable.dataset_id).join(ReleaseRun, ReleaseRun.run_id == RunTable.id)
    found = session.scalars(of_runs.where(ReleaseRun.release_id == release.id))
    return {release.dataset_id, *found}


def runs_of_releases_at(session: Session, paths: Collection[str]) -> set[int]:
    """The ids of the runs with groups in the releases in these folders."""
    query = select(ReleaseRun.run_id).join(Release, Release.id == ReleaseRun.release_id)
    return set(session.scalars(query.where(Release.path.in_(paths)))) if paths else set()


def list_releases(session: Session, dataset_id: int | None = None) -> list[Release]:
    """Releases, newest first, of all datasets or those with groups of one."""
    query = select(Release).order_by(Release.id.desc())
    if dataset_id is not None:
        query = query.where(with_groups_of(dataset_id))
    return list(session.scalars(query))


def with_groups_of(dataset_id: int) -> ColumnElement[bool]:
    """The condition that a release has groups of the dataset, alone or among others."""
    of_runs = select(ReleaseRun.release_id).join(RunTable, RunTable.id == ReleaseRun.run_id)
    in_run = Release.id.in_(of_runs.where(RunTable.dataset_id == dataset_id))
    return or_(Release.dataset_id == dataset_id, in_run)


def find_release_at(session: Session, path: str, content_sha256: str) -> Release | None:
    """The newest release with this content in this folder, None if there is none."""
    return session.scalars(
        select(Release)
        .where(Release.path == path, Release.content_sha256 == content_sha256)
        .order_by(Release.id.desc())
        .limit(1)
    ).first()


def recipe_of_run(session: Session, run_id: int) -> tuple[Recipe, dict[str, Prompt]]:
    """The recipe of a run and its prompts by sha256."""
    recipe = session.scalars(
        select(Recipe).join(RunTable, RunTable.recipe_id == Recipe.id).where(RunTable.id == run_id)
    ).one()
    wanted = {
        stage["prompt_sha256"]
        for stage in recipe.body.get("stages", {}).values()
        if "prompt_sha256" in stage
    }
    prompts = session.scalars(select(Prompt).where(Prompt.sha256.in_(wanted)))
    return recipe, {prompt.sha256: prompt for prompt in prompts}


# Counts of a release, shown where one is chosen for training.
@dataclass(frozen=True)
class ReleaseOverview:
    """Groups by split, and how many a person approved (by the current reviews)."""

    splits: dict[str, int]
    approved: int

    @property
    def approved_share(self) -> float | None:
        """Share of all groups; None for an empty release."""
        groups = sum(self.splits.values())
        return self.approved / groups if groups else None


def release_overview(session: Session, release: Release) -> ReleaseOverview:
    """The counts of a release: one query for splits, one for approvals."""
    splits = session.execute(
        select(ReleaseGroup.split, func.count())
        .where(ReleaseGroup.release_id == release.id)
        .group_by(ReleaseGroup.split)
        .order_by(ReleaseGroup.split)
    )
    approved = session.scalar(
        select(func.count())
        .select_from(ReleaseGroup)
        .join(
            Review,
            and_(
                Review.group_id == ReleaseGroup.group_id,
                Review.is_current,
                Review.action == "approve",
            ),
        )
        .where(ReleaseGroup.release_id == release.id)
    )
    return ReleaseOverview(dict(splits.all()), approved or 0)


def licence_of_card(card: str) -> str:
    """The licence in the card's front matter (`license:`), "" if it names none."""
    head = card.split("---", 2)[1] if card.startswith("---") and card.count("---") > 1 else ""
    for line in head.splitlines():
        name, _, value = line.partition(":")
        licence = value.strip().strip("\"'")
        if name in ("license", "license_name") and licence not in ("", "other"):
            return licence
    return ""
