"""Agreement of people and models about the same items. Pure: numpy only, fit for the UI process.

A label is *which candidate* was chosen, by its role (positive, instruction_negative, …,
distractor_1, none), since the candidates differ from item to item and their place on the screen
from judge to judge.

Note: simulated judges stand in for people only where no real person has judged;
as soon as one has, they still appear among the pairs but in no mean. Draws have a fixed seed:
the same judgments give the same intervals.
"""

from collections.abc import Iterable, Mapping, Sequence
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
from analysis.agreement.cohen import Kappa, cohen_kappa
from analysis.agreement.intervals import (
    DRAWS,
    MAX_PATTERNS,
    Interval,
    all_agree,
    blocks,
    extra_item,
    intervals_from,
    kappa_gradient,
    kappa_interval,
    kappas_of_tables,
    limits,
    mean_of_defined,
    normal,
    one_alone,
    pair_features,
)
from analysis.agreement.measures import MEASURES, NO_ITEM_TWICE, ONE_LABEL, measure_values

__all__ = ["Decision", "agreement_report", "interval_caption", "people"]

MAX_PAIRS = 120  # with more pairs each gets fewer draws: 1,225 pairs of 50 judges in seconds
FEW_DRAWS = 2000
SEED = 0
Pair = tuple[int, int]


def people(judges: Sequence[JudgeInfo]) -> list[JudgeInfo]:
    """Who counts as a person: real people, or simulated ones where there is no real one."""
    persons = [judge for judge in judges if judge.kind == PERSON]
    return [judge for judge in persons if not judge.simulated] or persons


def agreement_report(decisions: Iterable[Decision], *, resamples: int = DRAWS) -> dict[str, Any]:
    """Every measure of agreement with its 95 % interval, as `--json` prints them.

    A mean is over the pairs whose kappa is defined; how many are not is reported beside it.
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
    no_judges = dict.fromkeys(means, "no person has judged")
    no_judges[""] = "fewer than two people have judged"
    summaries = {
        name: _mean([kappas[pair] for pair in pairs], no_judges[name], spread.of_mean(name))
        for name, pairs in means.items()
    }
    return {
        "items": len(answers.items),
        "judgments": len(answers.item),
        "labels": answers.labels,
        "resamples": resamples,
        "pair_resamples": _pair_draws(len(kappas), resamples),
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
        "all_judges": _measures(answers, [*humans, *models], resamples),
        "people": _measures(answers, humans, resamples),
        "simulated": any(judge.simulated for judge in named),
        "simulated_left_out": sum(
            judge.simulated and judge.kind == PERSON and judge not in named for judge in judges
        ),
    }


def interval_caption(report: Mapping[str, Any]) -> str:
    """How the intervals of a report were computed; empty where it has none."""
    measures = [report["human_human"], *report["human_model"].values()]
    caption = intervals_from([*measures, *report["pairs"]], report["resamples"])
    of_pairs = report.get("pair_resamples", report["resamples"])
    if caption and of_pairs != report["resamples"]:
        caption += f", {of_pairs:,} for each pair of judges"
    every = [*measures, *report["pairs"], *report["differences"]]
    every += [*report["people"].values(), *report["all_judges"].values()]
    undefined = max(each.get("undefined_resamples", 0) for each in every)
    if undefined:
        caption += f"; up to {undefined:,} draws of a figure have no value and are left out"
    return caption


class _Spread:
    """Where the intervals of means come from: posterior draws, or influences of items."""

    def __init__(
        self,
        answers: Answers,
        tables: np.ndarray,
        kappas: dict[Pair, Kappa],
        means: dict[str, list[Pair]],
        draws: int,
    ) -> None:
        self.answers, self.tables, self.kappas, self.means = answers, tables, kappas, means
        self.draws = draws
        self.pairs = sorted({pair for each in means.values() for pair in each})
        self.judges = sorted({judge for pair in self.pairs for judge in pair})
        self.column = {judge: place for place, judge in enumerate(self.judges)}
        self.columns = [(self.column[a], self.column[b]) for a, b in self.pairs]
        self.influence: dict[str, np.ndarray] = {}
        self.codes, self.counts = np.zeros((0, 0), dtype=np.int16), np.zeros(0, dtype=np.int64)
        self.drawn: list[np.ndarray] = []
        if not self.pairs or not draws:
            return
        self.codes, self.counts = patterns(answers.matrix(self.judges))
        if len(self.codes) <= MAX_PATTERNS:
            features = pair_features(self.codes, self.columns, len(answers.labels))
            generator = np.random.default_rng(SEED)
            for size in blocks(draws):
                weights = generator.standard_gamma(self.counts, size=(size, len(self.counts)))
                self.drawn.append((weights @ features).astype(np.float32))
        else:
            self.influence = _influences(answers, tables, kappas, means)

    def of_mean(self, name: str) -> Interval | None:
        """The interval of a mean."""
        value = self._value(name)
        if value is None:
            return None
        if self.influence:
            error = _standard_error(self.influence[name])
            return normal(value, error, self._one_item(name))
        if not self.drawn:
            return None
        # of a model's mean the model is the one who may stand alone; of the people's, each of them
        alone = [self._model(name)] if name else self._columns_of(name)
        return limits(
            value,
            *self._means([(name, 1.0)], alone, None, self._columns_of(name)),
            self._items(name),
        )

    def of_difference(self, one: str, other: str) -> Interval | None:
        """The interval of the difference of two means, paired: over the same items."""
        first, second = self._value(one), self._value(other)
        if first is None or second is None:
            return None
        if self.influence:
            paired = self.influence[one] - self.influence[other]
            reach = self._one_item(one) + self._one_item(other)
            return normal(first - second, _standard_error(paired), reach)
        if not self.drawn:
            return None
        # lower limit: an extra item on which the first is alone; upper: the second
        both = sorted({*self._columns_of(one), *self._columns_of(other)})
        lower, upper = self._means(
            [(one, 1.0), (other, -1.0)], [self._model(one)], [self._model(other)], both
        )
        items = min(self._items(one), self._items(other))
        return limits(first - second, lower, upper, items)

    def _means(
        self,
        terms: list[tuple[str, float]],
        low_alone: list[int],
        high_alone: list[int] | None,
        columns: list[int],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draws of a signed sum of means under the lower and the upper posterior.

        `high_alone` None: the upper posterior has an extra item on which all agree.
        """
        labels = len(self.answers.labels)
        used = [int(label) for label in np.unique(self.codes[:, columns]) if label >= 0]
        judges = len(self.judges)
        low_rows = one_alone(judges, low_alone, used)
        high_rows = (
            all_agree(judges, used) if high_alone is None else one_alone(judges, high_alone, used)
        )
        generator = np.random.default_rng(SEED + 1)
        found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for tables in self.drawn:
            for rows, values in zip((low_rows, high_rows), found, strict=True):
                total = np.zeros(len(tables))
                weights = extra_item(generator, len(rows), len(tables))
                for name, sign in terms:
                    places = [self.pairs.index(pair) for pair in self.means[name]]
                    pairs = [self.columns[place] for place in places]
                    known = tables.reshape(len(tables), -1, labels, labels)[:, places]
                    extra = (weights @ pair_features(rows, pairs, labels)).reshape(known.shape)
                    total += sign * mean_of_defined(kappas_of_tables(known + extra))
                values.append(total)
        return np.concatenate(found[0]), np.concatenate(found[1])

    def _columns_of(self, name: str) -> list[int]:
        return sorted({self.column[judge] for pair in self.means[name] for judge in pair})

    def _model(self, name: str) -> int:
        """The column of the model whose mean with the people this is."""
        return self.column[self.means[name][0][1]]

    def _items(self, name: str) -> int:
        """Items that at least one pair of the mean has in common."""
        shared = np.zeros(len(self.codes), dtype=bool)
        for pair in self.means[name]:
            a, b = self.columns[self.pairs.index(pair)]
            shared |= (self.codes[:, a] >= 0) & (self.codes[:, b] >= 0)
        return int(self.counts[shared].sum())

    def _one_item(self, name: str) -> float:
        """How far one item can move the mean, to first order."""
        moves = [
            np.abs(kappa_gradient(self.tables[pair])).max() / self.kappas[pair].items
            for pair in self.means[name]
        ]
        return float(np.mean(moves))

    def _value(self, name: str) -> float | None:
        values = [self.kappas[pair].value for pair in self.means[name]]
        return float(np.mean([value for value in values if value is not None])) if values else None


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


def _pair_interval(table: np.ndarray, kappa: Kappa, pairs: int, draws: int) -> Interval | None:
    if kappa.value is None or not draws:
        return None
    return kappa_interval(table, _pair_draws(pairs, draws), SEED)


def _pair_draws(pairs: int, draws: int) -> int:
    """Posterior draws for each pair where there are `pairs` of them."""
    return min(draws, FEW_DRAWS) if pairs > MAX_PAIRS else draws


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
    found = {"interval": [interval.low, interval.high], "interval_from": interval.source}
    return {**found, "undefined_resamples": interval.undefined} if interval.undefined else found


def _mean(kappas: Sequence[Kappa], no_judges: str, interval: Interval | None) -> dict[str, Any]:
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
        mean["reason"] = "; ".join(reasons) if kappas else no_judges
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


def _measures(answers: Answers, judges: Sequence[int], draws: int) -> dict[str, dict[str, Any]]:
    """Every registered measure of agreement of these judges, by name."""
    counts = answers.label_counts(judges)
    counts = counts[counts.sum(axis=1) > 0]
    if not len(counts) or counts.sum(axis=1).max() < 2:
        return {name: {"value": None, "reason": NO_ITEM_TWICE} for name in MEASURES}
    rows, weights = patterns(counts)
    in_use = int((counts.sum(axis=0) > 0).sum())
    values = measure_values(rows, weights[None, :], in_use)
    drawn = None
    if draws and in_use > 1 and len(rows) <= MAX_PATTERNS:
        drawn = _posterior_measures(rows, weights, draws)
    found: dict[str, dict[str, Any]] = {}
    for name in MEASURES:
        value = float(values[name][0])
        if np.isnan(value):
            found[name] = {"value": None, "reason": ONE_LABEL}
        else:
            interval = None
            if drawn is not None:
                twice = int(weights[rows.sum(axis=1) >= 2].sum())
                interval = limits(value, drawn[0][name], drawn[1][name], twice)
            found[name] = {"value": value, **_interval(interval)}
            if draws and len(rows) > MAX_PATTERNS:
                found[name]["reason"] = (
                    f"no interval: {len(rows):,} patterns of answers, more than {MAX_PATTERNS:,}"
                )
    return found


def _posterior_measures(
    rows: np.ndarray, weights: np.ndarray, draws: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Draws of every measure under the lower and the upper posterior.

    The extra item has as many judgments as the items judged twice have on average.
    """
    used = np.flatnonzero(rows.sum(axis=0))
    judged = rows.sum(axis=1)
    twice = judged >= 2
    usual = max(2, round(float(np.average(judged[twice], weights=weights[twice]))))
    extra = [
        np.stack([np.bincount(row, minlength=rows.shape[1]) for row in patterns_of])
        for patterns_of in (one_alone(usual, [0], list(used)), all_agree(usual, list(used)))
    ]
    generator = np.random.default_rng(SEED)
    found: tuple[dict[str, list[np.ndarray]], ...] = tuple({n: [] for n in MEASURES} for _ in extra)
    for size in blocks(draws):
        drawn = generator.standard_gamma(weights, size=(size, len(weights)))
        for added, values in zip(extra, found, strict=True):
            whole = np.concatenate([drawn, extra_item(generator, len(added), size)], axis=1)
            block = measure_values(np.concatenate([rows, added]), whole, len(used))
            for name, each in block.items():
                values[name].append(each)
    lower, upper = ({n: np.concatenate(v) for n, v in each.items()} for each in found)
    return lower, upper
