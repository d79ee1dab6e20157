"""Intervals where several items are about one record, against resampling of whole records."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analysis.agreement import intervals
from analysis.agreement.agreement import interval_caption, report_of
from analysis.agreement.answers import Answers, Decision, JudgeInfo, number_decisions
from analysis.agreement.intervals import INDEPENDENT, dependence, group_of_items

FIGURES = ("krippendorff_alpha", "fleiss_kappa", "gwet_ac1", "agreement", "ordinal_alpha")


def graded(records: int, of_each: int, judges: int, seed: int, *, hard: float = 0.35) -> Answers:
    """Grades of people and one model; every item of a hard record is answered by chance."""
    generator = np.random.default_rng(seed)
    record = np.repeat(np.arange(records), of_each)
    count = len(record)
    by_chance = (generator.random(records) < hard)[record]
    truth = generator.integers(0, 3, count)
    codes = np.repeat(truth[:, None], judges + 1, axis=1)
    lost = by_chance[:, None] | (generator.random(codes.shape) > 0.9)
    codes = np.where(lost, generator.integers(0, 3, codes.shape), codes)
    item, judge = (each.ravel() for each in np.indices(codes.shape))
    infos = [JudgeInfo(f"judge {n}", "person", False, False) for n in range(judges)]
    infos.append(JudgeInfo("model", "model", False, False))
    labels = ["0", "1", "2"]
    times, items = np.full(len(item), np.nan), list(range(count))
    return Answers(item, judge, codes.ravel(), times, items, infos, labels, True, record)


def values(answers: Answers) -> dict[str, float]:
    """The figures of a report by name."""
    return {name: row["value"] for name, row in rows(report_of(answers, {}, 0)).items()}


def rows(report: dict[str, Any]) -> dict[str, Any]:
    found = {name: report["people"][name] for name in FIGURES}
    found["model"] = report["human_model"]["model"]
    found["rest"] = report["with_people"]["judge 0"]
    pair = report["pairs"][0]
    return {**found, "pair": {**pair, "value": pair["kappa"]}}


def spread_of_records(answers: Answers, times: int) -> dict[str, float]:
    """The standard deviation of each figure over resamples of whole records: the oracle."""
    assert answers.record is not None
    generator = np.random.default_rng(5)
    of_record = [np.flatnonzero(answers.record == one) for one in np.unique(answers.record)]
    per_item = np.bincount(answers.item).max()
    codes = answers.label.reshape(-1, per_item)
    found: dict[str, list[float]] = {}
    for _ in range(times):
        drawn = generator.integers(0, len(of_record), len(of_record))
        items = np.concatenate([of_record[one] for one in drawn])
        many = replace(
            answers,
            item=np.repeat(np.arange(len(items)), per_item),
            judge=np.tile(np.arange(per_item), len(items)),
            label=codes[items].ravel(),
            decided=np.full(len(items) * per_item, np.nan),
            items=list(range(len(items))),
            record=None,
        )
        for name, value in values(many).items():
            found.setdefault(name, []).append(value)
    return {name: float(np.std(each)) for name, each in found.items()}


@pytest.mark.parametrize("judges", [2, 3])
def test_intervals_are_as_wide_as_resampling_of_whole_records_makes_them(judges: int) -> None:
    answers = graded(150, 5, judges, seed=judges)
    expected, report = spread_of_records(answers, 200), report_of(answers, {}, 4000)
    alone = rows(report_of(replace(answers, record=None), {}, 4000))
    for name, row in rows(report).items():
        low, high = row["interval"]
        # both know their deviation to 5 % only, from 200 resamples and from 150 records
        assert 0.85 < (high - low) / (2 * 1.96 * expected[name]) < 1.25, name
        assert low < row["value"] < high
        narrow = alone[name]["interval"]
        assert (high - low) > 1.25 * (narrow[1] - narrow[0]), name


def test_with_too_many_patterns_whole_records_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = graded(150, 5, 3, seed=3)
    drawn = rows(report_of(answers, {}, 4000))
    monkeypatch.setattr(intervals, "MAX_PATTERNS", 5)
    for name, row in rows(report_of(answers, {}, 4000)).items():
        of_draws = drawn[name]["interval"]
        if name in ("rest", "pair"):
            continue  # neither goes by patterns
        assert row["interval_from"] == "standard_error"
        low, high = row["interval"]
        assert (high - low) / (of_draws[1] - of_draws[0]) == pytest.approx(1, abs=0.25), name


def test_a_record_for_each_item_changes_nothing() -> None:
    answers = graded(40, 1, 3, seed=1)
    one_each = report_of(answers, {}, 500)
    assert one_each == report_of(replace(answers, record=None), {}, 500)


@pytest.mark.long
def test_three_of_four_intervals_hold_the_truth_without_records_and_nineteen_of_twenty_with() -> (
    None
):
    """Small version of `bench/record_coverage.py`, which failed by .76 before."""
    truth = values(graded(40_000, 4, 3, seed=0))["krippendorff_alpha"]
    inside: dict[str, int] = {"with": 0, "without": 0}
    studies = 150
    for seed in range(studies):
        answers = graded(40, 4, 3, seed=1000 + seed)
        for name, each in (("with", answers), ("without", replace(answers, record=None))):
            low, high = report_of(each, {}, 400)["people"]["krippendorff_alpha"]["interval"]
            inside[name] += low <= truth <= high
    assert inside["without"] < 0.85 * studies
    assert inside["with"] > 0.90 * studies


def test_dependence_is_between_that_of_copies_and_none() -> None:
    generator = np.random.default_rng(0)
    record = np.repeat(np.arange(500), 4)
    copies = np.repeat(generator.normal(size=500), 4)
    assert dependence(copies, record).factor == pytest.approx(4, rel=0.01)
    assert 1 <= dependence(generator.normal(size=2000), record).factor < 1.2
    assert dependence(copies, record).independent(2000) == 500
    assert dependence(copies, None) is INDEPENDENT
    # one dissent of 2,000 items shows nothing of how dissent comes
    rare = np.zeros(2000)
    rare[7] = 1
    assert dependence(rare, record).factor > 2
    assert dependence(np.full(2000, np.nan), record).factor > 3


def test_a_record_is_left_out_whole() -> None:
    record = np.repeat(np.arange(30), 7)
    groups = group_of_items(len(record), record)
    assert {len(set(groups[record == one])) for one in range(30)} == {1}
    assert set(groups) == set(range(30))


def test_the_caption_says_that_items_of_one_record_depend_on_each_other() -> None:
    decisions = [
        Decision(item, judge, "02"[(item + len(judge)) % 3 == 0])
        for item in range(40)
        for judge in ("ann", "bea", "carl")
    ]
    record_of = {item: item // 4 for item in range(36)}
    report = report_of(number_decisions(decisions, record_of=record_of), {}, 200)
    assert report["items"] == 40 and report["records"] == 13
    assert "the 40 items are about 13 records" in interval_caption(report)
    alone = report_of(number_decisions(decisions, record_of={3: 1}), {}, 200)
    assert alone["records"] == 40 and "records" not in interval_caption(alone)
