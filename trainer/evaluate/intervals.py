"""Means of the measures of instruction following, each with its interval over clusters, and what
their ranks are over."""

from collections.abc import Mapping
from typing import Any

from analysis.figures.means import Mean, cluster_mean
from analysis.figures.paired import P_MRR, Questions, Scores
from trainer.evaluate.benchmarks import P_MRR_CANDIDATES
from trainer.evaluate.following import FOLLOWING, INSTRUCTION_FLIP, ON_GROUPS, STABILITY
from trainer.evaluate.measures.among_all import AMONG_ALL, PLAIN_NDCG
from trainer.evaluate.measures.compliance import SICR, WISE

NO_SHARES = (WISE, P_MRR, PLAIN_NDCG)
ROBUSTNESS = "robustness@10"
MEASURED = (*ON_GROUPS, STABILITY, SICR, WISE, P_MRR, ROBUSTNESS)
GROUP_PASSAGES = "the group's 3 passages"
HELD_OUT_INTERVALS = (
    "95 % intervals, groups that share a query as one cluster; a gain is paired. Strict accuracy "
    f"and the flips are ranked over {GROUP_PASSAGES}."
)


def following_means(per_query: Scores, questions: Questions) -> dict[str, Mean]:
    """{measure: its mean} of those that any query has, the headline of held-out groups first."""
    found = {
        name: cluster_mean(per_query, name, questions, is_share=name not in NO_SHARES)
        for name in MEASURED
    }
    return {name: of for name, of in found.items() if of is not None}


def ranked_over(name: str, metrics: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """What the ranks of a measure are over, from an evaluation's scores and record."""
    if metrics.get(INSTRUCTION_FLIP) is None:
        return str(record.get("pool") or "unknown: no record")
    if name in (*FOLLOWING, STABILITY):
        return GROUP_PASSAGES
    documents = (record.get("benchmark") or {}).get("documents")
    is_small = documents is not None and documents <= P_MRR_CANDIDATES
    if name in AMONG_ALL or is_small:
        return f"all {documents:,} held-out passages" if documents else "all held-out passages"
    return f"BM25's best {P_MRR_CANDIDATES} and the group's"
