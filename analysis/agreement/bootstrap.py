"""95 % intervals of agreement by the bootstrap over items: percentiles of 10,000 resamples.

What would surprise: no item is drawn. Items with the same answers are one pattern, and drawing n
items with replacement is one multinomial draw of the patterns' counts: 10,000 resamples of
333,000 items take a fraction of a second, not a minute, and are the same distribution.

Where there are more than `MOST_PATTERNS` patterns (many judges, each on few items) the interval is
value ± 1.96 standard errors by the delta method instead, and says so (`interval_from`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000
BLOCK = 1000
MOST_PATTERNS = 2500
NORMAL_97_5 = 1.959963984540054
BOOTSTRAP, STANDARD_ERROR = "bootstrap", "standard_error"


@dataclass(frozen=True)
class Interval:
    """A 95 % interval and where it comes from; `undefined` resamples had no value."""

    low: float
    high: float
    source: str
    undefined: int = 0


def resampled_weights(counts: np.ndarray, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Blocks of resampled counts of the patterns: (at most BLOCK, patterns)."""
    generator = np.random.default_rng(seed)
    shares = counts / counts.sum()
    for start in range(0, resamples, BLOCK):
        size = min(BLOCK, resamples - start)
        yield generator.multinomial(int(counts.sum()), shares, size=size)


def percentiles(values: np.ndarray) -> Interval | None:
    """The interval of resampled values; None where none of them is defined."""
    defined = values[~np.isnan(values)]
    if len(defined) == 0:
        return None
    low, high = np.quantile(defined, [0.025, 0.975])
    return Interval(float(low), float(high), BOOTSTRAP, len(values) - len(defined))


def normal(value: float, standard_error: float) -> Interval:
    """The interval of a value with a standard error."""
    reach = NORMAL_97_5 * standard_error
    return Interval(value - reach, value + reach, STANDARD_ERROR)


def kappas_of_tables(tables: np.ndarray) -> np.ndarray:
    """Cohen's kappa of tables, shape (…, labels, labels); NaN where undefined."""
    counts = tables.astype(np.float64)
    n = counts.sum(axis=(-2, -1))
    same = np.trace(counts, axis1=-2, axis2=-1)
    by_chance = (counts.sum(axis=-1) * counts.sum(axis=-2)).sum(axis=-1)
    beyond = n * n - by_chance
    with np.errstate(divide="ignore", invalid="ignore"):
        kappas: np.ndarray = np.where(beyond > 0, (n * same - by_chance) / beyond, np.nan)
    return kappas


def kappa_interval(table: np.ndarray, resamples: int, seed: int) -> Interval | None:
    """The interval of one pair's kappa: the pattern of an item is its cell of the table."""
    cells = np.flatnonzero(table)
    counts = table.ravel()[cells]
    values = []
    for weights in resampled_weights(counts, resamples, seed):
        tables = np.zeros((len(weights), table.size))
        tables[:, cells] = weights
        values.append(kappas_of_tables(tables.reshape(-1, *table.shape)))
    return percentiles(np.concatenate(values))


def resampled_kappas(
    codes: np.ndarray,
    counts: np.ndarray,
    pairs: Sequence[tuple[int, int]],
    labels: int,
    resamples: int,
    seed: int,
) -> np.ndarray:
    """Kappas of the pairs of columns in the same resamples: (resamples, pairs), NaN undefined.

    `codes`: patterns, shape (patterns, judges), -1 a gap; `counts` how often each occurs.
    """
    features = []
    for one, other in pairs:
        a, b = codes[:, one].astype(np.int64), codes[:, other].astype(np.int64)
        both = np.flatnonzero((a >= 0) & (b >= 0))
        feature = np.zeros((len(codes), labels * labels), dtype=np.float32)
        feature[both, a[both] * labels + b[both]] = 1.0
        features.append(feature)
    whole = np.concatenate(features, axis=1)
    blocks = []
    for weights in resampled_weights(counts, resamples, seed):
        exact = np.float32 if counts.sum() < 2**24 else np.float64  # whole numbers stay whole
        tables = weights.astype(exact) @ whole.astype(exact)
        blocks.append(kappas_of_tables(tables.reshape(-1, len(pairs), labels, labels)))
    return np.concatenate(blocks)


def kappa_gradient(table: np.ndarray) -> np.ndarray:
    """How kappa answers to the share of each cell, for the delta method: (labels, labels).

    d kappa / d p_ij = ([i=j](1 - p_e) - (1 - p_o)(p_.i + p_j.)) / (1 - p_e)²; its mean over the
    items is zero after `centred`.
    """
    p = table / table.sum()
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    expected, observed = float(rows @ columns), float(np.trace(p))
    crossed = columns[:, None] + rows[None, :]
    gradient = np.eye(len(p)) * (1 - expected) - (1 - observed) * crossed
    gradient /= (1 - expected) ** 2
    centred: np.ndarray = gradient - float((p * gradient).sum())
    return centred
