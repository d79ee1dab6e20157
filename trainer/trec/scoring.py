"""Scoring a TREC run file as if it were a model, named `trec:FILE`.

Note: a run says nothing about the candidates that it was chosen from. Its depth is
the most documents it lists for a query, at most that of our own rankings; where candidates are
listed and it lacks some of them, the fewest. A shallower run has another ranking depth, and is
compared only with runs of that depth. p-MRR, SICR and WISE are undefined where the run lacks a
document that they are about. Instruction flip and strict accuracy need a score of every passage of
a group, which a run may lack: they are not measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark
from trainer.evaluate.measures.compliance import SICR, WISE
from trainer.trec.files import RunFile, read_run

if TYPE_CHECKING:
    from trainer.evaluate.scoring import Scores

PREFIX = "trec:"
Rankings = Mapping[str, Mapping[str, float]]


def read_run_of(file: Path, benchmarks: Sequence[Benchmark]) -> RunFile:
    """The run of a file. Raises BadInput unless it is of the benchmark.

    benchmarks: those that are evaluated. A run file belongs to one.
    """
    if len(benchmarks) != 1:
        names = ", ".join(benchmark.name for benchmark in benchmarks)
        raise BadInput(
            f"{file}: a run file belongs to one benchmark, and {len(benchmarks)} are evaluated "
            f"({names})",
            "evaluate the benchmark of the run alone",
            code="run_file_needs_one_benchmark",
        )
    (benchmark,) = benchmarks
    read = read_run(file)
    run = read.scores
    if unknown := sorted(run.keys() - benchmark.questions.keys()):
        raise BadInput(
            f"{file}: no query {unknown[0]!r} in the benchmark {benchmark.name}",
            "Score it on the benchmark that it was made on",
            code="query_unknown",
        )
    for query, of in run.items():
        known = set(benchmark.candidates.get(query, ())) if benchmark.candidates else None
        ranked = benchmark.corpus if known is None else known
        if missing := sorted(document for document in of if document not in ranked):
            raise BadInput(
                f"{file}: document {missing[0]!r} of query {query!r} is not among what "
                f"{benchmark.name} ranks",
                "Score it on the benchmark that it was made on",
                code="document_not_in_benchmark",
            )
    for forms in (benchmark.original, benchmark.changed, benchmark.reversed):
        for query, form in forms.items():
            is_ranked = not benchmark.candidates or benchmark.candidates.get(form)
            if form not in run and is_ranked:
                raise BadInput(
                    f"{file}: the run lacks {form!r}, a form of query {query!r} of "
                    f"{benchmark.name}: measures of both forms need the rankings of both",
                    "add its ranking to the run",
                    code="run_form_missing",
                )
    return read


def score_run(run: Rankings, benchmark: Benchmark) -> "tuple[Scores, int]":
    """The measures of a run that `read_run_of` checked for the benchmark, and its depth."""
    from trainer.evaluate.scoring import DEPTH, changed_ranks, measure_run

    whole = {query: run.get(query, {}) for query in benchmark.questions}
    limit = len(benchmark.corpus) if benchmark.candidates else DEPTH
    best = {query: _best(of, limit) for query, of in whole.items()}
    scores = measure_run(benchmark, best, changed_ranks(benchmark, whole))
    return _without_undefined(scores, benchmark, whole, best), _depth(whole, benchmark, limit)


def _depth(run: Rankings, benchmark: Benchmark, limit: int) -> int:
    """The ranking depth of a run over all questions."""
    if not benchmark.candidates:
        return min(max(len(of) for of in run.values()), limit)
    lists = {query: set(benchmark.candidates.get(query, ())) for query in run}
    if all(listed <= run[query].keys() for query, listed in lists.items()):
        return limit
    return min(len(run[query]) for query, listed in lists.items() if listed)


def _without_undefined(
    scores: "Scores", benchmark: Benchmark, whole: Rankings, best: Rankings
) -> "Scores":
    """The scores without p-MRR, SICR and WISE of queries whose documents the run lacks.

    A mean over the other queries would leave out those where retrieval failed: it is undefined.
    """
    pairs = (benchmark.original, benchmark.changed)
    moved = _lacking(benchmark.changed_documents, pairs, whole)
    kept = _lacking(
        {query: benchmark.kept.get(query, []) for query in benchmark.reversed},
        (*pairs, benchmark.reversed),
        best,
    )
    per_query = {query: dict(values) for query, values in scores.per_query.items()}
    metrics, reasons = dict(scores.metrics), dict(scores.reasons)
    for names, lacking in ((("p-mrr",), moved), ((SICR, WISE), kept)):
        for name in names if lacking else ():
            for query in lacking:
                per_query.get(query, {}).pop(name, None)
            metrics[name] = None
            query, document = next(iter(lacking.items()))
            reasons[name] = (
                f"the run lacks documents that this measure is about, in {len(lacking)} queries "
                f"(document {document!r} of query {query!r})"
            )
    return replace(scores, per_query=per_query, metrics=metrics, reasons=reasons)


def _lacking(
    documents: Mapping[str, Sequence[str]],
    forms: Sequence[Mapping[str, str]],
    run: Rankings,
) -> dict[str, str]:
    """{query: the first of its documents that the run lacks under a form}."""
    found: dict[str, str] = {}
    for query, of in documents.items():
        rankings = [run.get(form[query], {}) for form in forms]
        for document in of:
            if any(document not in ranking for ranking in rankings):
                found.setdefault(query, document)
    return found


def _best(of: Mapping[str, float], limit: int) -> dict[str, float]:
    ranked = sorted(((score, document) for document, score in of.items()), reverse=True)
    return {document: score for score, document in ranked[:limit]}
