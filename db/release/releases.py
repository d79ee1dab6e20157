"""The records of releases, with their groups, recipe and pushes."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from db.errors import NotFound
from db.tables import Job, Prompt, Recipe, Release, ReleaseGroup
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
    """Store a release and its groups: id, split, sha256 of the row.

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
        raise NotFound(f"no release {release_id}: `inf export --dataset NAME --out DIR` makes one")
    return release


def list_releases(session: Session, dataset_id: int | None = None) -> list[Release]:
    """Releases, newest first, of all datasets or of one."""
    query = select(Release).order_by(Release.id.desc())
    if dataset_id is not None:
        query = query.where(Release.dataset_id == dataset_id)
    return list(session.scalars(query))


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
