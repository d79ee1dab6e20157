"""Two models on the same queries: the mean difference with its 95 % interval.

Percentile bootstrap over clusters of queries that belong together (the three queries of a held-out
group, the same query under two instructions): resampling single queries would make the interval
too narrow. Seeded: the same scores give the same interval. Fewer than two clusters: no interval.
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
    """Mean of second − first over the queries both have; `reason` says why there is none."""

    value: float | None
    low: float | None
    high: float | None
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
        return Difference(None, None, None, 0, f"no query has {metric} in both")
    mean, queries = float(totals.sum() / counts.sum()), int(counts.sum())
    if len(counts) < 2:
        return Difference(mean, None, None, queries, "one group of queries: no interval")
    low, high = _interval(totals, counts)
    return Difference(mean, low, high, queries)


def _interval(totals: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    chance = np.random.default_rng(SEED)
    means = []
    for _ in range(RESAMPLES // BATCH):
        drawn = chance.integers(0, len(counts), size=(BATCH, len(counts)))
        means.append(totals[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return float(low), float(high)
