"""Paired differences of two models: worked by hand, clusters from the data, what is undefined."""

from collections.abc import Sequence

import numpy as np
import pytest

from analysis.figures.paired import (
    EXTRA_CLUSTER,
    NOT_RECORDED,
    Difference,
    holm,
    interval_reach,
    paired_difference,
)

Values = dict[str, dict[str, float | None]]


def scores(*values: float | None, name: str = "map") -> Values:
    return {f"q{place}": {name: value} for place, value in enumerate(values)}


def alone(values: Values) -> dict[str, dict[str, object]]:
    """Every query a cluster of its own, all of them scored."""
    return {query: {"cluster": query, "scored": True} for query in values}


def difference(one: Values, other: Values, metric: str = "map") -> Difference:
    return paired_difference(one, other, metric, alone(one))


def test_the_difference_is_the_mean_over_the_queries_both_have() -> None:
    """(0.5 - 0.25) and (1 - 0.5) are 0.25 and 0.5: 0.375; the third has no second value."""
    found = difference(scores(0.25, 0.5, 0.9), scores(0.5, 1.0, None))
    assert found.value == pytest.approx(0.375)
    assert found.queries == 2


def test_queries_gained_and_lost_are_counted_apart_and_equal_ones_are_neither() -> None:
    first, second = scores(0, 0, 1, 1, 0.5, None), scores(1, 1, 0, 1, 0.5, 1)
    found = difference(first, second)
    assert (found.gained, found.lost, found.queries) == (2, 1, 5)
    many = difference(scores(*[0.0] * 30), scores(*[1.0] * 20, *[0.0] * 10))
    assert (many.gained, many.lost) == (20, 0) and many.low is not None


def test_followir_differences_are_of_the_original_queries_as_the_scores_are() -> None:
    """Original queries lose 0.2 each; with the changed ones, which win 0.1, it looks like 0.05."""
    ids = [f"{n}{part}" for n in range(12) for part in ("-og", "-changed")]
    questions = {name: {"cluster": name[:-3], "scored": name.endswith("-og")} for name in ids}
    first = {name: {"ndcg@10": 0.5} for name in ids}
    second = {name: {"ndcg@10": 0.3 if name.endswith("-og") else 0.6} for name in ids}
    found = paired_difference(first, second, "ndcg@10", questions)
    assert found.value == pytest.approx(-0.2)
    assert found.queries == 12


def test_queries_of_one_base_query_are_one_cluster_whatever_their_ids() -> None:
    chance = np.random.default_rng(5)
    gains = chance.normal(0, 1, 30)
    ids = [(f"{n * 7 + part}", n) for n in range(30) for part in range(8)]
    first: Values = {name: {"map": 0.0} for name, _ in ids}
    second: Values = {name: {"map": float(gains[n])} for name, n in ids}
    together = paired_difference(
        first, second, "map", {name: {"cluster": str(n), "scored": True} for name, n in ids}
    )
    single = difference(first, second)
    assert together.high is not None and together.low is not None
    assert single.high is not None and single.low is not None
    width = together.high - together.low
    assert width > 2.5 * (single.high - single.low)  # √8 = 2.83 in the limit


def test_ids_that_look_like_groups_are_no_clusters() -> None:
    chance = np.random.default_rng(6)
    values = chance.normal(0.1, 1, 60)
    first: Values = {f"g1-{n}": {"map": 0.0} for n in range(60)}
    second: Values = {f"g1-{n}": {"map": float(values[n])} for n in range(60)}
    plain_first = scores(*[0.0] * 60)
    plain_second = scores(*map(float, values))
    assert difference(first, second) == difference(plain_first, plain_second)


def test_without_recorded_clusters_there_is_no_difference_but_a_reason() -> None:
    found = paired_difference(scores(0.1, 0.2), scores(0.2, 0.3), "map", {})
    assert (found.value, found.low, found.reason) == (None, None, NOT_RECORDED)


def test_equal_models_differ_by_nothing_and_have_no_interval() -> None:
    found = difference(scores(*[0.1] * 30), scores(*[0.1] * 30))
    assert (found.value, found.low, found.is_clear) == (0.0, None, False)
    assert "differ on 0 of 30" in (found.reason or "")


def test_a_constant_gain_is_clear_but_has_an_interval() -> None:
    """The error is that of 0.6 clusters without a gain, 0.3 / 30 · √0.6, widened by √(30 / 28)."""
    found = difference(scores(*[0.1] * 30), scores(*[0.4] * 30))
    assert found.value == pytest.approx(0.3)
    assert found.low is not None and found.high is not None and found.p is not None
    assert found.high - found.low == pytest.approx(
        2 * 2.0452 * 0.01 * (EXTRA_CLUSTER * 30 / 28) ** 0.5, rel=1e-3
    )
    assert found.is_clear
    assert found.p < 0.001


def test_the_interval_is_that_of_a_normal_mean_for_many_queries() -> None:
    draw = np.random.default_rng(5)
    first = draw.normal(size=2000)
    second = first + draw.normal(0.05, 1, 2000)
    found = difference(scores(*map(float, first)), scores(*map(float, second)))
    assert found.high is not None and found.value is not None
    assert found.high - found.value == pytest.approx(1.96 / np.sqrt(2000), rel=0.06)


def test_turning_the_models_round_turns_the_interval_round() -> None:
    chance = np.random.default_rng(3)
    one, other = scores(*chance.random(40)), scores(*chance.random(40))
    there, back = difference(one, other), difference(other, one)
    assert there.value is not None and back.value is not None
    assert there.low is not None and back.high is not None
    assert there.value == pytest.approx(-back.value)
    assert there.low == pytest.approx(-back.high, abs=1e-9)
    assert there.p == back.p


@pytest.mark.parametrize(("clusters", "unequal"), [(10, False), (10, True), (30, True)])
def test_nineteen_of_twenty_intervals_hold_the_mean(clusters: int, unequal: bool) -> None:
    generator = np.random.default_rng(9)
    held = 0
    for _ in range(300):
        counts = generator.integers(1, 9, clusters) if unequal else np.full(clusters, 8)
        totals = counts * generator.normal(0, 1, clusters)
        reach, p, _ = interval_reach(totals, counts.astype(float), resamples=500)
        held += abs(totals.sum() / counts.sum()) <= reach
        assert 0 < p <= 1
    assert held >= 0.92 * 300  # 49 % where single queries were resampled


def test_holm_multiplies_the_smallest_by_the_number_of_tests() -> None:
    """0.01·3 = 0.03; 0.02·2 = 0.04; 0.03·1 is below what came before: 0.04."""
    assert holm([0.03, None, 0.01, 0.02]) == pytest.approx([0.04, None, 0.03, 0.04])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ([], [], "no query"),
        ([0.1], [0.2], "needs 10"),
        ([0.1] * 20, [0.1] * 16 + [0.2] * 4, "differ on 4 of 20"),
    ],
)
def test_what_has_no_interval_says_why(
    one: Sequence[float], other: Sequence[float], reason: str
) -> None:
    found = difference(scores(*one), scores(*other))
    assert found.low is None and found.p is None and reason in (found.reason or "")
