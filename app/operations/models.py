"""Models trained here: list, show."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from app.access.identity import Actor
from app.operations.acting import reading
from app.operations.rows import Listed, Row
from db.corpus.datasets import get_dataset
from db.outcome.checkpoints import count_checkpoints, get_checkpoint, list_checkpoints
from db.tables import Checkpoint
from trainer.report.compared.measures import model_name

RIGHT = "train"


class ModelRow(Row):
    """A trained model in a list; `offline`: of data without a language model."""

    id: int
    name: str
    base_model: str
    objective: str | None
    release_id: int | None
    offline: bool
    job_id: int | None
    path: str
    created_at: datetime


class ModelShown(ModelRow):
    """A trained model with its settings and what its training reported."""

    settings: dict[str, Any]
    summary: dict[str, Any]


def list_some(
    actor: Actor, dataset: str | None = None, *, limit: int = 100, offset: int = 0
) -> Listed[ModelRow]:
    """Trained models, newest first, of one dataset or of all. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        dataset_id = get_dataset(session, dataset).id if dataset else None
        found = list_checkpoints(session, dataset_id=dataset_id, limit=limit, offset=offset)
        total = count_checkpoints(session, dataset_id=dataset_id)
    after = offset + len(found)
    return Listed[ModelRow](data=rows_of(found), next=after if after < total else None, total=total)


def show(actor: Actor, model_id: int) -> ModelShown:
    """One trained model. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        found = get_checkpoint(session, model_id)
        (row,) = rows_of([found])
        settings = found.config.get("settings") or found.config
        return ModelShown(**row.model_dump(), settings=settings, summary=found.summary)


def rows_of(checkpoints: Sequence[Checkpoint]) -> tuple[ModelRow, ...]:
    """The rows of checkpoints."""
    return tuple(
        ModelRow(
            id=each.id,
            name=model_name(each.path),
            base_model=each.base_model,
            objective=(each.config.get("settings") or each.config).get("objective"),
            release_id=each.release_id,
            offline=bool((each.summary.get("release") or {}).get("offline")),
            job_id=each.job_id,
            path=each.path,
            created_at=each.created_at,
        )
        for each in checkpoints
    )
