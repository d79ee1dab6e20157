"""Scores of rankings: pytrec_eval's measures, and p-MRR.

A run is {query id: {document id: score}}, relevance judgments are {query id: {document id: grade}}.
Ties are broken by score, then document id, both descending: what trec_eval does, and mteb since
2.19.5 for p-MRR.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

Run = Mapping[str, Mapping[str, float]]
Judgments = Mapping[str, Mapping[str, int]]

# Our name → trec_eval's.
MEASURES = {
    "ndcg@5": "ndcg_cut_5",
    "ndcg@10": "ndcg_cut_10",
    "ndcg@20": "ndcg_cut_20",
    "map": "map",
    "map@1000": "map_cut_1000",
    "mrr": "recip_rank",
    "recall@5": "recall_5",
    "recall@10": "recall_10",
    "recall@100": "recall_100",
}
JUDGED = "judged@10"
JUDGED_DEPTH = 10
AVERAGED = (*MEASURES, JUDGED)


def measure(run: Run, judgments: Judgments) -> dict[str, dict[str, float]]:
    """Every measure of every judged query: {query id: {name: value}}.

    A query that is judged but missing from the run scores 0; a query without any relevant document
    is left out (no measure is defined for it).
    """
    import pytrec_eval

    judged = {
        query: dict(grades)
        for query, grades in judgments.items()
        if any(grade > 0 for grade in grades.values())
    }
    evaluator = pytrec_eval.RelevanceEvaluator(
        judged, {"ndcg_cut.5,10,20", "map", "map_cut.1000", "recip_rank", "recall.5,10,100"}
    )
    found = evaluator.evaluate(
        {query: dict(documents) for query, documents in run.items() if query in judged}
    )
    return {
        query: {
            name: float(found[query][theirs]) if query in found else 0.0
            for name, theirs in MEASURES.items()
        }
        | {JUDGED: judged_share(run.get(query, {}), judged[query])}
        for query in judged
    }


def judged_share(
    scores: Mapping[str, float], grades: Mapping[str, int], depth: int = JUDGED_DEPTH
) -> float:
    """judged@k: the share of the first `depth` documents that have a judgment, whatever its grade.

    Of a ranking with fewer documents the share of those; 0 without any. Where it is low, nDCG and
    the like count documents that nobody looked at as irrelevant.
    """
    best = sorted(((score, document) for document, score in scores.items()), reverse=True)[:depth]
    return sum(document in grades for _, document in best) / len(best) if best else 0.0


def without_relevant(judgments: Judgments) -> list[str]:
    """The judged queries without any relevant document, by id: they are in no mean."""
    return sorted(
        query for query, grades in judgments.items() if not any(g > 0 for g in grades.values())
    )


def average(per_query: Mapping[str, Mapping[str, float]]) -> dict[str, float | None]:
    """The mean over queries of every measure; None where there is no query."""
    return {
        name: fmean(values[name] for values in per_query.values()) if per_query else None
        for name in AVERAGED
    }


def robustness(
    per_query: Mapping[str, Mapping[str, float]], same_query: Mapping[str, str]
) -> dict[str, float]:
    """InstructIR's robustness@10 of every query: its lowest nDCG@10 over its instructions.

    Source: Oh et al. 2024 (arXiv 2402.14334); the figure is the mean over queries.
    same_query: {question: query}; a query none of whose questions was measured drops out.
    """
    lowest: dict[str, float] = {}
    for question, query in same_query.items():
        if question in per_query:
            value = per_query[question]["ndcg@10"]
            lowest[query] = min(value, lowest.get(query, value))
    return lowest


def rank_of(document: str, scores: Mapping[str, float]) -> int:
    """The 1-based rank; a document that is missing stands behind all others."""
    if document not in scores:
        return len(scores) + 1
    own = (scores[document], document)
    return 1 + sum((score, name) > own for name, score in scores.items())


def rank_change(rank_original: int, rank_changed: int) -> float:
    """p-MRR of one document (FollowIR): from −1 to 1, 0 where it did not move.

    r_og ≥ r_new: r_new/r_og − 1; else 1 − r_og/r_new. (2→5) = +0.6, (5→2) = −0.6.
    """
    if rank_original >= rank_changed:
        return rank_changed / rank_original - 1
    return 1 - rank_original / rank_changed


def p_mrr_by_query(ranks: Mapping[str, Sequence[tuple[int, int]]]) -> dict[str, float]:
    """p-MRR of every query: the mean of `rank_change` over the documents whose relevance changed.

    ranks: {query id: [(rank under the original, under the changed instruction), …]}. A query
    without a changed document drops out.
    """
    return {
        query: fmean(rank_change(original, changed) for original, changed in moved)
        for query, moved in ranks.items()
        if moved
    }


def p_mrr(by_query: Mapping[str, float]) -> float | None:
    """The mean over queries, in [−1, 1] (the paper shows it times 100); None without a query."""
    return fmean(by_query.values()) if by_query else None
