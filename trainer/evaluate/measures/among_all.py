"""Measures of held-out groups that rank all held-out passages, not the group's own three.

    right-first     share of the group's three scenarios whose own passage is first of all
    plain-ndcg@10   nDCG@10 of Q+ without an instruction, which P+ and P1- both answer: ordinary
                    retrieval on the same passages

A passage with the same score as the scenario's own counts against the model. A model that follows
instructions among three passages may still lose both among all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Final

from trainer.evaluate.measures.rankings import measure

RIGHT_FIRST: Final = "right-first"
PLAIN_NDCG: Final = "plain-ndcg@10"
AMONG_ALL: Final = {
    RIGHT_FIRST: "Share of scenarios whose own passage ranks first among all held-out passages.",
    PLAIN_NDCG: "nDCG@10 of the queries without instructions over all held-out passages: ordinary "
    "retrieval. P+ and P1- both answer the query.",
}
DEPTH: Final = 10
Rank = Callable[[Sequence[str], int], Sequence[Mapping[str, float]]]
"""(texts, depth) → for each text its best documents with their scores."""


def right_first_by_group(
    documents: Mapping[str, Sequence[str]],
    texts: Sequence[str],
    rank: Rank,
    left_out: Mapping[str, Sequence[Sequence[str]]],
) -> dict[str, dict[str, float]]:
    """{group: {right-first: 0, 1/3, 2/3 or 1}}.

    documents: of each group the ids of its own, in the order of `db.shape`; texts: one for each of
    them, in the same order; left_out: for each what is not ranked.
    """
    deeper = max((len(out) for of in left_out.values() for out in of), default=0)
    best = iter(rank(texts, DEPTH + deeper))
    return {
        key: {
            RIGHT_FIRST: fmean(
                _is_first(name, next(best), out)
                for name, out in zip(own, left_out[key], strict=True)
            )
        }
        for key, own in documents.items()
    }


def _is_first(own: str, found: Mapping[str, float], left_out: Sequence[str]) -> float:
    others = (score for name, score in found.items() if name != own and name not in left_out)
    return float(own in found and all(found[own] > score for score in others))


def plain_ndcg_by_group(
    answering: Mapping[str, Sequence[str]], queries: Sequence[str], rank: Rank
) -> dict[str, dict[str, float]]:
    """{group: {plain-ndcg@10}}; queries: of each group Q+ as the model reads it without I+;
    answering: the ids of what answers it so."""
    answers = {key: dict.fromkeys(own, 1) for key, own in answering.items()}
    found = measure(dict(zip(answering, rank(queries, DEPTH), strict=True)), answers)
    return {key: {PLAIN_NDCG: found[key]["ndcg@10"]} for key in answering}
