"""Two models on the same queries: the mean difference with its 95 % interval.

Percentile bootstrap over clusters of queries that belong together (the three queries of a held-out
group, the same query under two instructions): resampling single queries would make the interval
too narrow. Seeded: the same scores give the same interval. Fewer than two clusters: no interval.

p (two-sided) is the share of resampled means, moved so that their centre is 0, that lie at least as
far from it as the mean difference, counted with one added so that it is never 0.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Scores = Mapping[str, Mapping[str, float | None]]
RESAMPLES = 10_000
BATCH = 500
SEED = 20250
GROUP = re.compile(r"(g\d+)(?:-|$)")


@dataclass(frozen=True)
class Difference:
    """Mean of second − first over the queries both have, the interval and p of it.

    `reason` says why there is no value, or no interval and p.
    """

    value: float | None
    low: float | None
    high: float | None
    p: float | None
    queries: int
    reason: str | None = None

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def cluster_of(query_id: str) -> str:
    """Which queries belong together: those of one held-out group, else each alone."""
    found = GROUP.match(query_id)
    return found.group(1) if found else query_id


def paired_difference(
    first: Scores, second: Scores, metric: str, cluster: Callable[[str], str] = cluster_of
) -> Difference:
    """How much better the second is on a metric. Queries without a value in both drop out."""
    sums: dict[str, list[float]] = {}
    for query_id, values in first.items():
        one, other = values.get(metric), second.get(query_id, {}).get(metric)
        if one is not None and other is not None:
            sums.setdefault(cluster(query_id), []).append(other - one)
    counts = np.array([len(values) for values in sums.values()], dtype=float)
    totals = np.array([sum(values) for values in sums.values()], dtype=float)
    if not len(counts):
        return Difference(None, None, None, None, 0, f"no query has {metric} in both")
    mean, queries = float(totals.sum() / counts.sum()), int(counts.sum())
    if len(counts) < 2:
        return Difference(mean, None, None, None, queries, "one group of queries: no interval")
    means = _resampled(totals, counts)
    low, high = np.quantile(means, [0.025, 0.975])
    # a hair's breadth of slack: equal means must count as equal whatever the order of summing
    extreme = int(np.count_nonzero(np.abs(means - mean) >= abs(mean) - 1e-12))
    return Difference(mean, float(low), float(high), (extreme + 1) / (RESAMPLES + 1), queries)


def _resampled(totals: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(RESAMPLES,): the mean difference over clusters drawn with replacement."""
    chance = np.random.default_rng(SEED)
    means = []
    for _ in range(RESAMPLES // BATCH):
        drawn = chance.integers(0, len(counts), size=(BATCH, len(counts)))
        means.append(totals[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    return np.concatenate(means)
