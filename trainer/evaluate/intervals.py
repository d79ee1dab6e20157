"""Means of the measures of instruction following, each with its interval over clusters, and what
their ranks are over."""

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.figures.means import Mean, cluster_mean
from analysis.figures.paired import P_MRR, Questions, Scores
from trainer.evaluate.benchmarks import P_MRR_CANDIDATES, Benchmark
from trainer.evaluate.following import FOLLOWING, INSTRUCTION_FLIP, ON_GROUPS, STABILITY
from trainer.evaluate.measures.among_all import AMONG_ALL, PLAIN_NDCG
from trainer.evaluate.measures.compliance import SICR, WISE

RANKING = ("ndcg@10", "map", "mrr")
NO_SHARES = (WISE, P_MRR, PLAIN_NDCG, *RANKING)
ROBUSTNESS = "robustness@10"
MEASURED = (*ON_GROUPS, STABILITY, SICR, WISE, P_MRR, ROBUSTNESS)
OF_TRAINING = (*MEASURED, *RANKING)  # before and after it
GROUP_PASSAGES = "the group's 3 passages"
HELD_OUT_INTERVALS = (
    "95 % intervals, groups that share a query as one cluster; a gain is paired. Strict accuracy "
    f"and the flips are ranked over {GROUP_PASSAGES}."
)


def following_means(
    per_query: Scores, questions: Questions, measures: Sequence[str] = MEASURED
) -> dict[str, Mean]:
    """{measure: its mean} of those that any query has, the headline of held-out groups first."""
    found = {
        name: cluster_mean(per_query, name, questions, is_share=name not in NO_SHARES)
        for name in measures
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


# Which questions of a benchmark belong together, from its data; no id is looked into.
def about_questions(benchmark: Benchmark) -> dict[str, dict[str, str | bool]]:
    """{id: {cluster, scored}} of every question, query of p-MRR or robustness, and group; stored.

    `cluster`: questions belong together that are the original and the changed form of one query,
    ask one query under several instructions, are of one group, or have equal query texts.
    `scored`: whether it counts in the means; on FollowIR the original questions alone do.
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = name = parent[parent[name]]
        return name

    links = [(f"id {query}", f"id {question}") for query, question in benchmark.original.items()]
    links += [(f"id {query}", f"id {question}") for query, question in benchmark.changed.items()]
    links += [(f"id {query}", f"id {question}") for query, question in benchmark.reversed.items()]
    links += [(f"id {one}", f"query {query}") for one, query in benchmark.same_query.items()]
    for key, group in benchmark.groups.items():
        links += [(f"id {question}", f"id {key}") for question in group.questions]
    for question, each in benchmark.questions.items():
        links.append((f"id {question}", f"text {each.query}"))
    for one, two in links:
        parent[root(one)] = root(two)
    unscored = set(benchmark.changed.values()) | set(benchmark.reversed.values())
    unscored = unscored if benchmark.originals_count else set()
    of_base: dict[str, dict[str, str | bool]] = {
        query: {"cluster": root(f"query {query}"), "scored": True}
        for query in benchmark.same_query.values()
    }
    return of_base | {
        name: {"cluster": root(f"id {name}"), "scored": name not in unscored}
        for name in [*benchmark.questions, *benchmark.original, *benchmark.groups]
    }
