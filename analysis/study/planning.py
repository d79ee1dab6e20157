"""Which items to add to a study so that a figure about its run gets an interval of a given width.

Pure. Items go where they help most: the next one to the cell in which it lowers the variance most,
which is Neyman's allocation (n_c in proportion to N_c S_c, less what was judged already). A cell is
a verdict, the number of items the validator missed in a group, the design's strata, and whether the
validator passed the item. Within a cell groups are sampled at random among those not in the study,
so that the estimates stay valid with the cells as strata.

Note: a group gives one item to a study, so a run can be too small for a width; the
plan then says what is the best that it allows.
"""

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from analysis.study.design import TARGETS, Design
from analysis.study.run_estimates import TAIL, Share
from db.errors import BadInput
from db.study.run_items import ItemKind, JudgedItem

UNSEEN: Final = 0.5  # judged groups that a cell without one counts as
PRIOR: Final = 2.0  # items of the part that the share of a cell borrows
MAX_ITEMS: Final = 20_000
Kinds = Mapping[int, tuple[int, ItemKind]]


class PlanCell(NamedTuple):
    """Where items come from; `stratum` has a value for each of the plan's strata."""

    verdict: str
    missed: int | None
    passed: bool | None
    stratum: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """How many items to add in which cells.

    `reach` is half the width wanted, `now` that of today's interval (None: no interval yet),
    `expected` that after the addition. `is_enough`: whether the run has enough groups for it.
    """

    target: str
    reach: float | None
    now: float | None
    expected: float
    is_enough: bool
    strata: tuple[str, ...]
    cells: dict[PlanCell, int]

    @property
    def items(self) -> int:
        """Items to add."""
        return sum(self.cells.values())


@dataclass
class _Part:
    """The items of a cell: in the run, judged, confirmed share, and whether they are of M."""

    size: int
    judged: float
    share: float
    is_missed: bool


def plan_items(
    kinds: Kinds,
    sample: Sequence[JudgedItem],
    design: Design,
    *,
    target: str,
    used: Iterable[int],
    reach: float | None = None,
    items: int | None = None,
) -> Plan:
    """The plan for a target: to a half-width `reach`, or with a number of `items`.

    `used` are the study's items. Raises BadInput where the design does not allow the target.
    """
    if target not in TARGETS:
        raise BadInput(
            f"no target {target!r}", f"one of {', '.join(TARGETS)}", code="target_unknown"
        )
    needed = {"precision": {"kept"}, "overturned": {"dropped"}, "recall": {"kept", "dropped"}}
    if not needed[target] <= set(design.known):
        raise BadInput(
            f"no plan for {target}: {design.reason}",
            "create a study of sampled items: `studies create DATASET`",
            code="plan_impossible",
        )
    if target != "precision" and any(kind.passed is None for _, kind in kinds.values()):
        raise BadInput(
            f"no plan for {target}: the validator's answers are not in the store",
            "choose another figure",
            code="validator_answers_missing",
        )
    parts = _parts(kinds, sample, design, target)
    if not parts:
        raise BadInput(
            f"no plan for {target}: the run has no such item",
            "choose another figure",
            code="plan_items_missing",
        )
    expected_of = _width_of(parts, target)
    now = expected_of(parts) if any(part.judged >= 1 for part in parts.values()) else None
    free = _free_groups(kinds, used, design.strata)
    cells = _allocate(parts, free, target, lambda: expected_of(parts), reach, items)
    expected = expected_of(parts)
    enough = reach is None or expected <= reach
    return Plan(target, reach, now, expected, enough, design.strata, cells)


def added_items(kinds: Kinds, used: Iterable[int], plan: Plan, seed: int) -> list[int]:
    """The items of a plan, one of a group, at random within cells and in a random order."""
    chance = random.Random(seed)
    taken = {kinds[item][0] for item in used if item in kinds}
    by_group: dict[int, dict[int, ItemKind]] = defaultdict(dict)
    for item, (group, kind) in kinds.items():
        if group not in taken:
            by_group[group][item] = kind
    pools: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for group in sorted(by_group):
        pools[_group_cell(next(iter(by_group[group].values())), plan.strata)].append(group)
    for pool in pools.values():
        chance.shuffle(pool)
    used_scenarios: Counter[str] = Counter()
    chosen = []
    for cell, number in sorted(plan.cells.items(), key=str):
        pool = pools[cell.verdict, cell.missed, cell.stratum]
        for _ in range(number):
            of_group = by_group[pool.pop()]
            items = [item for item, kind in of_group.items() if kind.passed == cell.passed]
            if cell.verdict == "kept":  # every kept group has every scenario: keep them even
                item = min(items, key=lambda item: used_scenarios[of_group[item].scenario])
                used_scenarios[of_group[item].scenario] += 1
            else:
                item = chance.choice(items)
            chosen.append(item)
    chance.shuffle(chosen)
    return chosen


def _cell(kind: ItemKind, strata: Sequence[str]) -> PlanCell:
    values = tuple(str(getattr(kind, name)) for name in strata)
    return PlanCell(kind.verdict, kind.missed, kind.passed, values)


def _group_cell(kind: ItemKind, strata: Sequence[str]) -> tuple[object, ...]:
    cell = _cell(kind, strata)
    return cell.verdict, cell.missed, cell.stratum


def _free_groups(
    kinds: Kinds, used: Iterable[int], strata: Sequence[str]
) -> Counter[tuple[object, ...]]:
    taken = {kinds[item][0] for item in used if item in kinds}
    cells = {
        group: _group_cell(kind, strata) for group, kind in kinds.values() if group not in taken
    }
    return Counter(cells.values())


def _parts(
    kinds: Kinds, sample: Sequence[JudgedItem], design: Design, target: str
) -> dict[PlanCell, _Part]:
    def is_part(kind: ItemKind) -> bool:
        if target == "precision":
            return kind.verdict == "kept"
        return target == "recall" or kind.passed is False

    sizes = Counter(_cell(kind, design.strata) for _, kind in kinds.values() if is_part(kind))
    values: dict[PlanCell, list[float]] = defaultdict(list)
    for item in sample:
        if is_part(item.kind):
            values[_cell(item.kind, design.strata)].append(item.value)
    parts = {}
    for cell, size in sizes.items():
        alike = [v for c, each in values.items() if c.passed == cell.passed for v in each]
        # a part without a judgment, or with all alike, is taken to vary a little all the same
        whole = (sum(alike) + 0.5) / (len(alike) + 1)
        own = values.get(cell, [])
        share = (sum(own) + PRIOR * whole) / (len(own) + PRIOR)
        parts[cell] = _Part(size, len(own), share, cell.passed is False)
    return parts


def _width_of(parts: Mapping[PlanCell, _Part], target: str) -> Callable[..., float]:
    """A function from parts to half the width of the interval that they would give."""

    def share_of(chosen: Sequence[_Part]) -> Share:
        size = sum(part.size for part in chosen)
        shares = [(part.size / size, part.share, max(part.judged, UNSEEN)) for part in chosen]
        value = sum(weight * share for weight, share, _ in shares)
        unknown = [
            weight**2 / judged * max(0.0, 1 - judged / part.size)  # of the finite run
            for (weight, _, judged), part in zip(shares, chosen, strict=True)
        ]
        spread = [share * (1 - share) for _, share, _ in shares]
        variance = sum(u * s for u, s in zip(unknown, spread, strict=True))
        judged = int(sum(part.judged for part in chosen))
        if not variance:
            return Share(value, judged, size, effective=np.inf)
        effective = min(1 / sum(unknown), value * (1 - value) / variance)
        return Share(value, judged, size, effective=effective)

    def width(now: Mapping[PlanCell, _Part]) -> float:
        if target != "recall":
            low, high = share_of(list(now.values())).limits(TAIL)
            return (high - low) / 2
        passed = [part for part in now.values() if not part.is_missed]
        missed = [part for part in now.values() if part.is_missed]
        if not passed or not missed:
            return 0.0
        one, other = share_of(passed), share_of(missed)
        limits = []
        for low, tail in ((True, TAIL), (False, 1 - TAIL)):
            right = one.items * one.draws(low=low)
            wrong = other.items * other.draws(low=not low, seed=1)
            limits.append(float(np.quantile(right / (right + wrong), tail)))
        return (limits[1] - limits[0]) / 2

    return width


def _gradients(parts: Mapping[PlanCell, _Part], target: str) -> dict[PlanCell, float]:
    """How the figure answers to the share of each cell."""
    total = sum(part.size for part in parts.values())
    if target != "recall":
        return {cell: part.size / total for cell, part in parts.items()}
    right = sum(part.size * part.share for part in parts.values() if not part.is_missed)
    wrong = sum(part.size * part.share for part in parts.values() if part.is_missed)
    whole = (right + wrong) ** 2 or 1.0
    return {
        cell: part.size * (right if part.is_missed else wrong) / whole
        for cell, part in parts.items()
    }


def _allocate(
    parts: dict[PlanCell, _Part],
    free: Counter[tuple[object, ...]],
    target: str,
    expected: Callable[[], float],
    reach: float | None,
    items: int | None,
) -> dict[PlanCell, int]:
    """Add items one by one where they help most; changes `parts` and `free`."""
    gradients = _gradients(parts, target)

    def gain(cell: PlanCell) -> float:
        part = parts[cell]
        judged = max(part.judged, UNSEEN)
        variance = gradients[cell] ** 2 * part.share * (1 - part.share)
        return variance * (1 / judged - 1 / (judged + 1))

    # the place breaks ties: cells with and without None do not compare
    heap = [(-gain(cell), place, cell) for place, cell in enumerate(sorted(parts, key=str))]
    heapq.heapify(heap)
    added: Counter[PlanCell] = Counter()
    most = MAX_ITEMS if items is None else items
    checked = 0
    while heap and added.total() < most:
        # the width is costly to compute: look every two per cent of the items
        if reach is not None and added.total() >= checked:
            if expected() <= reach:
                break
            checked = added.total() + max(1, added.total() // 50)
        _, place, cell = heapq.heappop(heap)
        group = (cell.verdict, cell.missed, cell.stratum)
        if not free[group]:
            continue
        free[group] -= 1
        parts[cell].judged += 1
        added[cell] += 1
        heapq.heappush(heap, (-gain(cell), place, cell))
    return dict(added)
