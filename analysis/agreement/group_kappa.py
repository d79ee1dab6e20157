"""Kappa of one judge with a group of judges, of whom others may have judged each item. Pure.

    kappa = (p_o - p_e) / (1 - p_e),  p_o = mean over items of n_i,a(i) / n_i,
    p_e = sum_c own_c · group_c

a(i) is the label that the judge gave to item i, n_ic how many of the group gave it label c, n_i
their number; own_c is the share of the judge's labels, group_c the mean over items of n_ic / n_i
(Vanbelle and Albert 2009, "Agreement between an isolated observer and a group of observers"; the
same with a group that differs from item to item). Items count alike, however many judged them.
Equal to Cohen's kappa where the group is one. Undefined without an item in common and where the
judge and the group gave one and the same label throughout (0/0).

Everything is a function of sums over items of `features`, so draws are matrix products.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from analysis.agreement import intervals
from analysis.agreement.answers import Answers, patterns
from analysis.agreement.cohen import NO_ITEMS, ONE_LABEL
from analysis.agreement.headline import MIN_SHARED
from analysis.agreement.intervals import (
    BY_FORMULA,
    INDEPENDENT,
    Dependence,
    Interval,
    blocks,
    dependence,
    draws_of_each,
    extra_item,
    interval_numbers,
    jackknife,
    limits,
    normal,
    tail_probability,
)

SEED = 0
TAIL = 0.025
NO_OTHER = "no judge to compare with"
CHUNK = 200_000  # decisions at once: 25 MB of shares for 15 labels


def features(own: np.ndarray, group: np.ndarray) -> np.ndarray:
    """1, whether the group agrees, the own label, the group's shares: (rows, 2 + 2 · labels).

    own: labels, (rows,), -1 a gap; group: counts of labels, (rows, labels). A row with a gap or
    without anybody of the group is zero.
    """
    labels = group.shape[1]
    number = group.sum(axis=1)
    rows = np.flatnonzero((own >= 0) & (number > 0))
    found = np.zeros((len(own), 2 + 2 * labels))
    shares = group[rows] / number[rows, None]
    found[rows, 0] = 1.0
    found[rows, 1] = shares[np.arange(len(rows)), own[rows]]
    found[rows, 2 + own[rows]] = 1.0
    found[rows, 2 + labels :] = shares
    return found


def kappas(sums: np.ndarray) -> np.ndarray:
    """Kappa of sums of features, (…, 2 + 2 · labels) → (…); NaN where undefined."""
    labels = (sums.shape[-1] - 2) // 2
    number, same = sums[..., 0], sums[..., 1]
    by_chance = (sums[..., 2 : 2 + labels] * sums[..., 2 + labels :]).sum(axis=-1)
    beyond = number * number - by_chance
    with np.errstate(divide="ignore", invalid="ignore"):
        found: np.ndarray = np.where(
            beyond > 1e-9 * np.maximum(number, 1) ** 2, (number * same - by_chance) / beyond, np.nan
        )
    return found


def numbers(sums: np.ndarray) -> dict[str, Any]:
    """Value, raw agreement and items of one judge's sums, with the reason where undefined.

    Below `MIN_SHARED` items only their number.
    """
    items = round(float(sums[0]))
    if 0 < items < MIN_SHARED:
        return count_alone(items)
    value = float(kappas(sums))
    found: dict[str, Any] = {
        "value": None if np.isnan(value) else value,
        "interval": None,
        "agreement": float(sums[1] / sums[0]) if items else None,
        "items": items,
    }
    if found["value"] is None:
        found["reason"] = ONE_LABEL if items else NO_ITEMS
    return found


@dataclass(frozen=True)
class WithPeople:
    """Each model with the people; every interval and difference is of the same draws.

    `sums`: of each model, (models, features). `drawn`: posterior sums, (draws, models, features);
    None where there are too many patterns, `left_out` then has the sums without each group of
    items, (groups, models, features).
    """

    sums: np.ndarray
    labels: list[int]
    drawn: np.ndarray | None
    left_out: np.ndarray | None
    dependent: Dependence = INDEPENDENT

    def interval(self, model: int, tail: float | None = None) -> Interval | None:
        """The interval of a model's kappa; None where it is undefined or nothing was drawn.

        tail: what a quantile leaves outside; without one that of `tail_probability`.
        """
        value = float(kappas(self.sums[model]))
        items = self.dependent.independent(int(self.sums[model, 0]))
        if np.isnan(value):
            return None
        if self.left_out is not None:
            # a group of items may hold all that makes kappa defined
            return self._normal(value, kappas(self.left_out[:, model]), 2 / items)
        if self.drawn is None:
            return None
        alone, agree = self._extra()
        lower = kappas(self.drawn[:, model] + self._weights(len(alone)) @ alone)
        upper = kappas(self.drawn[:, model] + self._weights(len(self.labels)) @ agree)
        return limits(value, lower, upper, tail or tail_probability(items))

    def _normal(self, value: float, left_out: np.ndarray, one_item: float) -> Interval | None:
        error = jackknife(left_out)
        return normal(value, error, one_item, len(left_out) - 1) if np.isfinite(error) else None

    def difference(self, one: int, other: int) -> Interval | None:
        """The interval of kappa of the one less that of the other, paired over the same items.

        Lower limit: an extra item on which the first stands alone; upper: the second.
        """
        values = kappas(self.sums[[one, other]])
        value = float(values[0] - values[1])
        items = self.dependent.independent(int(self.sums[[one, other], 0].min()))
        if self.left_out is not None:
            each = kappas(self.left_out[:, one]) - kappas(self.left_out[:, other])
            return self._normal(value, each, 4 / items)
        if self.drawn is None:
            return None
        alone, _ = self._extra()
        common = self._common()
        weights = self._weights(len(alone))
        first, second = self.drawn[:, one], self.drawn[:, other]
        lower = kappas(first + weights @ alone) - kappas(second + weights @ common)
        upper = kappas(first + weights @ common) - kappas(second + weights @ alone)
        return limits(value, lower, upper, tail_probability(items))

    def _weights(self, rows: int) -> np.ndarray:
        assert self.drawn is not None
        return extra_item(np.random.default_rng(SEED + 1), rows, len(self.drawn))

    def _extra(self) -> tuple[np.ndarray, np.ndarray]:
        """Features of items on which the model is alone, and of items where all agree."""
        size = (self.sums.shape[1] - 2) // 2
        pairs = [(a, c) for a in self.labels for c in self.labels if a != c]
        return _certain(pairs, size), _certain([(a, a) for a in self.labels], size)

    def _common(self) -> np.ndarray:
        """Features of a model that agrees with the group where another one stands alone."""
        size = (self.sums.shape[1] - 2) // 2
        return _certain([(c, c) for a in self.labels for c in self.labels if a != c], size)


def _certain(pairs: Sequence[tuple[int, int]], labels: int) -> np.ndarray:
    """Features of items with the label of the one and the one label of all of the group."""
    own = np.array([a for a, _ in pairs], dtype=np.int64)
    group = np.zeros((len(pairs), labels))
    group[np.arange(len(pairs)), [c for _, c in pairs]] = 1
    return features(own, group)


def with_people(
    answers: Answers, people: Sequence[int], models: Sequence[int], draws: int
) -> WithPeople:
    """The models with the people, with `draws` posterior draws (0: none)."""
    labels = len(answers.labels)
    group, own = answers.label_counts(people), answers.matrix(models)
    compared = (group.sum(axis=1) > 0) & (own >= 0).any(axis=1)
    group, own = group[compared], own[compared]
    record = answers.record_of(np.flatnonzero(compared))
    in_use = [group[:, label].any() or (own == label).any() for label in range(labels)]
    used = np.flatnonzero(np.array(in_use, dtype=bool))
    rows, counts, which = patterns(np.concatenate([own, group], axis=1))
    width = 2 + 2 * labels
    if not models or not len(rows):
        return WithPeople(np.zeros((len(models), width)), list(used), None, None)
    if len(rows) > intervals.MAX_PATTERNS:
        places = intervals.group_of_items(len(own), record)
        by_group = np.stack(
            [_sums_by_group(own[:, k], group, places) for k in range(len(models))], axis=1
        )
        sums = by_group.sum(axis=0)
        records = None if record is None else len(np.unique(record))
        dependent = Dependence(records=records)
        return WithPeople(sums, list(used), None, sums - by_group if draws else None, dependent)
    each = np.concatenate(
        [features(rows[:, k], rows[:, len(models) :]) for k in range(len(models))], axis=1
    )
    sums = (counts @ each).reshape(len(models), width)
    if not draws or len(used) < 2:
        return WithPeople(sums, list(used), None, None)
    dependent = _most_dependent(sums, each.reshape(len(rows), *sums.shape), which, record)
    generator = np.random.default_rng(SEED)
    drawn = [
        generator.standard_gamma(counts / dependent.factor, size=(size, len(counts))) @ each
        for size in blocks(draws)
    ]
    of_models = np.concatenate([block.astype(np.float32) for block in drawn])
    of_models = of_models.reshape(draws, len(models), width)
    return WithPeople(sums, list(used), of_models, None, dependent)


def _most_dependent(
    sums: np.ndarray, each: np.ndarray, which: np.ndarray, record: np.ndarray | None
) -> Dependence:
    """The dependence of the figure, kappa of a model or a difference of two, that has most of it.

    each: features of a pattern with each model, (patterns, models, features); which: the pattern
    of each item.
    """
    moves = kappas(sums - each)[which]
    figures = [moves[:, one] for one in range(moves.shape[1])]
    figures += [one - other for one, other in combinations(figures, 2)]
    found = [dependence(moves, record) for moves in figures]
    return max(found, key=lambda one: one.factor, default=INDEPENDENT)


def _sums_by_group(own: np.ndarray, group: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Sums of features by group of items: (groups, features)."""
    groups = int(places.max()) + 1
    found = np.zeros((groups, 2 + 2 * group.shape[1]))
    for start in range(0, len(own), CHUNK):
        part = slice(start, start + CHUNK)
        each = features(own[part], group[part])
        for column in range(each.shape[1]):
            found[:, column] += np.bincount(places[part], weights=each[:, column], minlength=groups)
    return found


def with_the_rest(answers: Answers, group: Sequence[int], draws: int) -> list[dict[str, Any]]:
    """Every judge with the judges of `group`, without himself: value, interval, items.

    The interval is from `draws` posterior draws (0: none) over the judge's items; from `BY_FORMULA`
    items, about as many records, on it is value ± t standard errors by the delta method. Quantiles
    are not expanded here: with 10 to 25 items of a judge they would cover more than 0.97
    (docs/intervals.md).
    """
    judges, labels = len(answers.judges), len(answers.labels)
    counts = answers.label_counts(group)
    sums = np.zeros((judges, 2 + 2 * labels))
    for _, judge, label, shares in _rest(answers, counts, group):
        agree = shares[np.arange(len(judge)), label]
        sums[:, 0] += np.bincount(judge, minlength=judges)
        sums[:, 1] += np.bincount(judge, weights=agree, minlength=judges)
        own = np.bincount(judge * labels + label, minlength=judges * labels)
        sums[:, 2 : 2 + labels] += own.reshape(judges, labels)
        for column in range(labels):
            of_rest = np.bincount(judge, weights=shares[:, column], minlength=judges)
            sums[:, 2 + labels + column] += of_rest
    found, members = [], set(group)
    for place in range(judges):
        row = numbers(sums[place])
        if not members or members == {place}:
            row["reason"] = NO_OTHER
        found.append(row)
    if not draws:
        return found
    known = [place for place, row in enumerate(found) if row["value"] is not None]
    records = _records_of_judges(answers)
    few = [p for p in known if min(found[p]["items"], records[p]) < BY_FORMULA]
    is_few = np.isin(np.arange(judges), few)
    squares, parts, moved = np.zeros(judges), [], []
    for item, judge, label, shares in _rest(answers, counts, group):
        moves = _influence(judge, label, shares, sums)
        squares += np.bincount(judge, weights=moves**2, minlength=judges)
        mine = is_few[judge]
        parts.append((judge[mine], label[mine], shares[mine]))
        if answers.record is not None:
            moved.append((judge, answers.record[item], moves))
    of_few = [np.concatenate(each) for each in zip(*parts, strict=True)]
    dependent = _dependent_judges(moved, judges)
    for place in known:
        of_judge = dependent[place]
        if is_few[place]:
            rows = np.flatnonzero(of_few[0] == place)
            each = draws_of_each(len(few), draws)
            spread = _posterior_interval(of_few[1][rows], of_few[2][rows], each, of_judge)
        else:
            items = found[place]["items"]
            error = float(np.sqrt(squares[place] * of_judge.factor)) / items
            reach, items = _reach(sums[place]), of_judge.independent(items)
            spread = intervals.normal_of_few(found[place]["value"], error, reach, items)
        found[place] |= interval_numbers(spread)
    return found


def _records_of_judges(answers: Answers) -> np.ndarray:
    """How many records each judge's items are about, (judges,)."""
    if answers.record is None:
        return np.bincount(answers.judge, minlength=len(answers.judges))
    number = int(answers.record.max()) + 1
    pairs = np.unique(answers.judge * number + answers.record[answers.item])
    return np.bincount(pairs // number, minlength=len(answers.judges))


def _dependent_judges(
    moved: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], judges: int
) -> list[Dependence]:
    """The dependence of each judge's items; moved: judges, records and moves, in parts."""
    if not moved:
        return [INDEPENDENT] * judges
    judge, record, moves = (np.concatenate(part) for part in zip(*moved, strict=True))
    order = np.argsort(judge, kind="stable")
    ends = np.searchsorted(judge[order], np.arange(judges + 1))
    places = (order[start:end] for start, end in pairwise(ends))
    return [dependence(moves[rows], record[rows]) for rows in places]


def _posterior_interval(
    label: np.ndarray, shares: np.ndarray, draws: int, dependent: Dependence
) -> Interval | None:
    """The interval of one judge's labels with the others' shares of labels, (items, labels)."""
    each = features(label, shares)
    rows, counts = np.unique(each, axis=0, return_counts=True)
    sums = each.sum(axis=0)
    labels = shares.shape[1]
    used = np.flatnonzero(sums[2 : 2 + labels] + sums[2 + labels :])
    generator = np.random.default_rng(SEED)
    drawn = np.concatenate(
        [
            generator.standard_gamma(counts / dependent.factor, size=(size, len(counts))) @ rows
            for size in blocks(draws)
        ]
    )
    tail = (
        TAIL if dependent.records is None else tail_probability(dependent.independent(len(label)))
    )
    return WithPeople(sums[None], list(used), drawn[:, None], None).interval(0, tail=tail)


def count_alone(items: int) -> dict[str, Any]:
    """A figure of too few items: their number instead of a value, and the reason."""
    reason = f"{items} shared item{'s' * (items != 1)}, a value needs {MIN_SHARED}"
    return {"value": None, "interval": None, "agreement": None, "items": items, "reason": reason}


def _rest(
    answers: Answers, counts: np.ndarray, group: Sequence[int]
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Item, judge, label, the rest's shares of labels of decisions with a rest, in chunks."""
    inside = np.isin(np.arange(len(answers.judges)), list(group))
    number = counts.sum(axis=1)
    for start in range(0, len(answers.item), CHUNK):
        part = slice(start, start + CHUNK)
        item, judge, label = answers.item[part], answers.judge[part], answers.label[part]
        rest = number[item] - inside[judge]
        some = np.flatnonzero(rest > 0)
        item, judge, label, rest = item[some], judge[some], label[some], rest[some]
        shares = counts[item].astype(np.float64)
        shares[np.arange(len(label)), label] -= inside[judge]
        shares /= rest[:, None]
        yield item, judge, label, shares


def _influence(
    judge: np.ndarray, label: np.ndarray, shares: np.ndarray, sums: np.ndarray
) -> np.ndarray:
    """How far each decision moves its judge's kappa, to first order, times the judge's items."""
    labels = shares.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / sums[:, :1]
        own, rest = means[:, 2 : 2 + labels], means[:, 2 + labels :]
        observed, chance = means[:, 1], (own * rest).sum(axis=1)
        moved = rest[judge, label] + (shares * own[judge]).sum(axis=1)
        agree = shares[np.arange(len(label)), label]
        slope = (agree - observed[judge]) * (1 - chance)[judge]
        slope -= (1 - observed)[judge] * (moved - 2 * chance[judge])
        slope /= (1 - chance)[judge] ** 2
    moves: np.ndarray = np.nan_to_num(slope)
    return moves


def _reach(sums: np.ndarray) -> float:
    """How far one more item could move the kappa of these sums, to first order."""
    labels = (len(sums) - 2) // 2
    used = np.flatnonzero(sums[2 : 2 + labels] + sums[2 + labels :])
    label, other = np.repeat(used, len(used)), np.tile(used, len(used))
    moves = _influence(np.zeros_like(label), label, np.eye(labels)[other], sums[None])
    return float(np.abs(moves).max() / sums[0])
