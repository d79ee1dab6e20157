"""Exact search: every question against the whole corpus, in bounded memory.

Scores are float32 dot products by blocks of questions (numpy's BLAS); ties are broken by document
id, descending, also at the cut.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

BLOCK_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Found:
    """For every question its best documents with scores, and the requested ranks."""

    best: list[dict[str, float]]
    ranks: list[dict[str, int]]


def search(
    questions: np.ndarray,
    corpus: np.ndarray,
    ids: Sequence[str],
    *,
    depth: int,
    ranked: Mapping[int, Sequence[str]] | None = None,
    check: Callable[[], None] | None = None,
) -> Found:
    """The `depth` best documents of every question, and exact ranks over the whole corpus.

    questions (q, d) and corpus (n, d) float32; ids: n document ids; ranked: for a question's place
    the documents whose rank is wanted, however deep they stand.
    """
    places = {name: place for place, name in enumerate(ids)}
    order = np.empty(len(ids), dtype=np.int64)  # where each id stands among the sorted ids
    order[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    depth = min(depth, len(ids))
    best: list[dict[str, float]] = []
    ranks: list[dict[str, int]] = []
    at_once = max(1, BLOCK_BYTES // (4 * max(1, len(ids))))
    for start in range(0, len(questions), at_once):
        if check:
            check()
        block = questions[start : start + at_once] @ corpus.T  # (at_once, n)
        for offset, scores in enumerate(block):
            best.append(_best(scores, order, ids, depth))
            wanted = (ranked or {}).get(start + offset, ())
            ranks.append({name: _rank(scores, order, places[name]) for name in wanted})
    return Found(best, ranks)


def _best(
    scores: np.ndarray, order: np.ndarray, ids: Sequence[str], depth: int
) -> dict[str, float]:
    if depth < len(scores):
        least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        chosen = np.flatnonzero(scores >= least)  # with every tie at the cut
    else:
        chosen = np.arange(len(scores))
    by_rank = chosen[np.lexsort((-order[chosen], -scores[chosen]))][:depth]
    return {ids[place]: float(scores[place]) for place in by_rank}


def _rank(scores: np.ndarray, order: np.ndarray, place: int) -> int:
    own = scores[place]
    ties = (scores == own) & (order > order[place])
    return 1 + int(np.count_nonzero(scores > own)) + int(np.count_nonzero(ties))
