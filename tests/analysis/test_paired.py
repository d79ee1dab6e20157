"""Paired differences of two models: worked by hand, clusters, what is undefined."""

import numpy as np
import pytest

from analysis.figures.paired import cluster_of, paired_difference


def scores(*values: float | None, name: str = "map") -> dict[str, dict[str, float | None]]:
    return {f"q{place}": {name: value} for place, value in enumerate(values)}


def test_the_difference_is_the_mean_over_the_queries_both_have() -> None:
    """(0.5 − 0.25) and (1 − 0.5) are 0.25 and 0.5: 0.375; the third has no second value."""
    found = paired_difference(scores(0.25, 0.5, 0.9), scores(0.5, 1.0, None), "map")
    assert found.value == pytest.approx(0.375)
    assert found.queries == 2
    assert (found.low, found.high) == (0.25, 0.5)
    assert found.is_clear


def test_p_is_the_share_of_means_as_far_from_their_centre() -> None:
    """Gains −1 and 3, mean 1: two draws give −1, 1, 3 with ¼, ½, ¼; half lie 2 ≥ 1 from 1."""
    found = paired_difference(scores(1.0, 0.0), scores(0.0, 3.0), "map")
    assert found.value == 1
    assert found.p == pytest.approx(0.5, abs=0.03)


def test_equal_models_differ_by_nothing_and_unclearly() -> None:
    found = paired_difference(scores(0.1, 0.5, 0.3), scores(0.1, 0.5, 0.3), "map")
    assert (found.value, found.low, found.high, found.is_clear) == (0.0, 0.0, 0.0, False)
    assert found.p == 1


def test_a_constant_gain_is_certain() -> None:
    found = paired_difference(scores(*[0.1] * 30), scores(*[0.4] * 30), "map")
    assert found.low == pytest.approx(0.3) == found.high
    assert found.p == 1 / 10_001  # no resample lies so far from none; one is added


def test_the_interval_is_that_of_a_normal_mean_for_many_queries() -> None:
    draw = np.random.default_rng(5)
    first = draw.normal(size=2000)
    found = paired_difference(scores(*first), scores(*(first + draw.normal(0.05, 1, 2000))), "map")
    half = 1.96 / np.sqrt(2000)
    assert found.high - found.value == pytest.approx(half, rel=0.06)
    assert found.value - found.low == pytest.approx(half, rel=0.06)


def test_turning_the_models_round_turns_the_interval_round() -> None:
    chance = np.random.default_rng(3)
    one, other = scores(*chance.random(40)), scores(*chance.random(40))
    there, back = paired_difference(one, other, "map"), paired_difference(other, one, "map")
    assert there.value == pytest.approx(-back.value)
    assert there.low == pytest.approx(-back.high, abs=0.01)


def test_queries_of_one_group_are_resampled_together() -> None:
    chance = np.random.default_rng(5)
    gains = chance.normal(0, 1, 30)
    first = {f"g{n:06}-{part}": {"map": 0.0} for n in range(30) for part in ("a", "b", "c")}
    second = {f"g{n:06}-{part}": {"map": gains[n]} for n in range(30) for part in ("a", "b", "c")}
    together = paired_difference(first, second, "map")
    alone = paired_difference(first, second, "map", cluster=lambda query_id: query_id)
    assert together.high - together.low > 1.4 * (alone.high - alone.low)  # √3 in the limit
    assert cluster_of("g000001-positive") == cluster_of("g000001") == "g000001"
    assert cluster_of("MARCO-310-og") == "MARCO-310-og"


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [(scores(), scores(), "no query"), (scores(0.1), scores(0.2), "no interval")],
)
def test_what_has_no_interval_says_why(one: dict, other: dict, reason: str) -> None:
    found = paired_difference(one, other, "map")
    assert found.low is None and found.p is None and reason in (found.reason or "")
