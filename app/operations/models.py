"""Models trained here: list, show, export for serving, store the vectors of passages."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from analysis.files.shared import here
from app.access.identity import Actor
from app.access.permissions import require
from app.operations.acting import reading
from db.corpus.datasets import get_dataset
from db.outcome.checkpoints import count_checkpoints, get_checkpoint, list_checkpoints
from db.requests import Request, option
from db.rows import Json, Listed, Row
from db.store.store import open_store
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

    settings: Json
    summary: Json


class ModelIndexed(Row):
    """Vectors of passages: how many there are, of how many numbers, and how many are new."""

    passages: int
    dimensions: int
    made: int
    seconds: float


class NetworkMeasured(Row):
    """One way to run a model: the largest difference of a number from its own vectors, measures."""

    network: str
    dimensions: int | None
    difference: float
    metrics: dict[str, float | None]


class ModelExported(Row):
    """A model written for serving: its networks' files, what each loses on which groups, and why a
    server would not load it."""

    path: str
    source: str
    measured_on: str
    groups: int
    matryoshka: tuple[int, ...]
    networks: dict[str, str]
    rows: tuple[NetworkMeasured, ...]
    server_problems: tuple[str, ...]


class ModelServe(Request):
    """Serve a checkpoint (number or folder) or a model by name as OpenAI's /v1/embeddings."""

    model: str = option(..., "Its number, folder or name.", names=(), metavar="CHECKPOINT")
    host: str = option("127.0.0.1", "Address to listen on.")
    port: int = option(8600, "Port to listen on.", ge=1, le=65535)


class ModelExport(Request):
    """Write a checkpoint for serving: merged weights, ONNX and OpenVINO, with what each loses."""

    model: str = option(..., "Its number or folder.", names=(), metavar="CHECKPOINT")
    out: str = option(..., "A new folder.", path="path")
    formats: tuple[Literal["onnx", "openvino"], ...] = option(
        (), "A format; default: both.", names=("--format",)
    )
    int8: bool = option(False, "Also in 8 bits, with its loss; needs a release.")
    release: str | None = option(
        None, "Release by number or folder, whose groups the loss is measured on."
    )


class ModelIndex(Request):
    """Store the vectors of a dataset's passages by a model, for Try it."""

    model: str = option(..., "Its number, folder or name.", names=(), metavar="MODEL")
    dataset: str = option(..., "Whose passages are embedded.")


def list_some(
    actor: Actor, dataset: str | None = None, *, limit: int | None = None, offset: int = 0
) -> Listed[ModelRow]:
    """List trained models, newest first, with the numbers that the other commands take.

    Raises NotFound.
    """
    with reading(actor, RIGHT) as session:
        dataset_id = get_dataset(session, dataset).id if dataset else None
        found = list_checkpoints(
            session, dataset_id=dataset_id, of_none=True, limit=limit, offset=offset
        )
        total = count_checkpoints(session, dataset_id=dataset_id, of_none=True)
    return Listed[ModelRow].page(rows_of(found), offset=offset, total=total)


def show(actor: Actor, model_id: int) -> ModelShown:
    """One trained model. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        found = get_checkpoint(session, model_id)
        (row,) = rows_of([found])
        settings = found.config.get("settings") or found.config
        return ModelShown.of(row, settings=settings, summary=found.summary)


def folder_of(actor: Actor, model: str) -> str:
    """The folder of a model's number; any other name as it is. Raises NotFound."""
    if model.isdecimal() and not Path(model).is_dir():
        model = show(actor, int(model)).path
    return str(here(model)) if model.startswith("/") else model


def export(actor: Actor, wanted: ModelExport, say: Callable[[str], None]) -> ModelExported:
    """Write a checkpoint (number or folder) for serving: merged weights, ONNX and OpenVINO.

    Each network is compared with the model's own vectors. The card gets what 8 bits and each
    trained Matryoshka dimension cost, on held-out groups of the release where it has some.
    """
    from trainer.data.release_files import find_release, read_release
    from trainer.export.exporting import FORMATS, export_for_serving

    require(actor, "server")
    groups, measured_on = [], ""
    if wanted.release is not None:
        found = read_release(find_release(open_store(), wanted.release))
        kept = [group for group in found.groups if not group.dropped]
        groups = [group for group in kept if group.set_aside]
        measured_on = f"{found.name}, held out"
        if not groups:
            groups, measured_on = kept, f"{found.name} (not held out: the model may know them)"
    report = export_for_serving(
        folder_of(actor, wanted.model),
        Path(wanted.out),
        formats=wanted.formats or FORMATS,
        int8=wanted.int8,
        groups=groups,
        measured_on=measured_on,
        say=say,
    )
    return ModelExported.model_validate({"path": wanted.out, **report})


def index(
    actor: Actor, wanted: ModelIndex, *, progress: Callable[[int, int], None]
) -> ModelIndexed:
    """Store the vectors of a dataset's passages by a model (checkpoint or name) for Try it.

    A checkpoint whose index stays reads those of its base model, and the other way round.
    """
    from trainer.model.backbone import load_model
    from trainer.serve.passage_vectors import vectors_by

    require(actor, "server")
    began, made = time.monotonic(), 0
    with reading(actor, RIGHT) as session:
        dataset_id = get_dataset(session, wanted.dataset).id

    def counted(done: int, total: int) -> None:
        nonlocal made
        made = done
        progress(done, total)

    loaded = load_model(folder_of(actor, wanted.model))
    found = vectors_by(open_store(), dataset_id, loaded, progress=counted)
    passages, dimensions = found.vectors.shape
    return ModelIndexed(
        passages=passages, dimensions=dimensions, made=made, seconds=time.monotonic() - began
    )


def rows_of(checkpoints: Sequence[Checkpoint]) -> tuple[ModelRow, ...]:
    """The rows of checkpoints."""
    return tuple(
        ModelRow.of(
            each,
            name=model_name(each.path),
            objective=(each.config.get("settings") or each.config).get("objective"),
            offline=bool((each.summary.get("release") or {}).get("offline")),
        )
        for each in checkpoints
    )
