"""Two models on the same queries: the mean difference with its 95 % interval.

Queries that belong together (original and changed instruction, several instructions for one base
query, the scenarios of a held-out group) are one cluster. Which do is recorded with the evaluation
from the benchmark's data; the shape of an id says nothing. Resampling single queries instead covers
49 % on 30 base queries with 8 instructions each.

    mean   m = Σ totals / Σ counts over the clusters
    error  jackknife over clusters (CR3): residuals (t_i - m c_i) / (1 - c_i / Σ c)
    reach  the larger of Student's t (clusters - 1) and the 95 % quantile of |m* - m| / error* over
           resampled clusters (symmetric bootstrap-t, Hall 1988), times the error, widened by
           sqrt(k / (k - 2)) for k clusters: exponential differences covered 0.906 at 10 without

p (two-sided) is by the same two: the larger of Student's and the share of resampled |t*| at least
as large as |m| / error, counted with one added so that it is never 0. Coverage by simulation:
`bench/paired_coverage.py`, docs/intervals.md.

Note: no interval below `MIN_CLUSTERS` clusters, or where fewer than `MIN_DIFFERENT`
of them differ between the models at all: a rule on counts, whatever the values. To the variance
belong 0.6 clusters without any difference, so that a constant gain has no interval of zero width.
Seeded: the same scores give the same interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.figures.student import student_97_5, two_sided_p

Scores = Mapping[str, Mapping[str, float | None]]
Questions = Mapping[str, Mapping[str, Any]]
RESAMPLES = 10_000
BATCH = 500
SEED = 20250
MIN_CLUSTERS = 10
MIN_DIFFERENT = 5
EXTRA_CLUSTER = 0.6
SIGNIFICANT = 0.05  # of p adjusted for the number of models
P_MRR = "p-mrr"
STUDENT, BOOTSTRAP = "Student's t", "bootstrap-t"  # whichever is wider
NOT_RECORDED = "which queries belong together was not recorded with this evaluation: evaluate again"


@dataclass(frozen=True)
class Difference:
    """Mean of second - first over the queries both have, the interval and p of it.

    `reason` says why there is no value, or no interval and p; `method` how the interval was made;
    `clusters`: independent groups of queries; `gained`, `lost`: how many queries the second model
    is better and worse on.
    """

    value: float | None
    low: float | None
    high: float | None
    p: float | None
    queries: int
    reason: str | None = None
    clusters: int = 0
    method: str | None = None
    gained: int = 0
    lost: int = 0

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def paired_difference(
    first: Scores, second: Scores, metric: str, questions: Questions
) -> Difference:
    """How much better the second is on a metric. Queries without a value in both drop out.

    `questions`: for every query id its `cluster`, and `scored`: whether the query counts in the
    mean of the benchmark's retrieval measures (on FollowIR the original queries alone do). p-MRR
    has one value per pair of queries and takes every value there is.
    """
    sums: dict[str, list[float]] = {}
    for query_id, values in first.items():
        one, other = values.get(metric), second.get(query_id, {}).get(metric)
        if one is None or other is None:
            continue
        if query_id not in questions:
            return Difference(None, None, None, None, 0, NOT_RECORDED)
        about = questions[query_id]
        if metric == P_MRR or about["scored"]:
            sums.setdefault(str(about["cluster"]), []).append(other - one)
    if not sums:
        return Difference(None, None, None, None, 0, f"no query has {metric} in both")
    counts = np.array([len(values) for values in sums.values()], dtype=float)
    totals = np.array([sum(values) for values in sums.values()], dtype=float)
    mean, queries = float(totals.sum() / counts.sum()), int(counts.sum())
    different = int(np.count_nonzero([any(values) for values in sums.values()]))
    changes = np.array([value for values in sums.values() for value in values])
    gained, lost = int((changes > 0).sum()), int((changes < 0).sum())
    if len(counts) < MIN_CLUSTERS:
        noun = "group" if len(counts) == 1 else "groups"
        reason = f"{len(counts)} independent {noun} of queries: an interval needs {MIN_CLUSTERS}"
        return Difference(mean, None, None, None, queries, reason, len(counts), None, gained, lost)
    if different < MIN_DIFFERENT:
        reason = (
            f"the models differ on {different} of {len(counts)} independent groups of queries: "
            f"an interval needs {MIN_DIFFERENT}"
        )
        return Difference(mean, None, None, None, queries, reason, len(counts), None, gained, lost)
    reach, p, method = interval_reach(totals, counts)
    limits = (mean - reach, mean + reach)
    return Difference(mean, *limits, p, queries, None, len(counts), method, gained, lost)


def verdict(difference: Difference, p: float | None) -> str:
    """What a difference shows: higher, lower, no clear difference, or why that is unknown.

    `p` is the one adjusted for the number of models.
    """
    if difference.value is None or p is None:
        return f"unknown: {difference.reason}"
    if p > SIGNIFICANT or not difference.is_clear:
        return "no clear difference"
    return "higher" if difference.value > 0 else "lower"


def interval_reach(
    totals: np.ndarray, counts: np.ndarray, resamples: int = RESAMPLES
) -> tuple[float, float, str]:
    """Half the width of the 95 % interval of Σ totals / Σ counts, p of no difference, the method.

    One entry per cluster: the sum of its differences and the number of its queries.
    """
    mean, error = (float(value) for value in _mean_and_error(totals, counts))
    error = float(np.sqrt(error**2 + EXTRA_CLUSTER * (mean / len(counts)) ** 2))
    freedom = len(counts) - 1
    generator = np.random.default_rng(SEED)
    found = []
    for start in range(0, resamples, BATCH):
        size = (min(BATCH, resamples - start), len(counts))
        chosen = generator.integers(0, len(counts), size=size)
        means, errors = _mean_and_error(totals[chosen], counts[chosen])
        # a resample of nearly equal clusters has no error to divide by
        usable = errors > error / 20
        found.append(np.abs(means - mean)[usable] / errors[usable])
    studentised = np.concatenate(found)
    error *= float(np.sqrt(len(counts) / (len(counts) - 2)))
    quantile, t = student_97_5(freedom), abs(mean) / error
    p, method = two_sided_p(t, freedom), STUDENT
    if len(studentised) >= resamples / 4:
        resampled = float(np.quantile(studentised, 0.95))
        if resampled > quantile:
            quantile, method = resampled, BOOTSTRAP
        extreme = int(np.count_nonzero(studentised >= t))
        p = max(p, (extreme + 1) / (len(studentised) + 1))
    return quantile * error, p, method


def _mean_and_error(totals: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean over the last axis of clusters, and its jackknife standard error (CR3)."""
    clusters, queries = totals.shape[-1], counts.sum(axis=-1)
    mean = totals.sum(axis=-1) / queries
    residuals = (totals - mean[..., None] * counts) / (1 - counts / queries[..., None])
    spread = (residuals**2).sum(axis=-1) * (clusters - 1) / clusters
    return mean, np.sqrt(spread) / queries


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """p-values adjusted for their number (Holm 1979), in the given order; None stays None."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    least = 0.0
    for rank, (p, place) in enumerate(known):
        least = max(least, min(1.0, p * (len(known) - rank)))
        adjusted[place] = least
    return adjusted
