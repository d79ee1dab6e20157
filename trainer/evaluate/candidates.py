"""One model on one benchmark: loading and preparing it, scoring, and storing what was found."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.embed.chat_template import reading_of
from analysis.embed.embedding import plain_model
from analysis.embed.plain_model import PlainModel
from analysis.embed.server import EmbeddingServer
from analysis.text.bm25 import convention_of, tokens_of
from db.jobs.runner import JobHandle
from db.outcome.checkpoints import checkpoint_at
from db.outcome.evaluations import record_evaluation
from trainer.evaluate.benchmarks import Benchmark
from trainer.evaluate.intervals import about_questions, following_means
from trainer.evaluate.request import EvaluationStart
from trainer.evaluate.reranking import (
    FIRST_STAGE,
    PairScorer,
    is_reranker,
    load_reranker,
    score_reranker,
)
from trainer.evaluate.vector_cache import Caches, caches_of, identity_of
from trainer.model.backbone import load_backbone, load_model
from trainer.records.applied import (
    FIRST_TEXTS,
    chat_template_of,
    read_by_model,
    read_without_model,
)
from trainer.records.record import evaluation_record, model_record, run_record
from trainer.settings.settings import TrainSettings
from trainer.settings.template import DEFAULT_TEMPLATE, Template
from trainer.trec.files import RunFile, trec_files, write_run
from trainer.trec.scoring import score_run

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from trainer.evaluate.scoring import Scores

BM25 = "bm25"
GIVEN = ("query_prefix", "passage_prefix")


@dataclass(frozen=True)
class Candidate:
    """A model to score: its name or folder, and how it is prepared; of a TREC run what was read."""

    name: str
    memory: dict[str, Any]
    base_of: TrainSettings | None = None
    run: RunFile | None = None


@dataclass(frozen=True)
class Scorer:
    """A loaded model, a reranker, a TREC run, or none of them (BM25).

    template: what its questions get.
    """

    model: "SentenceTransformer | PlainModel | None"
    template: Template
    score_pairs: PairScorer | None = None
    run: RunFile | None = None


def load_scorer(wanted: EvaluationStart, candidate: Candidate) -> Scorer:
    """The candidate, loaded and prepared. Raises BadInput where it cannot be used."""
    given = Template(wanted.template or DEFAULT_TEMPLATE)
    if candidate.name == BM25:
        return Scorer(None, given)
    if candidate.run:
        return Scorer(None, given, run=candidate.run)
    if is_reranker(candidate.name):
        return Scorer(None, given, load_reranker(candidate.name))
    return Scorer(*_prepare(wanted, candidate))


def score_candidate(
    handle: JobHandle,
    wanted: EvaluationStart,
    candidate: Candidate,
    scorer: Scorer,
    benchmark: Benchmark,
    content: dict[str, Any],
    number: int,
    count: int,
    paraphrases: Mapping[str, Sequence[str]] | None = None,
    held_out: Mapping[str, Any] | None = None,
) -> "tuple[dict[str, Any], Scores]":
    """Score one candidate on one benchmark and store the evaluation; its report and its scores.

    number of count: for the progress. paraphrases: of instructions. held_out: for the
    record.
    """
    from trainer.evaluate.scoring import DEPTH, score_bm25, score_model

    def progress(done: int, total: int) -> None:
        handle.report(
            number * total + done,
            count * total,
            f"{candidate.name} on {benchmark.name}: {done}/{total} texts",
        )

    handle.check()
    model, template = scorer.model, scorer.template
    prompts: dict[str, str | None] = dict(model.prompts) if model else {}
    depth = FIRST_STAGE if scorer.score_pairs else DEPTH
    depth = len(benchmark.corpus) if benchmark.candidates else depth  # all candidates are ranked
    if scorer.run:
        scores, depth = score_run(scorer.run.scores, benchmark)
    elif scorer.score_pairs:
        scores = score_reranker(
            scorer.score_pairs,
            template,
            benchmark,
            progress=progress,
            check=handle.check,
            paraphrases=paraphrases,
        )
    elif model is None:
        scores = score_bm25(template, benchmark, check=handle.check, paraphrases=paraphrases)
    else:
        with _precision(model):
            scores = score_model(
                model,
                template,
                benchmark,
                progress=progress,
                check=handle.check,
                caches=_caches(handle, candidate, model),
                paraphrases=paraphrases,
            )
    record = _record(wanted, candidate, scorer, benchmark, content, depth, paraphrases, held_out)
    questions = about_questions(benchmark)
    means = following_means(scores.per_query, questions)
    with handle.store.write() as session:
        folder = Path(candidate.name).expanduser()
        checkpoint = checkpoint_at(session, str(folder.resolve())) if candidate.memory else None
        evaluation = record_evaluation(
            session,
            model=candidate.name,
            benchmark=benchmark.name,
            metrics=scores.metrics,
            per_query=scores.per_query,
            questions=questions,
            record=record,
            checkpoint_id=checkpoint.id if checkpoint else None,
            job_id=handle.id,
        )
        session.commit()
        report = {
            "model": candidate.name,
            "checkpoint_id": checkpoint.id if checkpoint else None,
            "evaluation_id": evaluation.id,
            "template": record["template"],
            "prompts": prompts,
            "metrics": scores.metrics,
            "reasons": scores.reasons,
            "intervals": {
                name: asdict(of)
                for name, of in means.items()
                if scores.metrics.get(name) is not None
            },
            "record": record,
        }
    if wanted.trec:
        # after the evaluation is stored: a file that cannot be written loses no scores
        file = trec_files(wanted.trec, benchmark.name, candidate.name)[0]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)  # of this job's earlier attempt: the command refused others
        write_run(file, scores.run, candidate.name)
    return report, scores


def _record(
    wanted: EvaluationStart,
    candidate: Candidate,
    scorer: Scorer,
    benchmark: Benchmark,
    content: dict[str, Any],
    depth: int,
    paraphrases: Mapping[str, Sequence[str]] | None,
    held_out: Mapping[str, Any] | None,
) -> dict[str, Any]:
    template, model = scorer.template, scorer.model
    # of the smallest ids: the order of lines is no part of a benchmark's content
    first = [benchmark.questions[name] for name in nsmallest(FIRST_TEXTS, benchmark.questions)]
    queries = [template.apply(each.instruction, each.query) for each in first]
    documents = [benchmark.corpus[name] for name in nsmallest(FIRST_TEXTS, benchmark.corpus)]
    is_bm25 = model is None and not scorer.run and not scorer.score_pairs
    by_bm25 = is_bm25 or (scorer.score_pairs is not None and not benchmark.candidates)

    def split(text: str) -> list[str]:
        return tokens_of([text], benchmark.language)[0]

    applied: dict[str, Any]
    if scorer.run:
        applied = {}
    elif scorer.score_pairs:
        applied = read_without_model(queries, documents)
    elif model is None:
        applied = read_without_model(queries, documents, split)
    else:
        applied = read_by_model(model, queries, documents, {each.query for each in first})
    is_given = model is not None and not candidate.memory and candidate.base_of is None
    return evaluation_record(
        benchmark,
        content,
        model=run_record(candidate.name, scorer.run.sha256)
        if scorer.run
        else model_record(candidate.name, trained_on=_trained_on(candidate)),
        first_stage=FIRST_STAGE if scorer.score_pairs else None,
        depth=depth,
        template=None if scorer.run else template.text,
        prompts=dict(model.prompts) if model else {},
        given_prefixes={key: getattr(wanted, key) for key in GIVEN} if is_given else None,
        chat_template=chat_template_of(model),
        paraphrases=paraphrases if benchmark.groups and not scorer.run else None,
        applied=applied,
        bm25=convention_of(benchmark.language) if by_bm25 else None,
        held_out=held_out,
    )


def _trained_on(candidate: Candidate) -> str | None:
    """The content of the release that a checkpoint of ours was trained on."""
    return str(candidate.memory["release"]["content_sha256"]) if candidate.memory else None


def _precision(model: "SentenceTransformer | PlainModel") -> AbstractContextManager[None]:
    if isinstance(model, PlainModel):
        return nullcontext()
    from trainer.evaluate.scoring import scoring_precision

    return scoring_precision(model.device)


def _caches(
    handle: JobHandle, candidate: Candidate, model: "SentenceTransformer | PlainModel"
) -> Caches:
    """Kept vectors of the queries and of the documents."""
    if isinstance(model, EmbeddingServer):
        known = f"{candidate.name} at {model.url}"
    else:
        known = identity_of(candidate.name, candidate.base_of)
        known += "" if isinstance(model, PlainModel) else reading_of(model)
    return caches_of(handle.store, known, model, handle.patiently)


def _prepare(
    wanted: EvaluationStart, candidate: Candidate
) -> "tuple[SentenceTransformer | PlainModel, Template]":
    if candidate.base_of:
        return load_backbone(candidate.base_of), candidate.base_of.parsed_template
    model = plain_model(candidate.name) or load_model(
        candidate.name, remote_code=wanted.remote_code
    )
    if candidate.memory:
        return model, Template(candidate.memory["template"])
    for prompt, key in zip(("query", "document"), GIVEN, strict=True):
        if prefix := getattr(wanted, key):
            model.prompts[prompt] = prefix
    return model, Template(wanted.template or DEFAULT_TEMPLATE)
