"""Trained models: where they are, from which release and with which settings."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from db.errors import NotFound
from db.release.releases import with_groups_of
from db.tables import Checkpoint, Release


def record_checkpoint(
    session: Session,
    *,
    path: str,
    base_model: str,
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    release_id: int | None = None,
    job_id: int | None = None,
) -> Checkpoint:
    """Store a trained model; one checkpoint even for a job that ends twice. Does not commit."""
    found = None
    if job_id is not None:
        found = session.scalars(select(Checkpoint).where(Checkpoint.job_id == job_id)).first()
    if found is None:
        found = Checkpoint(path=path, base_model=base_model, config=dict(config), job_id=job_id)
        session.add(found)
    found.path, found.base_model, found.release_id = path, base_model, release_id
    found.config, found.summary = dict(config), dict(summary)
    session.flush()
    return found


def get_checkpoint(session: Session, checkpoint_id: int) -> Checkpoint:
    """The checkpoint. Raises NotFound."""
    found = session.get(Checkpoint, checkpoint_id)
    if found is None:
        raise NotFound(
            f"no checkpoint {checkpoint_id}",
            "`trainings create` creates one",
            code="checkpoint_unknown",
        )
    return found


def checkpoint_at(session: Session, path: str) -> Checkpoint | None:
    """The newest checkpoint that was written to that folder, if any."""
    query = select(Checkpoint).where(Checkpoint.path == path).order_by(Checkpoint.id.desc())
    return session.scalars(query.limit(1)).first()


def list_checkpoints(
    session: Session,
    *,
    dataset_id: int | None = None,
    job_id: int | None = None,
    of_none: bool = False,
    limit: int | None = 100,
    offset: int = 0,
) -> list[Checkpoint]:
    """Checkpoints, newest first: all, or those trained on a release of a dataset, or by a job.

    of_none: also those trained on a folder that is no release of the store.
    """
    query = select(Checkpoint).order_by(Checkpoint.id.desc()).limit(limit).offset(offset)
    if dataset_id is not None:
        query = query.where(trained_on(dataset_id, of_none=of_none))
    if job_id is not None:
        query = query.where(Checkpoint.job_id == job_id)
    return list(session.scalars(query))


def count_checkpoints(
    session: Session, *, dataset_id: int | None = None, of_none: bool = False
) -> int:
    """How many checkpoints `list_checkpoints` lists in all."""
    query = select(func.count()).select_from(Checkpoint)
    if dataset_id is not None:
        query = query.where(trained_on(dataset_id, of_none=of_none))
    return session.scalar(query) or 0


def trained_on(dataset_id: int, *, of_none: bool = False) -> ColumnElement[bool]:
    """The condition that a checkpoint was trained on a release with groups of the dataset.

    of_none: or on no release of the store.
    """
    is_its = Checkpoint.release_id.in_(select(Release.id).where(with_groups_of(dataset_id)))
    return or_(is_its, Checkpoint.release_id.is_(None)) if of_none else is_its
