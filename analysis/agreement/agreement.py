"""Agreement of people and models about the same items. Pure: numpy only, fit for the UI process.

A label is *which candidate* was chosen, by its role (positive, instruction_negative, …,
distractor_1, none), since the candidates differ from item to item and their place on the screen
from judge to judge.

What would surprise: simulated judges stand in for people only where no real person has judged;
as soon as one has, they still appear among the pairs but in no mean. Resampling has a fixed seed:
the same judgments give the same intervals.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from analysis.agreement.answers import (
    MODEL,
    PERSON,
    Answers,
    Decision,
    JudgeInfo,
    common_items,
    number_decisions,
    pair_tables,
    patterns,
)
from analysis.agreement.bootstrap import (
    MOST_PATTERNS,
    RESAMPLES,
    Interval,
    kappa_gradient,
    kappa_interval,
    normal,
    percentiles,
    resampled_kappas,
    resampled_weights,
)
from analysis.agreement.coefficients import NAMES, NO_ITEM_TWICE, ONE_LABEL, coefficients
from analysis.agreement.cohen import Kappa, cohen_kappa

__all__ = ["Decision", "agreement_report", "people"]

MOST_PAIRS = 120  # more pairs than this get the interval of their standard error
SEED = 0
Pair = tuple[int, int]


def people(judges: Sequence[JudgeInfo]) -> list[JudgeInfo]:
    """Who counts as a person: real people, or simulated ones where there is no real one."""
    persons = [judge for judge in judges if judge.kind == PERSON]
    return [judge for judge in persons if not judge.simulated] or persons


def agreement_report(
    decisions: Iterable[Decision], *, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """Every measure of agreement with its 95 % interval, as `--json` prints them.

    A mean is over the pairs whose kappa is defined; how many are not is told beside it.
    """
    answers = number_decisions(decisions)
    tables = pair_tables(answers)
    judges = answers.judges
    kappas = {(a, b): cohen_kappa(tables[a, b]) for a, b in combinations(range(len(judges)), 2)}
    named = people(judges)
    humans = [place for place, judge in enumerate(judges) if judge in named]
    models = [place for place, judge in enumerate(judges) if judge.kind == MODEL]
    means: dict[str, list[Pair]] = {"": list(combinations(humans, 2))}
    for model in models:
        means[judges[model].name] = [(human, model) for human in humans]
    defined = {
        name: [pair for pair in pairs if kappas[pair].value is not None]
        for name, pairs in means.items()
    }
    spread = _Spread(answers, tables, kappas, defined, resamples)
    nobody = dict.fromkeys(means, "no person has judged")
    nobody[""] = "fewer than two people have judged"
    summaries = {
        name: _mean([kappas[pair] for pair in pairs], nobody[name], spread.of_mean(name))
        for name, pairs in means.items()
    }
    return {
        "items": len(answers.items),
        "judgments": len(answers.item),
        "labels": answers.labels,
        "resamples": resamples,
        "judges": _judges(answers),
        "pairs": [
            {
                "judge_a": judges[a].name,
                "judge_b": judges[b].name,
                **_kappa(kappa, _pair_interval(tables[a, b], kappa, len(kappas), resamples)),
            }
            for (a, b), kappa in kappas.items()
        ],
        "human_human": summaries.pop(""),
        "human_model": summaries,
        "differences": _differences(answers, models, summaries, spread),
        "all_judges": _coefficients(answers, [*humans, *models], resamples),
        "people": _coefficients(answers, humans, resamples),
        "simulated": any(judge.simulated for judge in named),
        "simulated_left_out": sum(
            judge.simulated and judge.kind == PERSON and judge not in named for judge in judges
        ),
    }


class _Spread:
    """Where the means of kappas come from: the same resamples for all, or influences of items."""

    def __init__(
        self,
        answers: Answers,
        tables: np.ndarray,
        kappas: dict[Pair, Kappa],
        means: dict[str, list[Pair]],
        resamples: int,
    ) -> None:
        self.kappas, self.means = kappas, means
        pairs = sorted({pair for each in means.values() for pair in each})
        involved = sorted({judge for pair in pairs for judge in pair})
        self.resampled: dict[Pair, np.ndarray] = {}
        self.influence: dict[str, np.ndarray] = {}
        if not pairs or not resamples:
            return
        codes, counts = patterns(answers.matrix(involved))
        if len(codes) <= MOST_PATTERNS:
            column = {judge: place for place, judge in enumerate(involved)}
            columns = [(column[a], column[b]) for a, b in pairs]
            values = resampled_kappas(codes, counts, columns, len(answers.labels), resamples, SEED)
            self.resampled = {pair: values[:, place] for place, pair in enumerate(pairs)}
        else:
            self.influence = _influences(answers, tables, kappas, means)

    def of_mean(self, name: str) -> Interval | None:
        """The interval of a mean."""
        value = self._value(name)
        if value is None:
            return None
        if self.resampled:
            return percentiles(self._resampled_mean(name))
        return normal(value, _standard_error(self.influence[name])) if self.influence else None

    def of_difference(self, one: str, other: str) -> Interval | None:
        """The interval of the difference of two means, paired: over the same items."""
        first, second = self._value(one), self._value(other)
        if first is None or second is None:
            return None
        if self.resampled:
            return percentiles(self._resampled_mean(one) - self._resampled_mean(other))
        if not self.influence:
            return None
        paired = self.influence[one] - self.influence[other]
        return normal(first - second, _standard_error(paired))

    def _value(self, name: str) -> float | None:
        values = [self.kappas[pair].value for pair in self.means[name]]
        return float(np.mean([value for value in values if value is not None])) if values else None

    def _resampled_mean(self, name: str) -> np.ndarray:
        """Means over the pairs defined in the resample; NaN where none is."""
        values = np.stack([self.resampled[pair] for pair in self.means[name]])
        defined = ~np.isnan(values)
        number = defined.sum(axis=0)
        total = np.where(defined, values, 0.0).sum(axis=0)
        mean: np.ndarray = np.where(number > 0, total / np.maximum(number, 1), np.nan)
        return mean


def _influences(
    answers: Answers,
    tables: np.ndarray,
    kappas: dict[Pair, Kappa],
    means: dict[str, list[Pair]],
) -> dict[str, np.ndarray]:
    """What each item adds to each mean, to first order, times the number of items: (items,).

    An item moves a pair's kappa by (gradient of its cell) / (items of the pair).
    """
    judges, labels = len(answers.judges), len(answers.labels)
    gradients = np.zeros((judges, judges, labels, labels))
    for a, b in {pair for pairs in means.values() for pair in pairs}:
        gradients[a, b] = kappa_gradient(tables[a, b]) / kappas[a, b].items
    chosen = {name: np.zeros((judges, judges)) for name in means}
    for name, pairs in means.items():
        for pair in pairs:
            chosen[name][pair] = 1 / len(pairs)
    found = {name: np.zeros(len(answers.items)) for name in means}
    for one, other in common_items(answers):
        a, b = answers.judge[one], answers.judge[other]
        moves = gradients[a, b, answers.label[one], answers.label[other]]
        for name, share in chosen.items():
            found[name] += np.bincount(
                answers.item[one], weights=moves * share[a, b], minlength=len(answers.items)
            )
    return found


def _standard_error(influence: np.ndarray) -> float:
    return float(np.sqrt((influence**2).sum()))


def _pair_interval(table: np.ndarray, kappa: Kappa, pairs: int, resamples: int) -> Interval | None:
    if kappa.value is None or kappa.standard_error is None or not resamples:
        return None
    if pairs > MOST_PAIRS:
        return normal(kappa.value, kappa.standard_error)
    return kappa_interval(table, resamples, SEED)


def _kappa(kappa: Kappa, interval: Interval | None) -> dict[str, Any]:
    """A kappa's numbers; `reason` is there only where it is undefined."""
    values = {
        "kappa": kappa.value,
        "standard_error": kappa.standard_error,
        **_interval(interval),
        "agreement": kappa.agreement,
        "items": kappa.items,
    }
    return values if kappa.reason is None else {**values, "reason": kappa.reason}


def _interval(interval: Interval | None) -> dict[str, Any]:
    if interval is None:
        return {"interval": None}
    told = {"interval": [interval.low, interval.high], "interval_from": interval.source}
    return {**told, "undefined_resamples": interval.undefined} if interval.undefined else told


def _mean(kappas: Sequence[Kappa], nobody: str, interval: Interval | None) -> dict[str, Any]:
    values = [kappa.value for kappa in kappas if kappa.value is not None]
    agreements = [kappa.agreement for kappa in kappas if kappa.agreement is not None]
    mean: dict[str, Any] = {
        "kappa": float(np.mean(values)) if values else None,
        **_interval(interval),
        "agreement": float(np.mean(agreements)) if agreements else None,
        "pairs": len(values),
        "undefined_pairs": len(kappas) - len(values),
    }
    if not values:
        reasons = sorted({kappa.reason for kappa in kappas if kappa.reason})
        mean["reason"] = "; ".join(reasons) if kappas else nobody
    return mean


def _differences(
    answers: Answers, models: Sequence[int], means: dict[str, dict[str, Any]], spread: _Spread
) -> list[dict[str, Any]]:
    """Every two models: how much more the first agrees with the people, over the same items."""
    found = []
    for a, b in combinations([answers.judges[model].name for model in models], 2):
        one, other = means[a]["kappa"], means[b]["kappa"]
        row: dict[str, Any] = {"model_a": a, "model_b": b, "difference": None}
        if one is None or other is None:
            row["reason"] = means[a if one is None else b]["reason"]
        else:
            interval = spread.of_difference(a, b)
            row |= {"difference": one - other, **_interval(interval)}
            if interval is not None:
                row["differs"] = not interval.low <= 0 <= interval.high
        found.append(row)
    return found


def _judges(answers: Answers) -> list[dict[str, Any]]:
    items = np.bincount(answers.judge, minlength=len(answers.judges))
    return [
        {
            "judge": judge.name,
            "kind": judge.kind,
            "simulated": judge.simulated,
            "offline": judge.offline,
            "items": int(items[place]),
        }
        for place, judge in enumerate(answers.judges)
    ]


def _coefficients(
    answers: Answers, judges: Sequence[int], resamples: int
) -> dict[str, dict[str, Any]]:
    """Fleiss' kappa, Krippendorff's alpha, Gwet's AC1 and raw agreement of these judges."""
    counts = answers.label_counts(judges)
    counts = counts[counts.sum(axis=1) > 0]
    if not len(counts) or counts.sum(axis=1).max() < 2:
        return {name: {"value": None, "reason": NO_ITEM_TWICE} for name in NAMES}
    rows, weights = patterns(counts)
    in_use = int((counts.sum(axis=0) > 0).sum())
    values = coefficients(rows, weights[None, :], in_use)
    resampled = None
    if resamples and len(rows) <= MOST_PATTERNS:
        blocks = [
            coefficients(rows, block, in_use)
            for block in resampled_weights(weights, resamples, SEED)
        ]
        resampled = {name: np.concatenate([getattr(b, name) for b in blocks]) for name in NAMES}
    found: dict[str, dict[str, Any]] = {}
    for name in NAMES:
        value = float(getattr(values, name)[0])
        if np.isnan(value):
            found[name] = {"value": None, "reason": ONE_LABEL}
        else:
            interval = None if resampled is None else percentiles(resampled[name])
            found[name] = {"value": value, **_interval(interval)}
    return found
