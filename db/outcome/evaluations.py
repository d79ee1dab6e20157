"""Scores of models on benchmarks, with per-query values for paired comparisons."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.errors import NotFound
from db.tables import Checkpoint, Evaluation


def record_evaluation(
    session: Session,
    *,
    model: str,
    benchmark: str,
    metrics: Mapping[str, Any],
    per_query: Mapping[str, Any],
    questions: Mapping[str, Any] | None = None,
    record: Mapping[str, Any] | None = None,
    checkpoint_id: int | None = None,
    job_id: int | None = None,
) -> Evaluation:
    """Store one model's scores on one benchmark. Does not commit.

    A job that runs again replaces its own evaluation of that model on that benchmark.
    """
    if job_id is not None:
        for old in session.scalars(
            select(Evaluation).where(
                Evaluation.job_id == job_id,
                Evaluation.model == model,
                Evaluation.benchmark == benchmark,
            )
        ):
            session.delete(old)
    evaluation = Evaluation(
        model=model,
        benchmark=benchmark,
        metrics=dict(metrics),
        per_query=dict(per_query),
        questions=dict(questions or {}),
        record=dict(record or {}),
        checkpoint_id=checkpoint_id,
        job_id=job_id,
    )
    session.add(evaluation)
    session.flush()
    return evaluation


def get_evaluation(session: Session, evaluation_id: int) -> Evaluation:
    """The evaluation. Raises NotFound."""
    found = session.get(Evaluation, evaluation_id)
    if found is None:
        raise NotFound(
            f"no evaluation {evaluation_id}",
            "`evaluations create` creates one",
            code="evaluation_unknown",
        )
    return found


def list_evaluations(
    session: Session,
    *,
    benchmark: str | None = None,
    limit: int | None = 100,
    offset: int = 0,
) -> list[Evaluation]:
    """Evaluations, newest first."""
    query = select(Evaluation).order_by(Evaluation.id.desc()).limit(limit).offset(offset)
    if benchmark is not None:
        query = query.where(Evaluation.benchmark == benchmark)
    return list(session.scalars(query))


def count_evaluations(session: Session, *, benchmark: str | None = None) -> int:
    """How many evaluations there are: in all, or on a benchmark."""
    query = select(func.count()).select_from(Evaluation)
    if benchmark is not None:
        query = query.where(Evaluation.benchmark == benchmark)
    return session.scalar(query) or 0


def evaluations_of_checkpoint(session: Session, checkpoint_id: int) -> list[Evaluation]:
    """The newest evaluation of a checkpoint on each benchmark, in the order of their names."""
    query = select(Evaluation).where(Evaluation.checkpoint_id == checkpoint_id)
    found = {each.benchmark: each for each in session.scalars(query.order_by(Evaluation.id))}
    return [found[name] for name in sorted(found)]


def rows_by_query(evaluation: Evaluation) -> list[dict[str, Any]]:
    """A row per query: model, benchmark, query and its values."""
    common = {"model": evaluation.model, "benchmark": evaluation.benchmark}
    return [common | {"query": query} | values for query, values in evaluation.per_query.items()]


def list_benchmarks(session: Session) -> list[str]:
    """The names of the benchmarks that have evaluations."""
    query = select(Evaluation.benchmark).distinct().order_by(Evaluation.benchmark)
    return list(session.scalars(query))


class Scored(NamedTuple):
    """An evaluation without its per-query values; `base_model` is set for our checkpoints.

    `weights_sha256`: of the model as it was evaluated; `held_out`: the choice of held-out groups,
    whether people approved them and who validated them. None if not recorded.
    """

    model: str
    benchmark: str
    metrics: dict[str, Any]
    checkpoint_id: int | None
    base_model: str | None
    evaluation_id: int | None = None
    weights_sha256: str | None = None
    held_out: dict[str, Any] | None = None


def newest_scores(session: Session) -> list[Scored]:
    """The newest evaluation of every model on every benchmark, by benchmark and model."""
    newest = select(func.max(Evaluation.id)).group_by(Evaluation.model, Evaluation.benchmark)
    query = (
        select(
            Evaluation.model,
            Evaluation.benchmark,
            Evaluation.metrics,
            Evaluation.checkpoint_id,
            Checkpoint.base_model,
            Evaluation.id,
            Evaluation.record["model"]["weights_sha256"].as_string(),
            Evaluation.record["held_out"].as_json(),
        )
        .outerjoin(Checkpoint, Checkpoint.id == Evaluation.checkpoint_id)
        .where(Evaluation.id.in_(newest))
        .order_by(Evaluation.benchmark, Evaluation.model)
    )
    return [Scored(*row) for row in session.execute(query)]


def records_of(session: Session, evaluation_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The records of evaluations by id, without their values by query."""
    query = select(Evaluation.id, Evaluation.record).where(Evaluation.id.in_(evaluation_ids))
    return {ident: record or {} for ident, record in session.execute(query)}
