"""Scoring a TREC run file as if it were a model, named `trec:FILE`.

Note: a run says nothing about the candidates that it was chosen from. Its depth is
the most documents it lists for a query, at most that of our own rankings; a shallower run has
another ranking depth, and is compared only with runs of that depth. Instruction flip and strict
accuracy need a score of every passage of a group, which a run may lack: they are not measured.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark
from trainer.trec.files import read_run

if TYPE_CHECKING:
    from trainer.evaluate.scoring import Scores

PREFIX = "trec:"


def score_run_file(file: Path, benchmark: Benchmark) -> "tuple[Scores, int]":
    """The measures of a run file and its depth. Raises BadInput for other queries or documents."""
    from trainer.evaluate.scoring import DEPTH, changed_ranks, measure_run

    run = read_run(file).scores
    if unknown := sorted(run.keys() - benchmark.questions.keys()):
        raise BadInput(f"{file}: no query {unknown[0]!r} in the benchmark {benchmark.name}")
    for query, of in run.items():
        known = benchmark.candidates.get(query, []) if benchmark.candidates else benchmark.corpus
        if missing := sorted(of.keys() - set(known)):
            raise BadInput(
                f"{file}: document {missing[0]!r} of query {query!r} is not among what "
                f"{benchmark.name} ranks"
            )
    whole = {query: run.get(query, {}) for query in benchmark.questions}
    deepest = max(len(of) for of in whole.values())
    limit = len(benchmark.corpus) if benchmark.candidates else DEPTH
    best = {query: _best(of, limit) for query, of in whole.items()}
    depth = len(benchmark.corpus) if _is_complete(whole, benchmark) else min(deepest, limit)
    return measure_run(benchmark, best, changed_ranks(benchmark, whole)), depth


def run_identity(file: Path) -> str:
    """The content of the file, for the record."""
    return f"{PREFIX}sha256 {hashlib.sha256(file.read_bytes()).hexdigest()}"


def _is_complete(run: Mapping[str, Mapping[str, float]], benchmark: Benchmark) -> bool:
    """Whether every listed candidate of every query has a score."""
    return bool(benchmark.candidates) and all(
        set(benchmark.candidates.get(query, ())) <= of.keys() for query, of in run.items()
    )


def _best(of: Mapping[str, float], limit: int) -> dict[str, float]:
    ranked = sorted(((score, document) for document, score in of.items()), reverse=True)
    return {document: score for score, document in ranked[:limit]}
