import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import cohen_kappa_score

from analysis.agreement import pairs
from analysis.agreement.agreement import agreement_report, interval_caption
from analysis.agreement.answers import Decision, number_decisions, patterns
from analysis.agreement.cohen import cohen_kappa
from analysis.agreement.group_kappa import with_the_rest
from analysis.agreement.headline import MIN_SHARED
from analysis.agreement.intervals import (
    GROUPS,
    group_of_items,
    intervals_from,
    jackknife,
    kappa_interval,
    kappas_of_tables,
    limits,
    tail_probability,
)

tables = hnp.arrays(np.int64, (3, 3), elements=st.integers(0, 20))


def confusion(one: np.ndarray, other: np.ndarray, labels: int) -> np.ndarray:
    """Counts, shape (labels, labels): rows of the first, columns of the second; -1: a gap."""
    both = (one >= 0) & (other >= 0)
    flat = one[both].astype(np.int64) * labels + other[both]
    return np.bincount(flat, minlength=labels * labels).reshape(labels, labels)


@given(
    hnp.arrays(
        np.int64, st.tuples(st.integers(0, 9), st.integers(1, 4)), elements=st.integers(-1, 3)
    )
)
def test_patterns_are_the_different_rows_with_their_counts(codes: np.ndarray) -> None:
    rows, counts, which = patterns(codes)
    expected, expected_counts = np.unique(codes, axis=0, return_counts=True)
    assert rows.tolist() == expected.tolist()
    assert counts.tolist() == expected_counts.tolist()
    assert rows[which].tolist() == codes.tolist()


def test_many_columns_do_not_overflow() -> None:
    codes = np.random.default_rng(0).integers(-1, 9, size=(50, 40))
    codes = np.concatenate([codes, codes[:7]])
    rows, counts, _ = patterns(codes)
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
    found = kappa_interval(np.eye(2, dtype=np.int64), 10_000, 0)
    assert found is not None
    assert found.low < 0.0
    assert found.high == pytest.approx(1.0)


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
    found = limits(0.2, drawn, drawn, 0.025)
    assert found is not None
    assert (found.undefined, found.low > 0.09, found.high < 0.31) == (2, True, True)
    assert limits(0.2, np.array([np.nan]), drawn, 0.025) is None


def test_a_caption_says_draws_only_where_draws_were_taken() -> None:
    drawn, formula = {"interval_from": "posterior"}, {"interval_from": "standard_error"}
    assert intervals_from([drawn], 10_000) == (
        "95 % intervals from 10,000 posterior draws over the items"
    )
    assert "draws over" not in intervals_from([formula, {"interval": None}], 10_000)
    assert "standard errors" in intervals_from([drawn, formula], 10_000)
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
        "items": 40,
        "records": 40,
        "resamples": 10_000,
        "pair_resamples": 2000,
    }
    assert interval_caption(report) == (
        "95 % intervals from 10,000 posterior draws over the items, 2,000 for each pair of judges; "
        "up to 7 draws of a figure have no value and are left out"
    )


@given(tables)
def test_kappa_with_a_group_of_one_and_its_error_are_cohens(table: np.ndarray) -> None:
    kappa = cohen_kappa(table)
    one, other = np.nonzero(table)
    cells = np.repeat(np.stack([one, other], axis=1), table[one, other], axis=0)
    known = [
        Decision(item, name, str(label))
        for item, row in enumerate(cells)
        for name, label in zip("ab", row, strict=True)
    ]
    if kappa.value is None or kappa.standard_error is None or kappa.items < MIN_SHARED:
        return
    answers = number_decisions(known)
    found = with_the_rest(answers, [0, 1], 50)
    for row in found:
        assert row["value"] == pytest.approx(kappa.value, abs=1e-12)
        assert row["interval"][0] <= kappa.value <= row["interval"][1]
        reach = (row["interval"][1] - row["interval"][0]) / 2
        # the interval adds 0.6 of an item's reach to the variance of Fleiss, Cohen and Everitt
        is_inside = row["interval"][1] < 1 and row["interval"][0] > -1
        if is_inside and row["interval_from"] == "standard_error":
            assert reach >= 1.959 * kappa.standard_error
    if found[0]["interval_from"] == "standard_error":
        assert found[0]["interval"] == pytest.approx(found[1]["interval"], abs=1e-9)


def test_kappa_with_a_group_is_scikit_learns_with_an_item_shared_among_its_judges() -> None:
    """An item of n people is n rows of weight 1/n; people skip items."""
    rng = np.random.default_rng(3)
    people = rng.integers(0, 3, size=(60, 5))
    judged = rng.random((60, 5)) < 0.6
    model = np.where(rng.random(60) < 0.6, people[:, 0], rng.integers(0, 3, 60))
    known = [Decision(i, "M", str(model[i]), "model") for i in range(60)]
    rows, judges = np.nonzero(judged)
    known += [
        Decision(int(i), f"p{j}", str(people[i, j])) for i, j in zip(rows, judges, strict=True)
    ]
    weights = 1 / judged.sum(axis=1)[rows]
    expected = cohen_kappa_score(model[rows], people[judged], sample_weight=weights)
    found = agreement_report(known, resamples=0)["human_model"]["M"]
    assert found["value"] == pytest.approx(expected, abs=1e-12)
    assert found["items"] == len(np.unique(rows))


def test_a_jackknife_over_groups_is_the_standard_error_of_a_mean() -> None:
    values = np.random.default_rng(0).normal(size=20_000)
    group = group_of_items(len(values))
    left_out = np.array([values[group != place].mean() for place in range(GROUPS)])
    assert jackknife(left_out) == pytest.approx(values.std() / np.sqrt(len(values)), rel=0.15)


rows = st.lists(
    st.builds(Decision, st.integers(0, 6), st.sampled_from("abcd"), st.sampled_from("xyz")),
    max_size=40,
)


@given(rows, st.integers(0, 3))
def test_pairs_are_those_of_the_whole_table(known: list[Decision], crowded: int) -> None:
    """Whether an item's pairs are counted one by one or by a product of matrices."""
    answers = number_decisions(known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "CROWDED", crowded)
        shared = pairs.shared_items(answers)
    codes = answers.matrix(range(len(answers.judges)))
    for a in range(len(answers.judges)):
        for b in range(a + 1, len(answers.judges)):
            expected = confusion(codes[:, a], codes[:, b], len(answers.labels))
            _, cells = pairs.common(answers, a, b)
            assert pairs.table_of(cells, len(answers.labels)).tolist() == expected.tolist()
            assert shared[a, b] == expected.sum()


@given(rows)
def test_label_counts_count_every_current_decision_once(known: list[Decision]) -> None:
    answers = number_decisions(known)
    counts = answers.label_counts(range(len(answers.judges)))
    assert counts.sum() == len({(row.item, row.judge) for row in known})
