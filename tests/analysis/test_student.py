"""Student's t as the pages use it is scipy's."""

import pytest
from scipy.stats import t

from analysis.figures.student import student_97_5, two_sided_p

FREEDOM = [*range(1, 60), 100, 1_001, 33_000]


@pytest.mark.parametrize("freedom", FREEDOM)
def test_the_quantile_is_scipys(freedom: int) -> None:
    assert student_97_5(freedom) == pytest.approx(float(t.ppf(0.975, freedom)), abs=1e-5)


@pytest.mark.parametrize("freedom", FREEDOM)
def test_the_p_value_is_scipys(freedom: int) -> None:
    for value in (0.0, 0.3, -1.0, 1.96, 3.5, 9.0):
        expected = 2 * float(t.sf(abs(value), freedom))
        assert two_sided_p(value, freedom) == pytest.approx(expected, abs=1e-10)
