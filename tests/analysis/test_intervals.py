import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from analysis.agreement.agreement import agreement_report, interval_caption
from analysis.agreement.answers import Decision, number_decisions, pair_tables, patterns
from analysis.agreement.cohen import cohen_kappa, confusion
from analysis.agreement.intervals import (
    intervals_from,
    kappa_gradient,
    kappa_interval,
    kappas_of_tables,
    limits,
    tail_probability,
)

tables = hnp.arrays(np.int64, (3, 3), elements=st.integers(0, 20))


@given(
    hnp.arrays(
        np.int64, st.tuples(st.integers(0, 9), st.integers(1, 4)), elements=st.integers(-1, 3)
    )
)
def test_patterns_are_the_different_rows_with_their_counts(codes: np.ndarray) -> None:
    rows, counts = patterns(codes)
    expected, expected_counts = np.unique(codes, axis=0, return_counts=True)
    assert rows.tolist() == expected.tolist()
    assert counts.tolist() == expected_counts.tolist()


def test_many_columns_do_not_overflow() -> None:
    codes = np.random.default_rng(0).integers(-1, 9, size=(50, 40))
    codes = np.concatenate([codes, codes[:7]])
    rows, counts = patterns(codes)
    assert len(rows) == 50
    assert sorted(counts)[-7:] == [2] * 7


@given(tables)
def test_kappas_of_many_tables_are_those_of_each(table: np.ndarray) -> None:
    found = kappas_of_tables(np.stack([table, table.T]))
    expected = cohen_kappa(table).value
    if expected is None:
        assert np.isnan(found).all()
    else:
        assert found == pytest.approx([expected, expected], abs=1e-12)


def test_with_many_items_the_interval_is_that_of_the_standard_error() -> None:
    table = np.array([[300, 50, 20], [40, 200, 60], [30, 20, 280]])
    found = kappa_interval(table, 10_000, 0)
    kappa = cohen_kappa(table)
    assert found is not None and kappa.value is not None and kappa.standard_error is not None
    expected = (
        kappa.value - 1.96 * kappa.standard_error,
        kappa.value + 1.96 * kappa.standard_error,
    )
    assert (found.low, found.high) == pytest.approx(expected, abs=0.005)


def test_two_people_who_agree_on_two_items_have_a_wide_interval() -> None:
    rows = [Decision(item, name, label) for item, label in enumerate("xy") for name in "ab"]
    (pair,) = agreement_report(rows)["pairs"]
    assert pair["kappa"] == 1.0
    low, high = pair["interval"]
    assert low < 0.0
    assert high == pytest.approx(1.0)


@given(tables)
def test_no_interval_has_zero_width_and_each_holds_its_value(table: np.ndarray) -> None:
    kappa = cohen_kappa(table).value
    found = kappa_interval(table, 500, 0)
    assert (found is None) == (kappa is None)
    if kappa is not None and found is not None:
        assert found.low <= kappa <= found.high
        assert found.high - found.low > 0.01
        assert found.undefined == 0


@pytest.mark.parametrize("judges", ["ab", "abc"])
def test_judges_who_always_agree_have_no_interval_of_zero_width(judges: str) -> None:
    labels = "xyxxyxyyxyxx"
    rows = [
        Decision(item, judge, label, "model" if judge in "MN" else "person")
        for item, label in enumerate(labels)
        for judge in [*judges, "M", "N"]
    ]
    report = agreement_report(rows)
    found = [
        report["human_human"],
        *report["human_model"].values(),
        *report["people"].values(),
        *report["pairs"],
    ]
    for measure in found:
        low, high = measure["interval"]
        assert 0 < low < 0.95
        assert high == pytest.approx(1.0)
    (difference,) = report["differences"]
    assert difference["difference"] == 0.0
    assert difference["interval"][0] < -0.01 < 0.01 < difference["interval"][1]
    assert not difference["differs"]


def test_few_items_leave_less_outside_than_many() -> None:
    assert tail_probability(100_000) == pytest.approx(0.025, abs=1e-4)
    # t of 14 degrees of freedom: 2.1448 · sqrt(15 / 14) = 2.2201, below which lies 0.0132
    assert tail_probability(15) == pytest.approx(0.0132, abs=1e-4)


def test_draws_without_a_value_are_counted_and_left_out() -> None:
    drawn = np.array([0.1, np.nan, 0.3])
    found = limits(0.2, drawn, drawn, 1000)
    assert found is not None
    assert (found.undefined, found.low > 0.09, found.high < 0.31) == (2, True, True)
    assert limits(0.2, np.array([np.nan]), drawn, 10) is None


def test_a_caption_says_draws_only_where_draws_were_taken() -> None:
    drawn, formula = {"interval_from": "posterior"}, {"interval_from": "standard_error"}
    assert intervals_from([drawn], 10_000) == (
        "95 % intervals from 10,000 posterior draws over the items"
    )
    assert "draws over" not in intervals_from([formula, {"interval": None}], 10_000)
    assert "by formula" in intervals_from([drawn, formula], 10_000)
    assert intervals_from([{"interval": None}], 10_000) == ""


def test_a_caption_counts_the_draws_that_were_taken_and_those_without_a_value() -> None:
    drawn = {"interval_from": "posterior", "undefined_resamples": 7}
    report = {
        "human_human": drawn,
        "human_model": {},
        "pairs": [],
        "differences": [],
        "people": {},
        "all_judges": {},
        "resamples": 10_000,
        "pair_resamples": 2000,
    }
    assert interval_caption(report) == (
        "95 % intervals from 10,000 posterior draws over the items, 2,000 for each pair of judges; "
        "up to 7 draws of a figure have no value and are left out"
    )


@given(tables)
def test_the_gradient_is_the_slope_of_kappa(table: np.ndarray) -> None:
    kappa = cohen_kappa(table)
    if kappa.value is None or kappa.standard_error is None:
        return
    gradient = kappa_gradient(table)
    p = table / table.sum()
    # the delta method's variance is that of Fleiss, Cohen and Everitt
    spread = np.sqrt((p * gradient**2).sum() / table.sum())
    assert spread == pytest.approx(kappa.standard_error, abs=1e-7)


rows = st.lists(
    st.builds(Decision, st.integers(0, 6), st.sampled_from("abcd"), st.sampled_from("xyz")),
    max_size=40,
)


@given(rows)
def test_pair_tables_are_the_confusions_of_every_pair(known: list[Decision]) -> None:
    answers = number_decisions(known)
    found = pair_tables(answers)
    codes = answers.matrix(range(len(answers.judges)))
    for a in range(len(answers.judges)):
        for b in range(a + 1, len(answers.judges)):
            expected = confusion(codes[:, a], codes[:, b], len(answers.labels))
            assert found[a, b].tolist() == expected.tolist()


@given(rows)
def test_label_counts_count_every_current_decision_once(known: list[Decision]) -> None:
    answers = number_decisions(known)
    counts = answers.label_counts(range(len(answers.judges)))
    assert counts.sum() == len({(row.item, row.judge) for row in known})
