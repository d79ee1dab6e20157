"""Evaluations: create, list, show, compare."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict, Field

from app.access.identity import Actor
from app.access.permissions import require
from app.jobs.places import require_no_files
from app.operations.acting import Launch, reading
from app.operations.models import ModelRow, folder_of, rows_of
from db.errors import BadInput, NotFound
from db.jobs import jobs
from db.outcome.checkpoints import list_checkpoints
from db.outcome.evaluations import (
    Scored,
    count_evaluations,
    get_evaluation,
    list_benchmarks,
    list_evaluations,
    newest_scores,
    records_of,
)
from db.outcome.evaluations import rows_by_query as rows_of_evaluation
from db.release.releases import list_releases
from db.rows import Listed, Number, Row
from db.tables import Checkpoint, Evaluation
from trainer.evaluate.measures.rankings import average, measure, without_relevant
from trainer.evaluate.request import EvaluationStart
from trainer.records.circular import circular_sentences
from trainer.records.pinning import benchmark_content, write_pin
from trainer.records.record import content_together
from trainer.records.rows import EvaluationRecord, Metrics
from trainer.report.compared.conditions import library_notes, unlike
from trainer.report.compared.differences import METHOD, Difference, difference_rows
from trainer.report.compared.measures import is_trained, model_name
from trainer.report.compared.ordinary import is_ordinary
from trainer.suites.registry import read_benchmarks
from trainer.trec.files import read_qrels, read_run

RIGHT = "evaluate"
T = TypeVar("T")


class EvaluationRow(Row):
    """The scores of a model on a benchmark, in a list; without a record it is not comparable.

    `trained`: with InF Studio, None where that is unknown.
    """

    id: int
    name: str
    model: str
    benchmark: str
    metrics: Metrics
    has_record: bool
    trained: bool | None
    checkpoint_id: int | None
    job_id: int | None
    created_at: datetime


class EvaluationShown(EvaluationRow):
    """An evaluation with the record of its conditions; `queries`: with stored values."""

    queries: int
    record: EvaluationRecord


class Compared(Listed[Difference]):
    """Differences of evaluations to a base on its benchmark: a row per model and measure."""

    id: int
    name: str
    benchmark: str
    base: str
    notes: tuple[str, ...]
    method: str


class Pinned(Row):
    """The content of a benchmark folder; `file`: where it is pinned, if it was written."""

    sha256: str
    benchmarks: list[str]
    documents: int
    questions: int
    file: str | None


class QueryValues(Row):
    """The measures of one query."""

    query_id: str
    metrics: dict[str, float]


class QueryScores(Row):
    """What a model scored on a query of a benchmark, with a key for each measure."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Number | None] = Field(init=False)
    model: str
    benchmark: str
    query: str


class Measured(Listed[QueryValues]):
    """The measures of a run file: by query, their means, and which queries have no value."""

    metrics: dict[str, float | None]
    queries: int
    without_relevant: list[str]
    missing: list[str]


class EvaluationOptions(Row):
    """What an evaluation may name: trained models, releases (names by id), and the benchmarks
    that have scores."""

    models: tuple[ModelRow, ...]
    releases: dict[int, str]
    benchmarks: tuple[str, ...]


def create(actor: Actor, wanted: EvaluationStart, launch: Launch[T]) -> T:
    """Score models on held-out groups or a benchmark.

    Raises Refused where someone other than an admin names files of the server, BadInput where the
    folder for files is there.
    """
    require_no_files(require(actor, RIGHT), "evaluate", wanted.config())
    if wanted.trec and Path(wanted.trec).exists():
        raise BadInput(f"{wanted.trec} exists", "choose another folder", code="request_invalid")
    models = tuple(folder_of(actor, each) for each in wanted.models)
    return launch(actor, "evaluate", wanted.model_copy(update={"models": models}))


def options(actor: Actor) -> EvaluationOptions:
    """What an evaluation may name."""
    with reading(actor, RIGHT) as session:
        return EvaluationOptions(
            models=rows_of(list_checkpoints(session)),
            releases={each.id: each.name for each in list_releases(session)},
            benchmarks=tuple(list_benchmarks(session)),
        )


def list_some(
    actor: Actor, benchmark: str | None = None, *, limit: int | None = None, offset: int = 0
) -> Listed[EvaluationRow]:
    """Stored evaluations, newest first, on one benchmark or on all."""
    with reading(actor, RIGHT) as session:
        found = list_evaluations(session, benchmark=benchmark, limit=limit, offset=offset)
        total = count_evaluations(session, benchmark=benchmark)
        rows = tuple(map(row_of, found))
    return Listed[EvaluationRow].page(rows, offset=offset, total=total)


def show(actor: Actor, evaluation_id: int) -> EvaluationShown:
    """One evaluation with its record. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        found = get_evaluation(session, evaluation_id)
        more = {"queries": len(found.per_query), "record": found.record or {}}
        return EvaluationShown.of(row_of(found), **more)


def row_of(found: Evaluation) -> EvaluationRow:
    """The row of a stored evaluation."""
    about = {"has_record": bool(found.record), "trained": is_trained(found)}
    return EvaluationRow.of(found, name=model_name(found.model), **about)


def compare(actor: Actor, base: int, others: Sequence[int]) -> Compared:
    """Differences of evaluations to a base.

    Raises NotFound; BadInput, with what differs in words, where their conditions differ.
    """
    with reading(actor, RIGHT) as session:
        first = get_evaluation(session, base)
        rest = [get_evaluation(session, each) for each in dict.fromkeys(others) if each != base]
    if not rest:
        raise BadInput(
            "give at least two different evaluations",
            "name another one to compare with",
            code="request_invalid",
        )
    if reasons := unlike(first, rest):
        lines = [f"evaluation {key}: {', '.join(texts)}" for key, texts in reasons.items()]
        raise BadInput(
            f"not comparable with evaluation {base}: {'; '.join(lines)}",
            "score both with the same data and settings: `evaluations create`",
            code="evaluations_not_comparable",
        )
    if not first.per_query:
        raise BadInput(
            "a suite's mean has no values by query",
            "compare the evaluations of its sets",
            code="suite_mean_without_values",
        )
    return Compared.all(
        difference_rows(first, rest),
        id=first.id,
        name=model_name(first.model),
        benchmark=first.benchmark,
        base=first.model,
        notes=tuple(
            f"evaluation {key} was made with {', '.join(texts)}"
            for key, texts in library_notes(first, rest).items()
        ),
        method=METHOD,
    )


def pin(actor: Actor, folder: Path, *, write: bool = False) -> Pinned:
    """The sha256 of the content of a benchmark folder of the server, written there if so wanted.

    Raises Refused, and BadInput for what is no benchmark.
    """
    require(actor, "server")
    benchmarks = read_benchmarks(folder.resolve())
    contents = [benchmark_content(benchmark) for benchmark in benchmarks]
    found = content_together(contents)
    return Pinned(
        sha256=found["sha256"],
        benchmarks=[benchmark.name for benchmark in benchmarks],
        documents=found["documents"],
        questions=found["questions"],
        file=str(write_pin(folder.resolve(), contents)) if write else None,
    )


def measure_files(actor: Actor, run_file: Path, qrels_file: Path) -> Measured:
    """Measure a TREC run file by a qrels file, without a benchmark or the store.

    The values are trec_eval's with -c: a judged query that the run lacks scores 0. Queries without
    any relevant document are in no mean. Raises Refused, BadInput.
    """
    require(actor, "server")
    run, judgments = read_run(run_file).scores, read_qrels(qrels_file)
    per_query = measure(run, judgments)
    return Measured.all(
        [QueryValues(query_id=name, metrics=found) for name, found in per_query.items()],
        metrics=average(per_query),
        queries=len(per_query),
        without_relevant=without_relevant(judgments),
        missing=sorted(per_query.keys() - run.keys()),
    )


def of_benchmark(actor: Actor, benchmark: str) -> list[Evaluation]:
    """The newest evaluations on a benchmark, with their values by query."""
    with reading(actor, RIGHT) as session:
        return list_evaluations(session, benchmark=benchmark)


def stored(actor: Actor, evaluation_ids: Iterable[int]) -> list[Evaluation]:
    """Evaluations with their values by query. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        return [get_evaluation(session, each) for each in evaluation_ids]


def values(actor: Actor, evaluation_id: int) -> list[QueryScores]:
    """The values of every query of an evaluation. Raises NotFound."""
    (found,) = stored(actor, [evaluation_id])
    return [QueryScores(**each) for each in rows_of_evaluation(found)]


def scores(actor: Actor) -> list[Scored]:
    """The newest scores of every model on every benchmark."""
    with reading(actor, RIGHT) as session:
        return newest_scores(session)


def of_dataset(
    actor: Actor, dataset_id: int, *, right: str = RIGHT
) -> tuple[list[Scored], list[Checkpoint]]:
    """The newest scores of untrained models and of checkpoints trained on the dataset, and these
    checkpoints, newest first."""
    with reading(actor, right) as session:
        checkpoints = list_checkpoints(session, dataset_id=dataset_id)
        found = newest_scores(session)
    known = {None, *(each.id for each in checkpoints)}
    return [each for each in found if each.checkpoint_id in known], checkpoints


def records(actor: Actor, evaluation_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The records of evaluations by id."""
    with reading(actor, RIGHT) as session:
        return records_of(session, evaluation_ids)


def ordinary(actor: Actor, models: Collection[str]) -> list[Evaluation]:
    """The newest evaluation of each of the models on every benchmark without instructions."""
    found = [each for each in scores(actor) if each.model in models]
    ids = [each.evaluation_id for each in found if each.evaluation_id is not None]
    return [each for each in stored(actor, ids) if is_ordinary(each)]


def requests(actor: Actor, job_ids: Iterable[int]) -> dict[int, EvaluationStart]:
    """What was requested of the jobs that made evaluations, as far as this version reads it.

    A job that the actor may not see is left out: its evaluation may be visible by its checkpoint.
    """
    found = {}
    with reading(actor, RIGHT) as session:
        for job_id in job_ids:
            with suppress(BadInput, NotFound):
                found[job_id] = EvaluationStart.read(jobs.get_job(session, job_id).config)
    return found


def circular(actor: Actor, scored: Iterable[Scored]) -> list[str]:
    """Which of the scores are circular, a sentence per benchmark."""
    with reading(actor, RIGHT) as session:
        return circular_sentences(session, scored)
