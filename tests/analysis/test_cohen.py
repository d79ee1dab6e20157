import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa as statsmodels_kappa

from analysis.agreement.cohen import (
    NO_ITEMS,
    ONE_LABEL,
    cohen_kappa,
    distances,
    weighted_kappas,
)

tables = hnp.arrays(np.int64, st.integers(2, 5).map(lambda k: (k, k)), elements=st.integers(0, 30))


def test_the_published_three_by_three_example_of_sas() -> None:
    # two raters, three categories, 19 subjects, one category used by one of them only
    found = cohen_kappa(np.array([[0, 4, 1], [0, 8, 0], [0, 1, 5]]))
    assert found.value == pytest.approx(0.4842, abs=5e-5)
    assert found.standard_error == pytest.approx(0.1380, abs=5e-5)


def test_kappa_worked_by_hand() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: p_o = 35/50 = 0.7;
    # p_e = (25·30 + 25·20)/2500 = 0.5; kappa = 0.2/0.5 = 0.4
    found = cohen_kappa(np.array([[20, 5], [10, 15]]))
    assert found.value == pytest.approx(0.4, abs=1e-15)
    assert found.agreement == 0.7
    assert found.items == 50


def test_judges_who_never_agree_beyond_chance_may_have_a_negative_kappa() -> None:
    # p_o = 0, p_e = 2·(1/2·1/2) = 1/2: kappa = -1
    assert cohen_kappa(np.array([[0, 5], [5, 0]])).value == -1.0


def test_undefined_cases_have_a_reason_and_no_number() -> None:
    nothing = cohen_kappa(np.zeros((3, 3), dtype=int))
    assert (nothing.value, nothing.standard_error, nothing.agreement) == (None, None, None)
    assert nothing.reason == NO_ITEMS
    same = cohen_kappa(np.array([[7, 0], [0, 0]]))
    assert (same.value, same.standard_error, same.reason) == (None, None, ONE_LABEL)
    assert same.agreement == 1.0


def test_always_the_same_label_against_another_is_zero_and_not_undefined() -> None:
    found = cohen_kappa(np.array([[0, 9], [0, 0]]))
    assert (found.value, found.agreement, found.reason) == (0.0, 0.0, None)


def test_perfect_agreement_has_no_spread() -> None:
    found = cohen_kappa(np.diag([3, 5, 9]))
    assert (found.value, found.standard_error) == (1.0, 0.0)


@given(tables)
def test_kappa_is_that_of_scikit_learn_and_statsmodels(table: np.ndarray) -> None:
    found = cohen_kappa(table)
    if found.value is None:
        return
    one, other = np.repeat(np.indices(table.shape).reshape(2, -1), table.ravel(), axis=1)
    assert found.value == pytest.approx(cohen_kappa_score(one, other), abs=1e-12)
    with np.errstate(all="ignore"):  # it also divides by the spread under kappa = 0
        theirs = statsmodels_kappa(table)
    assert found.value == pytest.approx(theirs.kappa, abs=1e-12)
    expected = 0.0 if math.isnan(theirs.std_kappa) else theirs.std_kappa
    assert found.standard_error == pytest.approx(expected, abs=1e-7)


@given(tables, st.randoms(use_true_random=False))
def test_renaming_the_labels_or_swapping_the_judges_changes_nothing(table, rng) -> None:
    order = list(range(len(table)))
    rng.shuffle(order)
    found = cohen_kappa(table)
    for changed in (table[np.ix_(order, order)], table.T):
        other = cohen_kappa(changed)
        assert (other.value, other.reason, other.items) == (found.value, found.reason, found.items)
        assert other.standard_error == pytest.approx(found.standard_error, abs=1e-9)


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
@pytest.mark.parametrize("seed", range(5))
def test_weighted_kappa_is_that_of_scikit_learn(weights: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    one = generator.integers(0, 4, size=60)
    other = np.clip(one + generator.integers(-2, 3, size=60), 0, 3)
    table = np.zeros((4, 4), dtype=int)
    np.add.at(table, (one, other), 1)
    expected = cohen_kappa_score(one, other, labels=[0, 1, 2, 3], weights=weights)
    assert float(weighted_kappas(table, distances([0, 1, 2, 3], weights))) == pytest.approx(
        expected
    )


def test_a_grade_that_nobody_gave_keeps_its_distance() -> None:
    """0 and 2 are two apart, also where no 1 occurs: of two labels each weight gives Cohen's."""
    table = np.array([[6, 2], [1, 5]])
    plain = cohen_kappa(table).value
    for weights in ("linear", "quadratic"):
        found = float(weighted_kappas(table, distances([0, 2], weights)))
        assert found == pytest.approx(plain)
    assert distances([0, 2], "quadratic").tolist() == [[0, 4], [4, 0]]
    with_one = np.array([[6, 0, 2], [0, 3, 0], [1, 0, 5]])
    expected = 1 - 3 * 4 * 17 / (4 * (8 * 7 + 6 * 7) + (8 * 3 + 3 * 7) + (3 * 7 + 6 * 3))
    assert float(weighted_kappas(with_one, distances([0, 1, 2], "quadratic"))) == pytest.approx(
        expected
    )
