"""Filters of agreement, agreement over time, and the profile of a judge: worked by hand."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from scipy import stats

from analysis.agreement.agreement import agreement_report
from analysis.agreement.answers import number_decisions
from analysis.agreement.group_kappa import NO_OTHER
from analysis.agreement.judge_profile import place_bias
from analysis.agreement.judgment_filter import JudgmentFilter, chosen_rows, decisions_of
from analysis.agreement.over_time import agreement_over_time
from db.requests import arguments_of
from db.study.items import ItemPlace
from db.study.judgments import JudgmentRow


def over_time(rows: Iterable[JudgmentRow], windows: int = 10) -> list[dict[str, Any]]:
    answers = number_decisions(decisions_of(rows))
    return [each.as_json() for each in agreement_over_time(answers, windows=windows)]


START = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)


def row(item: int, judge: str, label: str, *, hours: float = 0, kind: str = "person", **more: bool):
    flags = {"simulated": False, "offline": False, **more}
    return JudgmentRow(item, judge, kind, label, decided_at=START + timedelta(hours=hours), **flags)


PLACES = {
    1: ItemPlace(1, "positive", "i", "q", "nq", "first"),
    2: ItemPlace(2, "query_negative", "i", "q", "boolq", "first"),
    3: ItemPlace(3, "positive", "i", "q", "boolq", "second"),
}
ROWS = [row(1, "ann", "a"), row(2, "ann", "b", hours=1), row(3, "bob", "a", hours=30)]


@pytest.mark.parametrize(
    ("chosen", "items"),
    [
        (JudgmentFilter(), [1, 2, 3]),
        (JudgmentFilter(scenarios=("positive",)), [1, 3]),
        (JudgmentFilter(sources=("boolq",)), [2, 3]),
        (JudgmentFilter(sources=("boolq",), recipes=("first",)), [2]),
        (JudgmentFilter(judges=("ann",)), [1, 2]),
        (JudgmentFilter(since=date(2026, 3, 2)), [2, 3]),
        (JudgmentFilter(since=date(2026, 3, 2), until=date(2026, 3, 2)), [2]),
        (JudgmentFilter(until=date(2026, 2, 28)), []),
    ],
)
def test_a_filter_takes_what_it_names_and_everything_else_of_what_it_does_not_name(
    chosen: JudgmentFilter, items: list[int]
) -> None:
    assert [each.item_id for each in chosen_rows(ROWS, PLACES, chosen)] == items


def test_a_filter_becomes_options_of_the_command() -> None:
    chosen = JudgmentFilter(
        scenarios=("positive",), sources=("a b",), judges=("x",), until=date(2026, 3, 2)
    )
    assert arguments_of(chosen) == (
        ["--role", "positive", "--source", "a b", "--judge", "x", "--until", "2026-03-02"]
    )


def test_windows_follow_the_time_at_which_people_finished_an_item() -> None:
    # In time: 10 items with full agreement (kappa 1), then 10 with none (p_o 0, p_e 1/2: -1).
    rows = []
    for item in range(20):
        one = "ab"[item % 2]
        other = one if item < 10 else "ba"[item % 2]
        rows += [row(item, "ann", one, hours=item), row(item, "bob", other, hours=item + 0.5)]
        rows.append(row(item, "m", one, hours=-5, kind="model"))
    early, late = over_time(rows[::-1])  # of ten items each, not ten windows of two
    assert (early["items"], late["items"]) == (10, 10)
    assert early["human_human"]["value"] == 1
    assert late["human_human"]["value"] == -1
    assert late["human_model"]["m"]["value"] == 0  # always as ann, never as bob
    assert (early["agreement"], late["agreement"]) == (1, 0)
    assert late["until"] == (START + timedelta(hours=19.5)).isoformat()


def test_a_window_without_a_number_says_why_and_no_judgment_gives_no_window() -> None:
    assert over_time([]) == []
    only = over_time([row(n, name, "a") for n in range(10) for name in ("ann", "bob")])
    assert len(only) == 1
    assert only[0]["human_human"]["value"] is None
    assert "one and the same label" in only[0]["human_human"]["reason"]


def test_simulated_judges_are_no_people_over_time_once_a_real_person_judged() -> None:
    rows = [row(1, "ann", "a"), row(2, "sim", "a", simulated=True), row(1, "sim", "a")]
    rows[2] = replace(rows[2], simulated=True)
    assert [window["items"] for window in over_time(rows)] == [1]


def test_a_judge_is_compared_with_all_the_others_who_judged_the_item() -> None:
    """ann aabb × 3, bob the same, cas a throughout. ann with the rest: p_o = (1 + 1 + 1/2 + 1/2)/4;
    rest: a 1, 1, 1/2, 1/2, so 3/4; p_e = 1/2·3/4 + 1/2·1/4 = 1/2: (3/4 - 1/2)/(1/2) = 1/2."""
    letters = {"ann": "aabb" * 3, "bob": "aabb" * 3, "cas": "aaaa" * 3}
    rows = [row(n, name, one) for name, each in letters.items() for n, one in enumerate(each)]
    report = agreement_report(decisions_of(rows), resamples=1000)
    assert report["with_people"]["ann"]["value"] == pytest.approx(0.5)
    assert report["with_people"]["ann"]["items"] == 12
    assert report["with_people"]["cas"]["value"] == pytest.approx(0.0)  # one label: p_o = p_e
    low, high = report["with_people"]["ann"]["interval"]
    assert -1 <= low < 0.5 < high <= 1
    assert report["with_models"]["ann"]["reason"] == NO_OTHER


def test_position_bias_is_pearsons_test_of_equal_shares() -> None:
    choices = [(1, 4)] * 20 + [(2, 4)] * 10 + [(3, 4)] * 6 + [(4, 4)] * 4
    bias = place_bias(choices)
    assert bias.shares == (0.5, 0.25, 0.15, 0.1)
    expected = stats.chisquare([20, 10, 6, 4])
    assert bias.chi_squared == pytest.approx(expected.statistic)
    assert bias.p == pytest.approx(expected.pvalue)


def test_lists_of_different_lengths_expect_less_of_the_last_places() -> None:
    bias = place_bias([(1, 2)] * 10 + [(2, 2)] * 10 + [(1, 4)] * 8 + [(4, 4)] * 32)
    # expected: 20/2 + 40/4 = 20, 20, 10, 10
    counts = [18, 10, 0, 32]
    statistic = sum((a - b) ** 2 / b for a, b in zip(counts, [20, 20, 10, 10], strict=True))
    assert bias.chi_squared == pytest.approx(statistic)


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        ([], "no choice of a passage yet"),
        ([(1, 4)] * 3, "too few for a test over 4 places"),
        ([(1, 1)] * 30, "nothing to prefer"),
    ],
)
def test_bias_that_cannot_be_tested_says_why(choices: list[tuple[int, int]], reason: str) -> None:
    bias = place_bias(choices)
    assert bias.p is None
    assert reason in bias.reason
