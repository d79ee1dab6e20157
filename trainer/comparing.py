"""Whether two models differ on the same queries: the paired bootstrap.

d = mean over queries of (b − a). Queries are drawn with replacement; the interval is the 2.5th and
97.5th percentile of the resampled means; p (two-sided) is the share of resampled means, moved so
that their centre is 0, that lie at least |d| from it, counted with one added so that it is never 0.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

RESAMPLES = 10_000
AT_ONCE = 500


def paired_bootstrap(
    first: Mapping[str, float], second: Mapping[str, float], *, seed: int = 0
) -> dict[str, Any] | None:
    """Difference (second − first) with its interval and p; None with fewer than two queries."""
    queries = sorted(first.keys() & second.keys())
    if len(queries) < 2:
        return None
    differences = np.array([second[query] - first[query] for query in queries])
    generator = np.random.default_rng(seed)
    means = np.concatenate(
        [
            differences[generator.integers(len(queries), size=(AT_ONCE, len(queries)))].mean(axis=1)
            for _ in range(RESAMPLES // AT_ONCE)
        ]
    )
    observed = float(differences.mean())
    # a hair's breadth of slack: equal means must count as equal whatever the order of summing
    extreme = int(np.count_nonzero(np.abs(means - observed) >= abs(observed) - 1e-12))
    low, high = np.percentile(means, [2.5, 97.5])
    return {
        "queries": len(queries),
        "difference": observed,
        "low": float(low),
        "high": float(high),
        "p": (extreme + 1) / (RESAMPLES + 1),
    }


def compare(
    first: Mapping[str, Mapping[str, float]],
    second: Mapping[str, Mapping[str, float]],
    measures: tuple[str, ...],
) -> dict[str, dict[str, Any] | None]:
    """The bootstrap for each measure, from two models' values per query."""

    def values(per_query: Mapping[str, Mapping[str, float]], name: str) -> dict[str, float]:
        return {query: found[name] for query, found in per_query.items() if name in found}

    return {name: paired_bootstrap(values(first, name), values(second, name)) for name in measures}
