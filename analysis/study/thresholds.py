"""Were the filter stricter: precision, recall and size at every threshold of a strictness. Pure.

A stricter filter keeps a group only where, in all its items, the validator is right as before and a
strictness (share of votes, margin over the next candidate, number of judges who agree) reaches the
threshold. So every threshold keeps a part of what was kept, and its figures are estimates of parts
of the run from judgments that are there: nothing is asked again. Never looser than the run: what
the validator missed has no strictness to relax.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from analysis.study.design import Design
from analysis.study.planning import Kinds
from analysis.study.run_estimates import Share, confirmed_share, share_of_two
from analysis.study.run_report import NO_ANSWERS, as_numbers
from db.errors import BadInput
from db.study.run_items import JudgedItem

MAX_THRESHOLDS: Final = 12


def explore_thresholds(
    kinds: Kinds,
    sample: Iterable[JudgedItem],
    design: Design,
    strictness: Mapping[int, float],
) -> list[dict[str, Any]]:
    """A row per threshold, the run as it is first (`threshold` None).

    `strictness` by item must know every item of the kept groups. Recall is of items: confirmed ones
    that still pass, of all confirmed ones. Raises BadInput where a strictness lacks items or the
    sample does not know both kept and dropped groups.
    """
    judged = list(sample)
    if set(design.known) != {"kept", "dropped"}:
        raise BadInput(
            f"no thresholds: {design.reason}",
            "create a study of sampled items: `studies create DATASET`",
            code="thresholds_impossible",
        )
    if any(kind.passed is None for _, kind in kinds.values()):
        raise BadInput(
            f"no thresholds: {NO_ANSWERS}",
            "create a study of sampled items: `studies create DATASET`",
            code="thresholds_impossible",
        )
    kept = [item for item, (_, kind) in kinds.items() if kind.verdict == "kept"]
    lacking = sum(item not in strictness for item in kept)
    if lacking:
        raise BadInput(
            f"no thresholds: {lacking:,} of {len(kept):,} items of kept groups have no such value",
            "have a model judge the whole run: `studies judge run=N judge=NAME`",
            code="thresholds_need_values",
        )
    of_group: dict[int, float] = defaultdict(lambda: np.inf)
    for item in kept:
        group = kinds[item][0]
        of_group[group] = min(of_group[group], strictness[item])
    return [
        _row(kinds, judged, design, strictness, of_group, threshold)
        for threshold in (None, *spread_thresholds(list(of_group.values())))
    ]


def spread_thresholds(values: Sequence[float]) -> list[float]:
    """Every value above the smallest, or at most MAX_THRESHOLDS quantiles of them."""
    different = sorted(set(values))[1:]
    if len(different) <= MAX_THRESHOLDS:
        return different
    shares = np.linspace(0, 1, MAX_THRESHOLDS + 2)[1:-1]
    return sorted({float(np.quantile(values, share, method="higher")) for share in shares})


def _row(
    kinds: Kinds,
    judged: Sequence[JudgedItem],
    design: Design,
    strictness: Mapping[int, float],
    of_group: Mapping[int, float],
    threshold: float | None,
) -> dict[str, Any]:
    least = -np.inf if threshold is None else threshold
    groups = {group for group, value in of_group.items() if value >= least}

    def share(items: set[int]) -> Share:
        part = Counter(kinds[item][1] for item in items)
        inside = [item for item in judged if item.item_id in items]
        return confirmed_share(part, inside, lambda kind: True, design.strata)

    # an item without a value (of a dropped group, say) passes as it did: only kept groups need one
    passing = {
        item
        for item, (_, kind) in kinds.items()
        if kind.passed and strictness.get(item, np.inf) >= least
    }
    precision = share({item for item, (group, _) in kinds.items() if group in groups})
    return {
        "threshold": threshold,
        "kept_groups": len(groups),
        "size": len(groups) / len(of_group) if of_group else None,
        "precision": as_numbers(precision),
        "recall": _recall(share(passing), share(set(kinds) - passing)),
    }


def _recall(passing: Share, rest: Share) -> dict[str, Any]:
    """Confirmed items that pass of all confirmed ones, from two parts with items apart."""
    for part in (passing, rest):
        if part.value is None and part.items:
            return {"value": None, "interval": None, "reason": part.reason}
    if not passing.items or passing.value is None:
        return {"value": 0.0, "interval": None, "no_interval": "no item passes"}
    if not rest.items or rest.value is None:
        return {"value": 1.0, "interval": None, "no_interval": "no item is left out"}
    value, interval = share_of_two(passing, rest)
    return {"value": value, "interval": interval}
