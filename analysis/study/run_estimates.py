"""What a study says about its whole run: precision and recall of the validator. Pure.

People judge one item of a group. The estimates weight every judged item by how many items of the
run it stands for: within a cell (a stratum of the sample, verdict of the group, the validator's
answer about the item) all items had the same chance, so the share of a part of the run is

    p = sum_c N_c mean_c / sum_c N_c        N_c items of cell c in the run, mean_c of those judged

the stratified ratio form of the Horvitz-Thompson estimator, post-stratified by what is known of
every item. An item has one value, whether people confirm its passage, however many judged it, and
a group is one unit, whose items are averaged first: more judges per item narrow no interval.

Per item:    precision = confirmed share of the items in kept groups
             overturned = confirmed share of the items that the validator missed
             recall = confirmed items that the validator passed / confirmed items
Per group:   one item is judged of three, so only bounds are known. Whole groups are confirmed at
             least 1 - sum_s (1 - p_s) of the time (Bonferroni) and at most min_s p_s (Fréchet).

Intervals: Korn and Graubard (1998). The effective number of groups is the smaller of Kish's
1 / sum_c W_c^2 / n_c (1 - n_c / N_c) and p (1 - p) / variance, with the same correction for the
finite run (exact where a group's items are independent, conservative where they are alike).
Limits are quantiles of Beta(x, n - x + EXTRA) and Beta(x + EXTRA, n - x) with x = p n. Recall takes
its limits from draws of its parts. Coverage by simulation: bench/study_estimates.py,
docs/concepts/study-estimates.md.

Note: a cell of the run without a judged item is left out, and the share of the run
that the estimate covers is reported beside it.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from db.study.run_items import ItemKind, JudgedItem

DRAWS: Final = 20_000
EXTRA: Final = 0.6  # of Clopper and Pearson's one extra item; docs/concepts/study-estimates.md
SHRINK: Final = 1.0  # items of the whole part that a cell's variance borrows
TAIL: Final = 0.025
SEED: Final = 0
MIN_GROUPS: Final = 5
Population = Mapping[ItemKind, int]
Where = Callable[[ItemKind], bool]


@dataclass(frozen=True)
class Share:
    """The confirmed share of a part of the run.

    `judged`: groups that were judged; `items`: items of the part in the run; `covered`: share of
    them in cells with a judged item; `effective`: groups of a simple random sample that would know
    as much. Without a judged item `value` is None and `reason` says so.
    """

    value: float | None
    judged: int
    items: int
    covered: float = 1.0
    effective: float = 0.0
    reason: str = ""

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval; None below MIN_GROUPS judged groups."""
        if self.value is None or self.judged < MIN_GROUPS:
            return None
        return self.limits(TAIL)

    def limits(self, tail: float) -> tuple[float, float]:
        """Limits that leave `tail` outside on either side."""
        low = float(np.quantile(self.draws(low=True), tail))
        high = float(np.quantile(self.draws(low=False), 1 - tail))
        return min(low, self.value or 0.0), max(high, self.value or 0.0)

    def draws(self, *, low: bool, seed: int = SEED) -> np.ndarray:
        """Draws whose lower (or upper) quantiles are the limits: (DRAWS,)."""
        assert self.value is not None
        if np.isinf(self.effective):
            return np.full(DRAWS, self.value)
        confirmed = self.value * self.effective
        other = self.effective - confirmed
        generator = np.random.default_rng([SEED, seed])
        # a parameter of 0 is a distribution at the edge; gamma draws allow it, beta draws do not
        a = generator.standard_gamma(confirmed + (0 if low else EXTRA), DRAWS)
        b = generator.standard_gamma(other + (EXTRA if low else 0), DRAWS)
        return np.asarray(a / (a + b))


def share_of_two(one: Share, rest: Share) -> tuple[float, list[float] | None]:
    """Confirmed items of `one` among those of both parts, and the 95 % interval if both have one.

    The parts share no item; both must have items and a value.
    """
    assert one.value is not None and rest.value is not None

    def ratio(share: np.ndarray | float, other: np.ndarray | float) -> np.ndarray:
        right, wrong = np.multiply(one.items, share), np.multiply(rest.items, other)
        return np.asarray(right / np.maximum(right + wrong, 1e-300))

    interval = None
    if one.interval and rest.interval:
        low = ratio(one.draws(low=True), rest.draws(low=False, seed=1))
        high = ratio(one.draws(low=False), rest.draws(low=True, seed=1))
        interval = [float(np.quantile(low, TAIL)), float(np.quantile(high, 1 - TAIL))]
    return float(ratio(one.value, rest.value)), interval


@dataclass(frozen=True)
class _Cell:
    weight: float  # of the part, among the cells that were judged
    mean: float
    groups: int
    items: int  # of the run in this cell

    @property
    def left(self) -> float:
        """Finite population correction: the share of the cell's items that nobody judged."""
        return max(0.0, 1 - self.groups / self.items)


def confirmed_share(
    population: Population,
    sample: Iterable[JudgedItem],
    where: Where,
    strata: Sequence[str] = (),
    weight: Callable[[ItemKind], float] = lambda kind: 1.0,
) -> Share:
    """The confirmed share of the items that `where` takes, each with its `weight`.

    `strata` are the fields of ItemKind that the sample was stratified by.
    """
    part = {kind: count for kind, count in population.items() if where(kind)}
    judged = [item for item in sample if where(item.kind)]
    items = sum(part.values())
    cells, covered = _cells(part, judged, strata, weight)
    groups = len({item.group_id for item in judged})
    if not cells:
        return Share(None, 0, items, 0.0, reason="people have judged none of these items")
    value = sum(cell.weight * cell.mean for cell in cells)
    return Share(min(max(value, 0.0), 1.0), groups, items, covered, _effective(cells, value))


def _cells(
    part: Population,
    judged: Sequence[JudgedItem],
    strata: Sequence[str],
    weight: Callable[[ItemKind], float],
) -> tuple[list[_Cell], float]:
    """Cells of strata, verdict and validator's answer; fine ones by scenario and number of misses
    where each of a stratum's was judged. Returns them and the share of the part they cover."""

    def coarse(kind: ItemKind) -> Hashable:
        return (kind.verdict, kind.passed, *(getattr(kind, name) for name in strata))

    def fine(kind: ItemKind) -> tuple[Hashable, ...]:
        return (coarse(kind), kind.missed, kind.scenario)

    sizes: dict[Hashable, float] = defaultdict(float)
    by_fine: dict[Hashable, float] = defaultdict(float)
    counts: dict[Hashable, int] = defaultdict(int)
    below: dict[Hashable, set[Hashable]] = defaultdict(set)
    for kind, count in part.items():
        sizes[coarse(kind)] += count * weight(kind)
        by_fine[fine(kind)] += count * weight(kind)
        counts[coarse(kind)] += count
        counts[fine(kind)] += count
        below[coarse(kind)].add(fine(kind))
    seen = {fine(item.kind) for item in judged}
    split = {cell for cell, parts in below.items() if parts <= seen}
    found: dict[Hashable, dict[int, list[tuple[float, float]]]] = defaultdict(dict)
    for item in judged:
        cell = coarse(item.kind)
        key: Hashable = fine(item.kind) if cell in split else cell
        found[key].setdefault(item.group_id, []).append((item.value, weight(item.kind)))
    sized = {key: by_fine[key] if key in by_fine else sizes[key] for key in found}
    total, known = sum(sizes.values()), sum(sized.values())
    cells = []
    for key, groups in found.items():
        # plain sums: a call of numpy per group costs more than all else here
        weights = [sum(w for _, w in each) / len(each) for each in groups.values()]
        totals = [
            w * sum(v * part for v, part in each) / sum(part for _, part in each)
            for w, each in zip(weights, groups.values(), strict=True)
        ]
        mean = sum(totals) / sum(weights)
        cells.append(_Cell(sized[key] / known, mean, len(groups), counts[key]))
    return cells, known / total if total else 0.0


def _effective(cells: Sequence[_Cell], value: float) -> float:
    unknown = [cell.weight**2 / cell.groups * cell.left for cell in cells]
    if not sum(unknown):
        return np.inf  # every item of the run is judged
    kish = 1 / sum(unknown)
    variance = sum(u * _spread(cell, value) for u, cell in zip(unknown, cells, strict=True))
    return min(kish, value * (1 - value) / variance) if 0 < value < 1 and variance else kish


def _spread(cell: _Cell, value: float) -> float:
    """p (1 - p) of a cell, with its mean drawn towards that of the part: few items say little."""
    mean = (cell.mean * cell.groups + SHRINK * value) / (cell.groups + SHRINK)
    return mean * (1 - mean)
