"""95 % intervals of agreement from a posterior over the answers that an item can get.

The n items are n observations of answer patterns. The lower limit is a quantile under the posterior
Dirichlet(counts + 0.6 items on which one judge stands alone), the upper limit under
Dirichlet(counts + 0.6 items on which all agree), spread evenly over the labels in use: the
construction of Clopper and Pearson with 0.6 of their extra observation. Quantiles are taken
at Φ(-t · sqrt(n / (n - 1))), t of n - 1 degrees of freedom (Hesterberg 2015, "expanded
percentiles"). Coverage by simulation: `bench/agreement_coverage.py`, docs/intervals.md; resampling
the items instead covers 0.36 at n = 15 and kappa 0.9.

Note:
- An interval never has zero width: 0.6 items of disagreement are always possible.
- Items are not resampled. Items with the same answers are one pattern, so 10,000 draws for
  333,000 items take a fraction of a second.
- Items that are about one record depend on each other. n of them tell as much as n / factor
  independent ones (Rao and Scott 1992), so counts are divided by that factor and quantiles have the
  degrees of freedom of the records; see `dependence`.
- Where there are more than `MAX_PATTERNS` patterns, and so more items, the interval is value ± t
  standard errors by a jackknife that leaves out each of `GROUPS` groups of items, and says so
  (`interval_from`). Its work grows with the items, not with the judges.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from analysis.figures.student import student_97_5

DRAWS = 10_000
BLOCK = 1000
MAX_PATTERNS = 2500
EXTRA_RECORDS = 0.3  # of which all items depend on each other; docs/intervals.md
EXTRA_ITEM = 0.6  # the coverage by simulation stands in docs/intervals.md
MAX_DRAWN, FEW_DRAWS = 60, 1000  # of more intervals each gets fewer draws
BY_FORMULA = 100  # items, from which on the standard error of a kappa covers as well
POSTERIOR, STANDARD_ERROR = "posterior", "standard_error"
GROUPS = 200  # of items, left out one by one: the error of the standard error is 1/√400, 5 %


@dataclass(frozen=True)
class Interval:
    """A 95 % interval and where it comes from; `undefined` draws had no value."""

    low: float
    high: float
    source: str
    undefined: int = 0


def interval_numbers(found: Interval | None) -> dict[str, Any]:
    """An interval as reports have it; `undefined_resamples` only where there are any."""
    if found is None:
        return {"interval": None}
    numbers = {"interval": [found.low, found.high], "interval_from": found.source}
    return {**numbers, "undefined_resamples": found.undefined} if found.undefined else numbers


@dataclass(frozen=True)
class Dependence:
    """How far the items behind a figure depend on each other as some are about one record.

    `factor`: how many times as large the figure's variance is as that of independent items, at
    least 1; `records`: how many there are, None where every item is about one of its own.
    """

    factor: float = 1.0
    records: int | None = None

    def independent(self, items: int) -> int:
        """How many of these items have a chance of their own: at most the records."""
        return items if self.records is None else min(items, self.records)


INDEPENDENT: Final = Dependence()


def dependence(moves: np.ndarray, record: np.ndarray | None) -> Dependence:
    """The dependence of items that move a figure so far, (items,), and are about these records.

    The variance of a sum over records over that of a sum over items (Rao and Scott 1992, "A simple
    method for the analysis of clustered binary data"), with `EXTRA_RECORDS` records added of which
    all items move the figure as far as any does: rare dissent shows no dependence, which is no
    sign that there is none.
    """
    if record is None or not len(record):
        return INDEPENDENT
    _, place = np.unique(record, return_inverse=True)
    records = int(place.max()) + 1
    if records == len(place):
        return INDEPENDENT
    known = np.isfinite(moves)
    moves = np.where(known, moves - moves[known].mean() if known.any() else 0.0, 0.0)
    size, furthest = len(place) / records, float((moves**2).max()) or 1.0
    together = float((np.bincount(place, weights=moves) ** 2).sum())
    together *= records / max(records - 1, 1)
    alone = float((moves**2).sum())
    extra = EXTRA_RECORDS * size * furthest
    return Dependence(max(1.0, (together + extra * size) / (alone + extra)), records)


def draws_of_each(intervals: int, draws: int) -> int:
    """Posterior draws of each of that many intervals."""
    return min(draws, FEW_DRAWS) if intervals > MAX_DRAWN else draws


def blocks(draws: int) -> Iterator[int]:
    """Sizes of the blocks that add up to `draws`: a block fits into memory."""
    for start in range(0, draws, BLOCK):
        yield min(BLOCK, draws - start)


def extra_item(generator: np.random.Generator, rows: int, size: int) -> np.ndarray:
    """Draws of the extra item spread evenly over `rows` patterns: (size, rows)."""
    return generator.standard_gamma(EXTRA_ITEM / rows, size=(size, rows))


def tail_probability(items: int) -> float:
    """What a quantile leaves outside on one side: 0.025, less where items are few."""
    n = max(items, 2)
    return NormalDist().cdf(-student_97_5(n - 1) * (n / (n - 1)) ** 0.5)


def limits(value: float, lower: np.ndarray, upper: np.ndarray, tail: float) -> Interval | None:
    """The interval of a value from draws under both posteriors; None where none is defined.

    tail: what each quantile leaves outside.
    """
    undefined = int(np.isnan(lower).sum()) + int(np.isnan(upper).sum())
    lower, upper = lower[~np.isnan(lower)], upper[~np.isnan(upper)]
    if not len(lower) or not len(upper):
        return None
    low, high = float(np.quantile(lower, tail)), float(np.quantile(upper, 1 - tail))
    return Interval(min(low, value), max(high, value), POSTERIOR, undefined)


def normal(
    value: float, standard_error: float, one_item: float, freedom: int = GROUPS - 1
) -> Interval:
    """The interval of a value with a standard error of that many degrees of freedom.

    `one_item` is how far one item can move the value: 0.6 of its square is added to the variance,
    so that agreement without exception has no interval of zero width.
    """
    reach = student_97_5(freedom) * float(np.sqrt(standard_error**2 + EXTRA_ITEM * one_item**2))
    return Interval(value - reach, value + reach, STANDARD_ERROR)


def normal_of_few(value: float, standard_error: float, one_item: float, items: int) -> Interval:
    """The interval of a coefficient over few items, expanded as the quantiles are; at most 1."""
    n = max(items, 2)
    found = normal(value, standard_error * (n / (n - 1)) ** 0.5, one_item, n - 1)
    return Interval(max(found.low, -1.0), min(found.high, 1.0), found.source)


def group_of_items(items: int, record: np.ndarray | None = None) -> np.ndarray:
    """A group for each item by chance, all of one size or one less, by whole records: (items,)."""
    if record is not None:
        _, place = np.unique(record, return_inverse=True)
        groups: np.ndarray = group_of_items(int(place.max()) + 1)[place]
        return groups
    return np.random.default_rng(0).permutation(items) % min(GROUPS, items)


def jackknife(left_out: np.ndarray) -> float:
    """The standard error of a value from its values without each group of items: (groups,)."""
    number = len(left_out)
    return float(np.sqrt((number - 1) / number * ((left_out - left_out.mean()) ** 2).sum()))


def one_alone(judges: int, dissenters: Sequence[int], labels: Sequence[int]) -> np.ndarray:
    """Answer patterns in which one of `dissenters` differs from all others: (rows, judges)."""
    rows = []
    for dissenter in dissenters:
        for label in labels:
            for other in labels:
                if other != label:
                    row = np.full(judges, label)
                    row[dissenter] = other
                    rows.append(row)
    return np.array(rows)


def all_agree(judges: int, labels: Sequence[int]) -> np.ndarray:
    """Answer patterns in which every judge gives the same label: (rows, judges)."""
    return np.repeat(np.asarray(labels)[:, None], judges, axis=1)


def intervals_from(intervals: Sequence[Mapping[str, Any]], draws: int) -> str:
    """How the 95 % intervals of a report were made, for a caption; empty where there are none."""
    sources = {found.get("interval_from") for found in intervals} - {None}
    by_draws = f"{draws:,} posterior draws over the items"
    by_formula = "standard errors, as there are too many answer patterns or pairs to sample"
    if sources == {POSTERIOR}:
        return f"95 % intervals from {by_draws}"
    if sources == {STANDARD_ERROR}:
        return f"95 % intervals from {by_formula}"
    return f"95 % intervals from {by_draws}; some from {by_formula}" if sources else ""


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


def kappa_interval(
    table: np.ndarray,
    draws: int,
    seed: int,
    kappas: Callable[[np.ndarray], np.ndarray] = kappas_of_tables,
    dependent: Dependence = INDEPENDENT,
) -> Interval | None:
    """The interval of one pair's kappa: the pattern of an item is its cell of the table.

    None where both gave one and the same label to every item: kappa is undefined there. `kappas`:
    the coefficient of tables of the labels in use.
    """
    used = np.flatnonzero(table.sum(axis=0) + table.sum(axis=1))
    if len(used) < 2:
        return None
    counts = table[np.ix_(used, used)]
    same = np.eye(len(used), dtype=bool)
    generator = np.random.default_rng(seed)
    lower, upper = [], []
    for size in blocks(draws):
        drawn = generator.standard_gamma(counts / dependent.factor, size=(size, *counts.shape))
        dissent, agree = drawn.copy(), drawn
        dissent[:, ~same] += extra_item(generator, int((~same).sum()), size)
        agree[:, same] += extra_item(generator, len(used), size)
        lower.append(kappas(dissent))
        upper.append(kappas(agree))
    value = float(kappas(counts))
    tail = tail_probability(dependent.independent(int(counts.sum())))
    return limits(value, np.concatenate(lower), np.concatenate(upper), tail)


def of_cells(
    table: np.ndarray,
    cells: np.ndarray,
    record: np.ndarray | None,
    kappas: Callable[[np.ndarray], np.ndarray] = kappas_of_tables,
) -> Dependence:
    """The dependence of the items of a table: `cells` has the place of each in it, `record` each
    one's record; `kappas` as for `kappa_interval`."""
    if record is None:
        return INDEPENDENT
    used, which = np.unique(cells, return_inverse=True)
    left_out = np.repeat(table[None], len(used), axis=0).reshape(len(used), -1)
    left_out[np.arange(len(used)), used] -= 1
    return dependence(kappas(left_out.reshape(-1, *table.shape))[which], record)
