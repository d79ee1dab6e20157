"""Scoring a model on a benchmark: encode, search, measure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.evaluate.benchmarks import Benchmark
from trainer.evaluate.following import (
    CONTROLS,
    FOLLOWING,
    INSTRUCTION_CONTROL,
    ON_GROUPS,
    QUERY_CONTROL,
    ScoreTexts,
    bm25_rank,
    bm25_scores,
    comply_by_group,
    following_of,
    group_scores,
    mean_by_control,
    stability_by_group,
    texts_of,
)
from trainer.evaluate.measures.among_all import AMONG_ALL
from trainer.evaluate.measures.compliance import compliance
from trainer.evaluate.measures.rankings import (
    average,
    measure,
    p_mrr,
    p_mrr_by_query,
    rank_of,
    robustness,
)
from trainer.evaluate.searching import search
from trainer.model.backbone import question_encoder
from trainer.settings.template import Template

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

    from analysis.embed.plain_model import PlainModel
    from trainer.evaluate.vector_cache import Caches, VectorCache

DEPTH = 1000
TEXTS_AT_ONCE = 256
BATCH = 32
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Scores:
    """Means, and the values of every query: {query id: {measure: value}}.

    ranks: of the changed documents, by question. run: the rankings that were measured. of_groups:
    of a benchmark with groups, what a model gave each one's texts for its own passages
    (`following.group_scores`).
    """

    metrics: dict[str, float | None]
    per_query: dict[str, dict[str, float]]
    reasons: dict[str, str]
    ranks: dict[str, dict[str, int]] = field(default_factory=dict)
    run: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    of_groups: Mapping[str, np.ndarray] = field(default_factory=dict)


def score_model(
    model: "SentenceTransformer | PlainModel",
    template: Template,
    benchmark: Benchmark,
    *,
    progress: Progress | None = None,
    check: Callable[[], None] | None = None,
    caches: "Caches | None" = None,
    controls: bool = True,
    paraphrases: Mapping[str, Sequence[str]] | None = None,
) -> Scores:
    """Rank the benchmark's documents with the model and measure.

    caches: of the queries' and of the documents' vectors, where they are kept. controls: of a
    benchmark with groups, also measure with the query alone and with the instruction alone, SICR,
    WISE and the stability under `paraphrases` of instructions.
    """
    control_texts = {
        control: texts_of(benchmark, template, control) for control in CONTROLS if controls
    }
    if paraphrases and controls:
        control_texts["paraphrases"] = [
            template.apply(other, benchmark.questions[name].query)
            for group in benchmark.groups.values()
            for name in group.questions
            for other in paraphrases.get(benchmark.questions[name].instruction, ())
        ]
    plain = {question.query for question in benchmark.questions.values()}
    names = list(benchmark.questions)
    questions = [
        template.apply(question.instruction, question.query)
        for question in benchmark.questions.values()
    ]
    documents = list(benchmark.corpus.values())
    texts = [*questions, *(text for of in control_texts.values() for text in of)]
    total = len(set(texts)) + len(set(documents))
    done = 0

    def count(texts: int) -> None:
        nonlocal done
        done += texts
        if progress:
            progress(done, total)
        if check:
            check()

    of_questions, of_documents = caches or (None, None)
    vectors = encode_unique(question_encoder(model, plain), texts, count, of_questions)
    document_vectors = encode_unique(model.encode_document, documents, count, of_documents)
    run, ranks = _rank_all(benchmark, names, vectors[: len(names)], document_vectors, check)
    vector_of = dict(zip(texts, vectors, strict=True))
    document_of = dict(zip(benchmark.corpus, document_vectors, strict=True))

    def score(texts: Sequence[str], wanted: Sequence[Sequence[str]]) -> list[list[float]]:
        return [
            [float(document_of[name] @ vector_of[text]) for name in of]
            for text, of in zip(texts, wanted, strict=True)
        ]

    ids = list(benchmark.corpus)

    def rank(texts: Sequence[str], depth: int) -> list[dict[str, float]]:
        rows = np.stack([vector_of[text] for text in texts])
        return search(rows, document_vectors, ids, depth=depth, check=check).best

    following = following_of(benchmark, template, score, controls, rank)
    beside = beside_following(benchmark, template, score, paraphrases) if controls else {}
    scores = measure_run(benchmark, run, ranks, following, beside)
    if not (benchmark.groups and controls):
        return scores
    return replace(scores, of_groups=group_scores(benchmark, template, score))


def beside_following(
    benchmark: Benchmark,
    template: Template,
    score: ScoreTexts,
    paraphrases: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, dict[str, float]]:
    """{group: {sicr, wise, paraphrase-stability}}: of held-out groups; empty without groups."""
    if not benchmark.groups:
        return {}
    found = comply_by_group(benchmark, template, score)
    for key, values in stability_by_group(benchmark, template, score, paraphrases or {}).items():
        found.setdefault(key, {}).update(values)
    return found


def score_bm25(
    template: Template,
    benchmark: Benchmark,
    *,
    check: Callable[[], None] | None = None,
    paraphrases: Mapping[str, Sequence[str]] | None = None,
) -> Scores:
    """Rank with BM25 (the baseline without a model); instruction and query are one bag of words."""
    from analysis.text.bm25 import Bm25

    ids = list(benchmark.corpus)
    index = Bm25(list(benchmark.corpus.values()), benchmark.language)
    run: dict[str, dict[str, float]] = {}
    for name, question in benchmark.questions.items():
        if check:
            check()
        text = template.apply(question.instruction, question.query)
        places, scores = index.top([text], len(ids))
        found = {
            ids[place]: float(score) for place, score in zip(places[0], scores[0], strict=True)
        }
        if benchmark.candidates:
            found = {document: found[document] for document in benchmark.candidates.get(name, [])}
        run[name] = found
    ranks = changed_ranks(benchmark, run)
    deeper = max(map(len, benchmark.excluded.values()), default=0)
    best = {
        name: dict(
            sorted(found.items(), key=lambda pair: pair[::-1], reverse=True)[: DEPTH + deeper]
        )
        for name, found in run.items()
    }
    score = bm25_scores(benchmark, index)
    following = following_of(benchmark, template, score, rank=bm25_rank(benchmark, index))
    beside = beside_following(benchmark, template, score, paraphrases)
    return measure_run(benchmark, best, ranks, following, beside)


def changed_ranks(
    benchmark: Benchmark, run: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, int]]:
    """The ranks of the changed documents by question, each query's over its one fixed list."""
    found = {}
    for query, documents in benchmark.changed_documents.items():
        for name in (benchmark.original[query], benchmark.changed[query]):
            listed = benchmark.changed_candidates.get(query, run[name])
            among = {document: run[name][document] for document in listed if document in run[name]}
            found[name] = {document: rank_of(document, among) for document in documents}
    return found


def _without_excluded(
    benchmark: Benchmark, run: dict[str, dict[str, float]]
) -> dict[str, dict[str, float]]:
    """The run without what a question excludes, the best `DEPTH` of each."""
    if not benchmark.excluded:
        return run
    kept = {}
    for question, scores in run.items():
        out = set(benchmark.excluded.get(question, ()))
        left = [(value, name) for name, value in scores.items() if name not in out]
        kept[question] = {name: value for value, name in sorted(left, reverse=True)[:DEPTH]}
    return kept


def measure_run(
    benchmark: Benchmark,
    run: dict[str, dict[str, float]],
    ranks: dict[str, dict[str, int]],
    following: Mapping[str, dict[str, dict[str, float]]] | None = None,
    beside: Mapping[str, dict[str, float]] | None = None,
) -> Scores:
    """The measures of a run; `ranks`: of the changed documents, by question.

    following: what `following_of` gives; controls are named `query-alone:strict`, …. beside: what
    `beside_following` gives; where a benchmark has reversed instructions, SICR and WISE are of its
    run.
    """
    run = _without_excluded(benchmark, run)
    per_query = measure(run, benchmark.judgments)
    by_query = p_mrr_by_query(
        {
            query: [
                (
                    ranks[benchmark.original[query]][document],
                    ranks[benchmark.changed[query]][document],
                )
                for document in documents
            ]
            for query, documents in benchmark.changed_documents.items()
        }
    )
    metrics = mean_by_control(following or {})
    for control, by_group in (following or {}).items():
        for group, measured in by_group.items():
            named = {f"{control}:{name}": value for name, value in measured.items()}
            kept = {
                name: named[name] for name in (INSTRUCTION_CONTROL, QUERY_CONTROL) if name in named
            }
            per_query.setdefault(group, {}).update(kept if control else measured)
    by_name: dict[str, list[float]] = {}
    for query, values in (beside or _compliance_by_query(benchmark, run)).items():
        per_query.setdefault(query, {}).update(values)
        for name, value in values.items():
            by_name.setdefault(name, []).append(value)
    metrics |= {name: fmean(values) for name, values in by_name.items()}
    metrics |= _averages(benchmark, per_query)
    metrics["p-mrr"] = p_mrr(by_query)
    if lowest := robustness(per_query, benchmark.same_query):
        metrics["robustness@10"] = fmean(lowest.values())
        for query, value in lowest.items():  # by base query, as its interval is
            per_query.setdefault(query, {})["robustness@10"] = value
    for query, value in by_query.items():
        per_query.setdefault(query, {})["p-mrr"] = value
    reasons = {
        name: "no query of this benchmark has a document whose relevance changes"
        if name == "p-mrr"
        else "no query of this benchmark has a relevant document"
        for name, value in metrics.items()
        if value is None
    }
    return Scores(metrics, per_query, reasons, ranks, run)


def _compliance_by_query(
    benchmark: Benchmark, run: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """SICR and WISE of every query with a reversed instruction and a document that stays right."""
    return {
        query: compliance(
            benchmark.kept[query],
            run.get(benchmark.original[query], {}),
            run.get(benchmark.changed[query], {}),
            run.get(question, {}),
            applies=len(benchmark.kept[query]) + len(benchmark.changed_documents[query]),
        )
        for query, question in benchmark.reversed.items()
        if benchmark.kept.get(query)
    }


def _averages(
    benchmark: Benchmark, per_query: dict[str, dict[str, float]]
) -> dict[str, float | None]:
    """Held-out groups and BEIR: over all queries. FollowIR: original, and `changed:` next to it."""
    if not benchmark.originals_count:
        return average({query: values for query, values in per_query.items() if "map" in values})
    original, changed = set(benchmark.original.values()), set(benchmark.changed.values())
    means = {
        prefix: average({query: values for query, values in per_query.items() if query in wanted})
        for prefix, wanted in (
            ("", original),
            ("changed:", changed),
            ("reversed:", set(benchmark.reversed.values())),
        )
        if wanted
    }
    return {prefix + name: of for prefix, found in means.items() for name, of in found.items()}


def _rank_all(
    benchmark: Benchmark,
    names: list[str],
    questions: np.ndarray,
    documents: np.ndarray,
    check: Callable[[], None] | None,
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    ids = list(benchmark.corpus)
    moved: dict[str, list[str]] = {}
    for query, changed in benchmark.changed_documents.items():
        for question in (benchmark.original[query], benchmark.changed[query]):
            moved[question] = changed
    if not benchmark.candidates:
        wanted = {
            place: moved[name]
            for place, name in enumerate(names)
            if name in moved and not benchmark.changed_candidates
        }
        deeper = max(map(len, benchmark.excluded.values()), default=0)
        found = search(questions, documents, ids, depth=DEPTH + deeper, ranked=wanted, check=check)
        ranks = dict(zip(names, found.ranks, strict=True))
        if benchmark.changed_candidates:
            ranks |= changed_ranks(
                benchmark, _candidate_scores(benchmark, names, questions, documents)
            )
        return dict(zip(names, found.best, strict=True)), ranks
    places = {name: place for place, name in enumerate(ids)}
    run: dict[str, dict[str, float]] = {}
    for place, name in enumerate(names):
        listed = list(dict.fromkeys(benchmark.candidates.get(name, [])))
        scores = documents[[places[document] for document in listed]] @ questions[place]
        run[name] = dict(zip(listed, map(float, scores), strict=True))
    ranks = {
        name: {document: rank_of(document, run[name]) for document in moved.get(name, [])}
        for name in names
    }
    return run, ranks


def _candidate_scores(
    benchmark: Benchmark, names: list[str], questions: np.ndarray, documents: np.ndarray
) -> dict[str, dict[str, float]]:
    """The scores of p-MRR's candidates, under the original and the changed instruction."""
    row_of = {name: place for place, name in enumerate(names)}
    place_of = {name: place for place, name in enumerate(benchmark.corpus)}
    found = {}
    for query, listed in benchmark.changed_candidates.items():
        theirs = documents[[place_of[name] for name in listed]]
        for name in (benchmark.original[query], benchmark.changed[query]):
            scores = theirs @ questions[row_of[name]]
            found[name] = dict(zip(listed, map(float, scores), strict=True))
    return found


def encode_unique(
    encode: Callable[..., Any],
    texts: Sequence[str],
    count: Callable[[int], None],
    cache: "VectorCache | None" = None,
) -> np.ndarray:
    """Unit vectors of the texts, float32: equal texts once, long ones first (less padding).

    Those in the cache are not encoded; new ones are kept there, part by part.
    """
    different = sorted(set(texts), key=lambda text: (-len(text), text))
    vectors = cache.read(different) if cache else {}
    if vectors:
        count(len(vectors))
    missing = [text for text in different if text not in vectors]
    for start in range(0, len(missing), TEXTS_AT_ONCE):
        part = missing[start : start + TEXTS_AT_ONCE]
        computed = encode(
            part,
            batch_size=BATCH,
            show_progress_bar=False,
            convert_to_numpy=True,
            normalize_embeddings=True,
        )
        rows = np.asarray(computed, dtype=np.float32)
        if cache:
            cache.keep(part, rows, of=len(different))
        vectors.update(zip(part, rows, strict=True))
        count(len(part))
    return np.stack([vectors[text] for text in texts])


SUMMARY = (*FOLLOWING, "ndcg@10", "map", "mrr", "p-mrr")


def summary(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    """The few measures that a training shows, with the controls where they were measured."""
    beside = {f"{control}:{name}" for control in CONTROLS for name in ON_GROUPS}
    found = {name: metrics.get(name) for name in SUMMARY}
    found |= {name: metrics[name] for name in AMONG_ALL if name in metrics}
    return found | {name: value for name, value in metrics.items() if name in beside}


# How a model computes while it is scored on a GPU: TF32 products, bfloat16 where it trains so.
@contextmanager
def scoring_precision(device: "torch.device", *, bf16: bool = False) -> Iterator[None]:
    """Within it matrix products on CUDA are TF32, or bfloat16 by autocast; elsewhere no change.

    Not run on a GPU in this project's tests.
    """
    if device.type != "cuda":
        yield
        return
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with torch.autocast("cuda", dtype=torch.bfloat16) if bf16 else nullcontext():
            yield
    finally:
        torch.set_float32_matmul_precision(before)
