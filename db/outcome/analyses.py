"""Stored analyses, found again by the hash of their inputs: nothing is computed twice."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session, defer

from db.errors import NotFound
from db.tables import Analysis, Dataset


def find_analysis(session: Session, kind: str, inputs_sha256: str) -> Analysis | None:
    """The analysis of that kind of exactly these inputs, None if there is none yet."""
    return session.scalars(
        select(Analysis).where(Analysis.kind == kind, Analysis.inputs_sha256 == inputs_sha256)
    ).one_or_none()


def store_analysis(
    session: Session,
    *,
    kind: str,
    inputs_sha256: str,
    config: dict[str, Any],
    result: dict[str, Any],
    payload: bytes | None = None,
    dataset_id: int | None = None,
    job_id: int | None = None,
) -> Analysis:
    """Store a result; an existing one for the same inputs is returned unchanged.

    `dataset_id` is for an analysis of a single dataset. Does not commit.
    """
    stored = find_analysis(session, kind, inputs_sha256)
    if stored is not None:
        return stored
    analysis = Analysis(
        kind=kind,
        inputs_sha256=inputs_sha256,
        config=config,
        result=result,
        payload=payload,
        dataset_id=dataset_id,
        job_id=job_id,
    )
    session.add(analysis)
    session.flush()
    return analysis


def replace_analysis(
    session: Session,
    *,
    kind: str,
    inputs_sha256: str,
    config: dict[str, Any],
    result: dict[str, Any],
    dataset_id: int,
    job_id: int | None = None,
) -> Analysis:
    """Store a result and delete the older ones of the same kind, dataset and config.

    For what changes with every judgment: the newest is kept. Does not commit.
    """
    query = select(Analysis.id, Analysis.config, Analysis.inputs_sha256)
    query = query.where(Analysis.kind == kind, Analysis.dataset_id == dataset_id)
    older = [
        key
        for key, before, inputs in session.execute(query)
        if before == config and inputs != inputs_sha256
    ]
    if older:
        session.execute(delete(Analysis).where(Analysis.id.in_(older)))
    return store_analysis(
        session,
        kind=kind,
        inputs_sha256=inputs_sha256,
        config=config,
        result=result,
        dataset_id=dataset_id,
        job_id=job_id,
    )


def get_analysis(session: Session, analysis_id: int) -> Analysis:
    """The analysis of that id. Raises NotFound."""
    found = session.get(Analysis, analysis_id)
    if found is None:
        raise NotFound(
            f"no analysis {analysis_id}",
            "choose one that is listed",
            code="analysis_unknown",
        )
    return found


def analyses_of_dataset(session: Session, kind: str, dataset_id: int) -> Iterator[Analysis]:
    """The analyses of that kind of this dataset alone, newest first, read one by one."""
    query = select(Analysis.id).where(Analysis.kind == kind, Analysis.dataset_id == dataset_id)
    for analysis_id in session.scalars(query.order_by(Analysis.id.desc())).all():
        yield session.get_one(Analysis, analysis_id)


def list_analyses(session: Session, kind: str, *, dataset_id: int | None = None) -> list[Analysis]:
    """The newest 50 analyses of that kind, newest first; their payload is loaded when it is read.

    dataset_id: only those that have this dataset among their corpora, or no dataset at all.
    """
    query = select(Analysis).where(Analysis.kind == kind).order_by(Analysis.id.desc())
    if dataset_id is not None:
        query = query.where(Analysis.id.in_(ids_by_kind(session, dataset_id).get(kind, ())))
    return list(session.scalars(query.limit(50).options(defer(Analysis.payload))))


def ids_by_kind(session: Session, dataset_id: int | None = None) -> dict[str, list[int]]:
    """The ids of the analyses by kind: of all, or of those that have this dataset, or releases and
    files alone, among their corpora.

    One of a single dataset is stored with its id, one of several with their names.
    """
    found: dict[str, list[int]] = {}
    name = session.scalar(select(Dataset.name).where(Dataset.id == dataset_id))
    query = select(Analysis.id, Analysis.kind, Analysis.config, Analysis.dataset_id)
    for key, kind, config, only in session.execute(query):
        names = config.get("datasets") or ()
        is_of_none = only is None and not names
        if dataset_id in (None, only) or name in names or is_of_none:
            found.setdefault(kind, []).append(key)
    return found
