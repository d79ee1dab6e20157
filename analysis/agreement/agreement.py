"""Agreement of people and models about the same items. Pure: numpy only, fit for the UI process.

A label is *which candidate* was chosen, by its role (positive, instruction_negative, …,
distractor_1, none), since the candidates differ from item to item and their place on the screen
from judge to judge.

Note: simulated judges stand in for people only where no real person has judged; as soon as one has,
they still appear among the pairs but in no headline figure. Draws have a fixed seed: the same
judgments give the same intervals. Intervals are over items, with these judges.

Work and memory grow with the judgments, and with judges² by one number for each pair: a million
judgments of a thousand judges take seconds (docs/benchmarks.md).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from analysis.agreement import intervals
from analysis.agreement.answers import (
    MODEL,
    PERSON,
    Answers,
    Decision,
    JudgeInfo,
    number_decisions,
    patterns,
)
from analysis.agreement.cohen import NO_ITEMS, distances, weighted_kappas
from analysis.agreement.flagged import with_figures_without
from analysis.agreement.group_kappa import count_alone, numbers, with_people, with_the_rest
from analysis.agreement.headline import COHEN, MIN_SHARED, Coefficient, headline
from analysis.agreement.intervals import (
    DRAWS,
    all_agree,
    blocks,
    dependence,
    extra_item,
    interval_numbers,
    intervals_from,
    jackknife,
    kappa_interval,
    limits,
    normal,
    of_cells,
    one_alone,
    tail_probability,
)
from analysis.agreement.measures import (
    NO_ITEM_TWICE,
    ONE_LABEL,
    measure_names,
    measure_values,
)
from analysis.agreement.pairs import common, numbers_of, pair_kappa, pairs_of, table_of

__all__ = ["Decision", "agreement_report", "headline_figures", "interval_caption", "people"]

SEED = 0
LEFT_OUT = 10  # groups of items at once: weights of so many rows are in memory
NO_PEOPLE = "fewer than two people have judged"
NOBODY = "no person has judged"
NOT_TWO = "weighted kappa is of two judges: weighted Fleiss' kappa is that of a team"
Measured = Callable[[np.ndarray, np.ndarray, int], dict[str, np.ndarray]]  # as `measure_values`
WEIGHTED = {"weighted_kappa": "quadratic", "linear_weighted_kappa": "linear"}  # by name


def people(judges: Sequence[JudgeInfo]) -> list[JudgeInfo]:
    """Who counts as a person: real people, or simulated ones where there is no real one."""
    persons = [judge for judge in judges if judge.kind == PERSON]
    return [judge for judge in persons if not judge.simulated] or persons


def agreement_report(
    decisions: Iterable[Decision],
    *,
    flagged: Mapping[str, str] | None = None,
    resamples: int = DRAWS,
) -> dict[str, Any]:
    """Every measure of agreement with its 95 % interval, as `--json` prints them.

    flagged: why, by the names of people who answer too fast or fail gold items. They count, and
    each figure they enter has their names in `flagged` and itself without them in
    `without_flagged`. A pair of judges has the names alone.
    """
    return report_of(number_decisions(decisions), flagged or {}, resamples)


def headlines_of(answers: Answers, flagged: Mapping[str, str], draws: int) -> dict[str, Any]:
    """What a `report_of` has of `human_human` and `human_model`, and who is in them: without the
    pairs and judges, whose intervals take most of its time."""
    entered, left = _flagged_among(answers, flagged)
    found = headline_figures(answers, None, draws)
    if entered:
        found = with_figures_without(found, headline_figures(answers, left, draws), entered)
    is_simulated = any(judge.simulated for judge in people(answers.judges))
    return {**found, "flagged": entered, "simulated": is_simulated}


def _flagged_among(
    answers: Answers, flagged: Mapping[str, str]
) -> tuple[dict[str, str], list[int]]:
    """The flagged ones of those who count as people, and the places of the others."""
    named = people(answers.judges)
    entered = {judge.name: flagged[judge.name] for judge in named if judge.name in flagged}
    left = [place for place in _humans(answers) if answers.judges[place].name not in entered]
    return entered, left


def report_of(answers: Answers, flagged: Mapping[str, str], draws: int) -> dict[str, Any]:
    """`agreement_report` of answers that are numbered already."""
    judges, named = answers.judges, people(answers.judges)
    humans, models = _humans(answers), _models(answers)
    entered, left = _flagged_among(answers, flagged)
    figures, rest = _figures(answers, humans, draws), with_the_rest(answers, humans, draws)
    of_judges = {judge.name: row for judge, row in zip(judges, rest, strict=True)}
    if entered:
        figures = with_figures_without(figures, _figures(answers, left, draws), entered)
        for judge, without in zip(judges, with_the_rest(answers, left, draws), strict=True):
            others = {name: why for name, why in entered.items() if name != judge.name}
            row = of_judges[judge.name]
            of_judges[judge.name] = with_figures_without(row, without, others)
    pairs = pairs_of(answers, draws)
    for pair in pairs["pairs"]:
        of_pair = [name for name in (pair["judge_a"], pair["judge_b"]) if name in entered]
        if of_pair:  # there is no such pair without them
            pair["flagged"] = {name: entered[name] for name in of_pair}
    with_models = with_the_rest(answers, models, draws)
    return {
        "items": len(answers.items),
        "records": len(answers.items) if answers.record is None else len(np.unique(answers.record)),
        "judgments": len(answers.item),
        "labels": answers.labels,
        "resamples": draws,
        "judges": _judges(answers),
        **pairs,
        **figures,
        "with_people": of_judges,
        "with_models": {judge.name: row for judge, row in zip(judges, with_models, strict=True)},
        **_weighted(answers, humans, draws),
        "flagged": entered,
        "simulated": any(judge.simulated for judge in named),
        "simulated_left_out": sum(
            judge.simulated and judge.kind == PERSON and judge not in named for judge in judges
        ),
    }


def _weighted(answers: Answers, humans: Sequence[int], draws: int) -> dict[str, Any]:
    """The weighted kappas of two people, of answers that have an order; else nothing."""
    if not answers.ordered:
        return {}
    if len(humans) != 2:
        reason = NOT_TWO if len(humans) > 2 else NO_PEOPLE
        return {name: {"value": None, "reason": reason} for name in WEIGHTED}
    items, cells = common(answers, *sorted(humans))
    both = np.stack(np.divmod(cells, len(answers.labels)), axis=1)
    in_order = np.isin(both, answers.ordered).all(axis=1)
    items, both = items[in_order], both[in_order]
    used = [code for code in answers.ordered if (both == code).any()]
    place = np.zeros(len(answers.labels), dtype=np.int64)
    place[used] = np.arange(len(used))
    cells = place[both[:, 0]] * len(used) + place[both[:, 1]]
    counts = table_of(cells, len(used))
    values = [float(answers.labels[code]) for code in used]
    found: dict[str, Any] = {}
    for name, weights in WEIGHTED.items():
        kappas = partial(weighted_kappas, apart=distances(values, weights))
        value = float(kappas(counts)) if counts.size else float("nan")
        row = {"weights": weights, "items": int(counts.sum())}
        if np.isnan(value):
            found[name] = {"value": None, **row, "reason": ONE_LABEL if counts.size else NO_ITEMS}
            continue
        spread = None
        if draws:
            dependent = of_cells(counts, cells, answers.record_of(items), kappas)
            spread = kappa_interval(counts, draws, SEED, kappas, dependent)
        found[name] = {"value": value, **row, **interval_numbers(spread)}
    return found


def _figures(answers: Answers, humans: Sequence[int], draws: int) -> dict[str, Any]:
    """The figures that these people enter together: headlines and every measure."""
    of_people = _measures(answers, humans, draws)
    return {
        **headline_figures(answers, humans, draws, of_people),
        "all_judges": _measures(answers, [*humans, *_models(answers)], draws),
        "people": of_people,
    }


def _humans(answers: Answers) -> list[int]:
    named = set(people(answers.judges))
    return [place for place, judge in enumerate(answers.judges) if judge in named]


def _models(answers: Answers) -> list[int]:
    return [place for place, judge in enumerate(answers.judges) if judge.kind == MODEL]


def headline_figures(
    answers: Answers,
    humans: Sequence[int] | None = None,
    draws: int = 0,
    of_people: Mapping[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """`human_human`, `human_model` by model, and `differences` of models, of these people.

    of_people: their measures, where they are known already.
    """
    humans = _humans(answers) if humans is None else humans
    models = _models(answers)
    names = [answers.judges[model].name for model in models]
    found = with_people(answers, humans, models, draws)
    of_one = headline(len(humans), of_one=True)
    of_models = {}
    for place, name in enumerate(names):
        of_models[name] = _as_headline(of_one, len(humans), numbers(found.sums[place]))
        if not humans:
            of_models[name]["reason"] = NOBODY
        elif draws and of_models[name]["value"] is not None:
            of_models[name] |= interval_numbers(found.interval(place))
    differences = []
    for one, other in combinations(range(len(models)), 2):
        row: dict[str, Any] = {"model_a": names[one], "model_b": names[other], "difference": None}
        first, second = of_models[names[one]], of_models[names[other]]
        if first["value"] is None or second["value"] is None:
            row["reason"] = (first if first["value"] is None else second)["reason"]
        else:
            spread = found.difference(one, other) if draws else None
            row |= {"difference": first["value"] - second["value"], **interval_numbers(spread)}
            if spread is not None:
                row["differs"] = not spread.low <= 0 <= spread.high
        differences.append(row)
    return {
        "human_human": _among_people(answers, humans, draws, of_people),
        "human_model": of_models,
        "differences": differences,
    }


def _among_people(
    answers: Answers,
    humans: Sequence[int],
    draws: int,
    of_people: Mapping[str, dict[str, Any]] | None,
) -> dict[str, Any]:
    coefficient = headline(len(humans))
    if len(humans) < 2:
        nothing = {"value": None, "interval": None, "agreement": None, "items": 0}
        return _as_headline(coefficient, len(humans), {**nothing, "reason": NO_PEOPLE})
    if coefficient is COHEN:
        kappa, spread = pair_kappa(answers, min(humans), max(humans), draws)
        if 0 < kappa.items < MIN_SHARED:
            return _as_headline(coefficient, 2, count_alone(kappa.items))
        row = numbers_of(kappa, spread)
        row = {"value": row.pop("kappa"), **row}
        return _as_headline(coefficient, 2, row)
    measured = _measures(answers, humans, draws) if of_people is None else of_people
    twice = int((answers.label_counts(humans).sum(axis=1) >= 2).sum())
    row = {**measured[coefficient.name], "agreement": measured["agreement"]["value"]}
    row = {"interval": None, **row, "items": twice}
    if not twice:
        row["reason"] = NO_ITEMS
    return _as_headline(coefficient, len(humans), row)


def _as_headline(coefficient: Coefficient, judges: int, row: dict[str, Any]) -> dict[str, Any]:
    return {"coefficient": coefficient.name, "label": coefficient.label, "people": judges, **row}


def interval_caption(report: Mapping[str, Any]) -> str:
    """How the intervals of a report were computed; empty where it has none."""
    figures = [report["human_human"], *report["human_model"].values()]
    caption = intervals_from([*figures, *report["pairs"]], report["resamples"])
    of_pairs = report.get("pair_resamples", report["resamples"])
    if caption and of_pairs != report["resamples"]:
        caption += f", {of_pairs:,} for each pair of judges"
    if caption and report["records"] < report["items"]:
        caption += (
            f"; the {report['items']:,} items are about {report['records']:,} records, and those "
            "about one are taken as dependent"
        )
    every = [*figures, *report["pairs"], *report["differences"]]
    every += [*report["people"].values(), *report["all_judges"].values()]
    undefined = max(each.get("undefined_resamples", 0) for each in every)
    if undefined:
        caption += f"; up to {undefined:,} draws of a figure have no value and are left out"
    return caption


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
    """Every registered measure of agreement of these judges, by name; those of labels in an order
    where they have one, of the answers that are in it."""
    counts = answers.label_counts(judges)
    found = measures_of_counts(counts, draws, record=answers.record)
    if ordered := answers.ordered:
        names = measure_names(is_ordered=True)
        values = [float(answers.labels[place]) for place in ordered]
        found |= measures_of_counts(counts[:, ordered], draws, names, values, answers.record)
    return found


def measures_of_counts(
    counts: np.ndarray,
    draws: int,
    names: Sequence[str] | None = None,
    numbers: Sequence[float] = (),
    record: np.ndarray | None = None,
) -> dict[str, dict[str, Any]]:
    """These measures, by default all of any labels, of items' counts of labels, (items, labels);
    with intervals from `draws` posterior draws, or by a jackknife where there are too many
    patterns. numbers: the labels' values, where they are in an order; record: the items' records,
    where some are about one."""
    names = names or measure_names()
    judged = counts.sum(axis=1) > 0
    counts, record = counts[judged], None if record is None else record[judged]
    if not len(counts) or counts.sum(axis=1).max() < 2:
        return {name: {"value": None, "reason": NO_ITEM_TWICE} for name in names}
    rows, weights, which = patterns(counts)
    in_use = int((counts.sum(axis=0) > 0).sum())
    measured = partial(measure_values, names=names, values=numbers)
    values = measured(rows, weights[None, :], in_use)
    is_twice = counts.sum(axis=1) >= 2
    twice = int(is_twice.sum()) if record is None else len(np.unique(record[is_twice]))
    tail = tail_probability(twice)
    is_drawn = draws and in_use > 1 and len(rows) <= intervals.MAX_PATTERNS
    lower: dict[str, np.ndarray] = {}
    upper: dict[str, np.ndarray] = {}
    if is_drawn:
        for factor, alike in _by_factor(rows, weights, which, record, measured, names).items():
            of_these = partial(measure_values, names=alike, values=numbers)
            drawn = _posterior_measures(rows, weights / factor, draws, of_these)
            lower, upper = lower | drawn[0], upper | drawn[1]
    group = None
    if draws and in_use > 1 and not is_drawn:
        group = intervals.group_of_items(len(which), record)
    errors = {} if group is None else _jackknife_errors(rows, weights, which, group, measured)
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        value = float(values[name][0])
        if np.isnan(value):
            found[name] = {"value": None, "reason": ONE_LABEL}
            continue
        interval = None
        if is_drawn:
            interval = limits(value, lower[name], upper[name], tail)
        elif name in errors and group is not None:
            interval = normal(value, errors[name], 2 / twice, int(group.max()))
        found[name] = {"value": value, **interval_numbers(interval)}
    return found


def _by_factor(
    rows: np.ndarray,
    weights: np.ndarray,
    which: np.ndarray,
    record: np.ndarray | None,
    measured: Measured,
    names: Sequence[str],
) -> Mapping[float, list[str]]:
    """The measures by how far the items of a record depend on each other, see `dependence`.

    which: the pattern of each item.
    """
    if record is None:
        return {1.0: list(names)}
    found: defaultdict[float, list[str]] = defaultdict(list)
    one_of_each = np.arange(len(rows))
    for name, values in _left_out(rows, weights, one_of_each, one_of_each, measured).items():
        found[dependence(values[which], record).factor].append(name)
    return found


def _jackknife_errors(
    rows: np.ndarray, weights: np.ndarray, which: np.ndarray, group: np.ndarray, measured: Measured
) -> dict[str, float]:
    """The standard error of each measure, by leaving out each group of items; see `_left_out`."""
    left_out = _left_out(rows, weights, which, group, measured)
    errors = {name: jackknife(values) for name, values in left_out.items()}
    return {name: error for name, error in errors.items() if not np.isnan(error)}


def _left_out(
    rows: np.ndarray, weights: np.ndarray, which: np.ndarray, group: np.ndarray, measured: Measured
) -> dict[str, np.ndarray]:
    """Each measure without each group of items, (groups,), by name.

    which, group: the pattern and the group of each item that is left out with one.
    """
    in_use = int((rows.sum(axis=0) > 0).sum())
    found: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    groups = int(group.max()) + 1
    for start in range(0, groups, LEFT_OUT):
        size = min(LEFT_OUT, groups - start)
        inside = np.flatnonzero((group >= start) & (group < start + size))
        places = (group[inside] - start) * len(rows) + which[inside]
        of_groups = np.bincount(places, minlength=size * len(rows))
        left = weights[None, :] - of_groups.reshape(size, len(rows))
        for name, values in measured(rows, left, in_use).items():
            found[name].append(values)
    return {name: np.concatenate(values) for name, values in found.items()}


def _posterior_measures(
    rows: np.ndarray, weights: np.ndarray, draws: int, measured: Measured
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Draws of each measure under the lower and the upper posterior.

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
    found: tuple[defaultdict[str, list[np.ndarray]], ...] = tuple(defaultdict(list) for _ in extra)
    for size in blocks(draws):
        drawn = generator.standard_gamma(weights, size=(size, len(weights)))
        for added, values in zip(extra, found, strict=True):
            whole = np.concatenate([drawn, extra_item(generator, len(added), size)], axis=1)
            block = measured(np.concatenate([rows, added]), whole, len(used))
            for name, each in block.items():
                values[name].append(each)
    lower, upper = ({n: np.concatenate(v) for n, v in each.items()} for each in found)
    return lower, upper
