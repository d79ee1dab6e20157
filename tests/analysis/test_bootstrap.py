import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from analysis.agreement.answers import Decision, number_decisions, pair_tables, patterns
from analysis.agreement.bootstrap import (
    kappa_gradient,
    kappa_interval,
    kappas_of_tables,
    percentiles,
    resampled_kappas,
)
from analysis.agreement.cohen import cohen_kappa, confusion

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


def test_the_interval_is_that_of_items_drawn_one_by_one() -> None:
    table = np.array([[30, 5, 2], [4, 20, 6], [3, 2, 28]])
    cells = np.repeat(np.arange(9), table.ravel())
    generator = np.random.default_rng(1)
    naive = [
        cohen_kappa(np.bincount(generator.choice(cells, 100), minlength=9).reshape(3, 3)).value
        for _ in range(4000)
    ]
    expected = np.quantile(naive, [0.025, 0.975])
    found = kappa_interval(table, 10_000, 0)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(expected, abs=0.012)
    # and near kappa ± 1.96 standard errors
    kappa = cohen_kappa(table)
    assert kappa.value is not None
    assert kappa.standard_error is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 * kappa.standard_error, rel=0.05)


def test_a_resample_without_a_value_is_counted_and_left_out() -> None:
    found = kappa_interval(np.array([[3, 0], [0, 1]]), 2000, 0)
    assert found is not None
    # all four items are the first kind with probability (3/4)⁴ = 0.32, the second: (1/4)⁴
    assert found.undefined == pytest.approx(2000 * (0.75**4 + 0.25**4), rel=0.1)
    assert percentiles(np.array([np.nan, np.nan])) is None


def test_pairs_are_resampled_together() -> None:
    # two judges who are the same person: their kappas with a third move as one
    codes = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1], [1, 1, 0]])
    values = resampled_kappas(codes, np.array([9, 3, 8, 4]), [(0, 2), (1, 2)], 2, 500, 0)
    assert np.array_equal(values[:, 0], values[:, 1])
    assert values[:, 0].std() > 0.05


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
