"""Every two judges: Cohen's kappa where they share enough items, else how many they share. Pure.

A thousand judges are half a million pairs. How many items each pair shares is counted for all of
them, in memory of judges²; only the pairs that share most are listed, and only those that share
`MIN_SHARED` items or more get a value.
"""

from itertools import combinations
from typing import Any, Final

import numpy as np

from analysis.agreement.answers import Answers
from analysis.agreement.cohen import Kappa, cohen_kappa
from analysis.agreement.group_kappa import count_alone
from analysis.agreement.headline import MIN_SHARED
from analysis.agreement.intervals import (
    BY_FORMULA,
    MAX_DRAWN,
    Interval,
    draws_of_each,
    interval_numbers,
    kappa_interval,
    normal_of_few,
    of_cells,
)

MAX_LISTED: Final = 300
CROWDED: Final = 32  # judgments of an item; of more its pairs are counted by a product of matrices
CHUNK: Final = 4096
SEED: Final = 0


def shared_items(answers: Answers) -> np.ndarray:
    """How many items each two judges share: (judges, judges), filled above the diagonal."""
    judges = len(answers.judges)
    shared = np.zeros(judges * judges, dtype=np.int64)
    crowded = np.bincount(answers.item, minlength=len(answers.items)) > CROWDED
    few = ~crowded[answers.item]
    item, judge = answers.item[few], answers.judge[few]
    for apart in range(1, CROWDED):
        one = np.flatnonzero(item[:-apart] == item[apart:])
        if not len(one):
            break
        keys = judge[one] * judges + judge[one + apart]
        shared += np.bincount(keys, minlength=judges * judges)
    table = shared.reshape(judges, judges)
    items = np.flatnonzero(crowded)
    for start in range(0, len(items), CHUNK):
        place = np.full(len(answers.items), -1)
        chosen = items[start : start + CHUNK]
        place[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(place[answers.item] >= 0)
        judged = np.zeros((judges, len(chosen)), dtype=np.float32)
        judged[answers.judge[rows], place[answers.item[rows]]] = 1
        table += np.triu(judged @ judged.T, 1).astype(np.int64)
    return table


def common(answers: Answers, one: int, other: int) -> tuple[np.ndarray, np.ndarray]:
    """The items that both judged, and the cell of each: label of one · labels + of the other."""
    first = np.full(len(answers.items), -1, dtype=np.int64)
    mine = answers.judge == one
    first[answers.item[mine]] = answers.label[mine]
    theirs = np.flatnonzero(answers.judge == other)
    theirs = theirs[first[answers.item[theirs]] >= 0]
    items = answers.item[theirs]
    return items, first[items] * len(answers.labels) + answers.label[theirs]


def table_of(cells: np.ndarray, labels: int) -> np.ndarray:
    """Counts by label of the one and of the other judge, from the cells of `common`."""
    return np.bincount(cells, minlength=labels * labels).reshape(labels, labels)


def pair_kappa(
    answers: Answers, one: int, other: int, draws: int, pairs: int = 1
) -> tuple[Kappa, Interval | None]:
    """Cohen's kappa of two judges with its interval from `draws` posterior draws (0: none); of many
    pairs those with many items have it by formula."""
    items, cells = common(answers, one, other)
    table = table_of(cells, len(answers.labels))
    kappa = cohen_kappa(table)
    if kappa.value is None or kappa.standard_error is None or not draws:
        return kappa, None
    dependent = of_cells(table, cells, answers.record_of(items))
    independent = dependent.independent(kappa.items)
    if pairs > MAX_DRAWN and independent >= BY_FORMULA:
        error = kappa.standard_error * dependent.factor**0.5
        return kappa, normal_of_few(kappa.value, error, 2 / independent, independent)
    each = draws_of_each(pairs, draws)
    return kappa, kappa_interval(table, each, SEED, dependent=dependent)


def pairs_of(answers: Answers, draws: int) -> dict[str, Any]:
    """`pairs`, those listed; `pairs_counted`: all of them, by whether they share enough items.

    Up to `MAX_LISTED` pairs all are listed, in the order of the judges; of more those that share
    most items. `pair_resamples` posterior draws are behind each interval.
    """
    names, shared = [judge.name for judge in answers.judges], shared_items(answers)
    number = len(names) * (len(names) - 1) // 2
    if number <= MAX_LISTED:
        listed = list(combinations(range(len(names)), 2))
    else:
        most = np.argsort(-shared, axis=None, kind="stable")[:MAX_LISTED]
        places = np.stack(np.unravel_index(most, shared.shape), axis=1)
        listed = sorted((int(a), int(b)) for a, b in places if shared[a, b])
    enough = sum(bool(shared[pair] >= MIN_SHARED) for pair in listed)
    found = []
    for a, b in listed:
        row: dict[str, Any] = {"judge_a": names[a], "judge_b": names[b]}
        items = int(shared[a, b])
        if 0 < items < MIN_SHARED:
            alone = count_alone(items)
            found.append({**row, "kappa": alone.pop("value"), "standard_error": None, **alone})
            continue
        kappa, interval = pair_kappa(answers, a, b, draws, enough)
        found.append({**row, **numbers_of(kappa, interval)})
    counted = {
        "pairs": number,
        "listed": len(listed),
        "with_enough_items": int((shared >= MIN_SHARED).sum()),
        "with_fewer": int(((shared > 0) & (shared < MIN_SHARED)).sum()),
        "min_shared": MIN_SHARED,
    }
    return {
        "pairs": found,
        "pairs_counted": counted,
        "pair_resamples": draws_of_each(enough, draws),
    }


def numbers_of(kappa: Kappa, interval: Interval | None) -> dict[str, Any]:
    """A kappa's numbers; `reason` is there only where it is undefined."""
    values = {
        "kappa": kappa.value,
        "standard_error": kappa.standard_error,
        **interval_numbers(interval),
        "agreement": kappa.agreement,
        "items": kappa.items,
    }
    return values if kappa.reason is None else {**values, "reason": kappa.reason}
