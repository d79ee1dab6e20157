"""The quantile of Student's t that intervals of agreement use, without scipy in the app."""

import pytest
from scipy.stats import t

from analysis.agreement.intervals import student_97_5


@pytest.mark.parametrize("freedom", [*range(1, 60), 100, 1_000, 333_000])
def test_the_quantile_is_scipys(freedom: int) -> None:
    assert student_97_5(freedom) == pytest.approx(float(t.ppf(0.975, freedom)), abs=1e-5)
