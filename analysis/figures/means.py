"""The mean of one model's values over queries, with its 95 % interval over clusters of queries.

Queries that belong together are one cluster, as in `analysis.figures.paired`.

    share   of values from 0 to 1 (strict accuracy, flips, SICR): Wilson's interval of the mean p at
            the effective number of clusters: the smaller of Kish's (sum c)^2 / sum c^2 for c values
            in a cluster and p (1 - p) / variance over clusters, times (z / t)^2 with Student's t of
            one less than the clusters (Korn and Graubard 1998)
    mean    of values from -1 to 1 (WISE, p-MRR): the interval of a paired difference to a model
            without any, clipped to these limits

Coverage by simulation: `bench/mean_coverage.py`, docs/intervals.md.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from analysis.figures.numbers import share_text
from analysis.figures.paired import (
    MIN_CLUSTERS,
    MIN_DIFFERENT,
    NOT_RECORDED,
    P_MRR,
    Questions,
    Scores,
    interval_reach,
)
from analysis.figures.student import Z_97_5, student_97_5

WILSON = "Wilson"
MIN_ITEMS = 5  # of a share: as few as the groups of `analysis.study.run_estimates`


@dataclass(frozen=True)
class Mean:
    """A mean over `queries` values in `clusters`, its interval, or the `reason` for none."""

    value: float
    low: float | None
    high: float | None
    queries: int
    clusters: int
    method: str | None = None
    reason: str | None = None


def share_interval(share: float, count: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of `count` independent values."""
    middle = share + Z_97_5**2 / (2 * count)
    half = Z_97_5 * sqrt(share * (1 - share) / count + Z_97_5**2 / (4 * count**2))
    whole = 1 + Z_97_5**2 / count
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)


def share_of(share: float, number: int, noun: str = "item") -> str:
    """A share of that many independent items as text, with Wilson's interval from MIN_ITEMS on."""
    interval = share_interval(share, number) if number >= MIN_ITEMS else None
    return share_text(share, interval, f"too few {noun}s")


def cluster_mean(
    scores: Scores, metric: str, questions: Questions, *, is_share: bool
) -> Mean | None:
    """The mean of a metric over the queries that have it; None where none has.

    questions: as of `paired_difference`: p-MRR takes every value, others those that are `scored`.
    """
    sums: dict[str, list[float]] = {}
    alone: list[float] = []
    for query, values in scores.items():
        value = values.get(metric)
        about = questions.get(query)
        if value is None or (about and metric != P_MRR and not about["scored"]):
            continue
        alone.append(float(value))
        if about:
            sums.setdefault(str(about["cluster"]), []).append(float(value))
    if not alone:
        return None
    if sum(map(len, sums.values())) < len(alone):
        return Mean(float(np.mean(alone)), None, None, len(alone), 0, reason=NOT_RECORDED)
    counts = np.array([len(of) for of in sums.values()], dtype=float)
    totals = np.array([sum(of) for of in sums.values()], dtype=float)
    value = float(totals.sum() / counts.sum())
    if is_share:
        low, high = share_interval(value, effective_clusters(totals, counts))
        return Mean(value, low, high, len(alone), len(counts), WILSON)
    different = int(np.count_nonzero(totals))
    if len(counts) < MIN_CLUSTERS or different < MIN_DIFFERENT:
        reason = (
            f"{len(counts)} independent queries, {different} with a value other than 0: an "
            f"interval needs {MIN_CLUSTERS} and {MIN_DIFFERENT}"
        )
        return Mean(value, None, None, len(alone), len(counts), reason=reason)
    reach, _, method = interval_reach(totals, counts)
    low, high = max(-1.0, value - reach), min(1.0, value + reach)
    return Mean(value, low, high, len(alone), len(counts), method)


def effective_clusters(totals: np.ndarray, counts: np.ndarray) -> float:
    """How many independent values from 0 to 1 would know the mean as well: see the module."""
    kish = float(counts.sum() ** 2 / (counts**2).sum())
    p = float(totals.sum() / counts.sum())
    if len(counts) < 2:
        return kish
    residuals = totals - p * counts
    variance = float((residuals**2).sum() / counts.sum() ** 2) * len(counts) / (len(counts) - 1)
    if variance <= 0:
        return kish
    return min(kish, p * (1 - p) / variance) * (Z_97_5 / student_97_5(len(counts) - 1)) ** 2
