"""SICR and WISE: whether an instruction improves a relevant document's rank and its reversal not.

For a relevant document r_o, r_i, r_v are its ranks under the query alone, under the instruction and
under the reversed instruction, s_o, s_i, s_v its scores, N the number of documents to which the
instruction applies (relevant to the query alone). Figures are means over the documents of a query,
then over queries. Source: InfoSearch (arXiv 2410.23841), by the shared notes on instruction
metrics.

    SICR   1 if r_i < r_o < r_v and s_i > s_o > s_v; at r_o = 1: r_i = 1 < r_v and s_i >= s_o > s_v
    WISE   if r_i <= r_o < r_v: 1 where r_i = 1 and r_o < N; else for r_o <= 20
           (1 - sqrt(r_o - r_i) / 20) / sqrt(r_i); else 0.01.
           Otherwise -1 if r_v < r_o < r_i; else (r_o - r_i) / r_i if r_o <= r_i;
           else (r_v - r_o) / r_o

Note: the authors' published code has no square root over r_o - r_i. A document that
a ranking lacks stands behind all others, with the lowest score.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean

SICR, WISE = "sicr", "wise"
COMPLIANCE = {
    SICR: "Strict instruction compliance ratio: share of relevant documents that the instruction "
    "raises and its reversal lowers, in rank and in score; all or nothing.",
    WISE: "Weighted instruction sensitivity, from -1 to 1: how far the instruction raises relevant "
    "documents and its reversal lowers them; its constants are the authors'.",
}
FAR = 20
FAR_VALUE = 0.01


@dataclass(frozen=True)
class Place:
    """A document's 1-based rank and its score in one ranking."""

    rank: int
    score: float


def place_of(document: str, scores: Mapping[str, float]) -> Place:
    """Where a document stands in a ranking; ties by score, then id, both descending."""
    if document not in scores:
        return Place(len(scores) + 1, -inf)
    own = (scores[document], document)
    return Place(1 + sum((score, name) > own for name, score in scores.items()), own[0])


def document_sicr(original: Place, instructed: Place, reverse: Place) -> float:
    """SICR of one document, 0.0 or 1.0."""
    o, i, v = original, instructed, reverse
    worse = v.rank > o.rank and o.score > v.score
    if o.rank == 1:
        return float(worse and i.rank == 1 and i.score >= o.score)
    return float(worse and i.rank < o.rank and i.score > o.score)


def document_wise(original: int, instructed: int, reverse: int, applies: int) -> float:
    """WISE of one document from its three ranks; applies: N."""
    o, i, v = original, instructed, reverse
    if i <= o < v:
        if i == 1 and o < applies:
            return 1.0
        return (1 - sqrt(o - i) / FAR) / sqrt(i) if o <= FAR else FAR_VALUE
    if v < o < i:
        return -1.0
    return (o - i) / i if o <= i else (v - o) / o


def compliance(
    documents: Sequence[str],
    original: Mapping[str, float],
    instructed: Mapping[str, float],
    reverse: Mapping[str, float],
    applies: int,
) -> dict[str, float]:
    """{sicr, wise} of one query, means over its relevant documents; rankings as {id: score}."""
    places = [
        tuple(place_of(document, ranking) for ranking in (original, instructed, reverse))
        for document in documents
    ]
    return {
        SICR: fmean(document_sicr(o, i, v) for o, i, v in places),
        WISE: fmean(document_wise(o.rank, i.rank, v.rank, applies) for o, i, v in places),
    }
