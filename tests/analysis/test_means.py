"""Means of one model over clusters of queries, with their intervals."""

from typing import Any

import numpy as np
import pytest

from analysis.figures.means import Mean, cluster_mean, effective_clusters, share_interval


def stored(values: dict[str, list[float]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(per_query, questions) of {cluster: values}."""
    per_query = {f"{c}-{n}": {"m": v} for c, of in values.items() for n, v in enumerate(of)}
    about = {name: {"cluster": name.split("-")[0], "scored": True} for name in per_query}
    return per_query, about


def mean_of(values: dict[str, list[float]], *, is_share: bool) -> Mean | None:
    per_query, about = stored(values)
    return cluster_mean(per_query, "m", about, is_share=is_share)


def test_groups_of_their_own_have_wilsons_interval() -> None:
    """12 of 15: 14 by the unbiased variance, times (1.960 / 2.145)^2 for 14 degrees of freedom."""
    per_query, about = stored({f"g{n}": [float(n < 12)] for n in range(15)})
    found = cluster_mean(per_query, "m", about, is_share=True)
    assert found is not None and (found.value, found.queries, found.clusters) == (0.8, 15, 15)
    assert (found.low, found.high) == pytest.approx(share_interval(0.8, 14 * 0.83502), abs=1e-4)


def test_copies_of_a_query_do_not_narrow_the_interval() -> None:
    """Eight questions of equal value for each of 12 queries know as much as one each."""
    once = stored({f"q{n}": [float(n < 6)] for n in range(12)})
    copied = stored({f"q{n}": [float(n < 6)] * 8 for n in range(12)})
    alone, many = (cluster_mean(of, "m", about, is_share=True) for of, about in (once, copied))
    assert alone is not None and many is not None and many.queries == 96
    assert (many.low, many.high) == pytest.approx((alone.low, alone.high))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_share_of_all_or_none_has_an_interval_of_some_width(value: float) -> None:
    found = mean_of({f"g{n}": [value] for n in range(4)}, is_share=True)
    assert found is not None and found.low is not None and found.high is not None
    assert found.high - found.low > 0.4


def test_unequal_clusters_count_for_less() -> None:
    """(2 + 6)^2 / (4 + 36) = 1.6 by Kish."""
    assert effective_clusters(np.array([0.0, 0.0]), np.array([2.0, 6.0])) == pytest.approx(1.6)


def test_a_signed_mean_has_no_interval_below_ten_clusters_and_stays_between_its_limits() -> None:
    few = mean_of({f"q{n}": [0.5] for n in range(9)}, is_share=False)
    assert few is not None and few.low is None and "an interval needs 10" in str(few.reason)
    values = {f"q{n}": [1.0 if n < 9 else -1.0] for n in range(10)}
    many = mean_of(values, is_share=False)
    assert many is not None and many.low is not None and many.high == 1.0
    assert many.low < many.value == pytest.approx(0.8)


def test_where_clusters_were_not_recorded_there_is_a_mean_without_an_interval() -> None:
    per_query, _ = stored({"q": [0.5, 1.0]})
    found = cluster_mean(per_query, "m", {}, is_share=True)
    assert found is not None and (found.value, found.low) == (0.75, None)
    assert "not recorded" in str(found.reason) and cluster_mean({}, "m", {}, is_share=True) is None
