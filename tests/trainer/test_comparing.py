import numpy as np
import pytest

from trainer.comparing import compare, paired_bootstrap


def named(values: list[float]) -> dict[str, float]:
    return {f"q{number}": value for number, value in enumerate(values)}


def test_equal_models_do_not_differ() -> None:
    found = paired_bootstrap(named([0.1, 0.5, 0.9]), named([0.1, 0.5, 0.9]))
    assert found is not None
    assert (found["difference"], found["low"], found["high"], found["p"]) == (0, 0, 0, 1)


def test_a_constant_gain_is_certain_and_the_order_gives_the_sign() -> None:
    low, high = named([0.1] * 30), named([0.4] * 30)
    found, back = paired_bootstrap(low, high), paired_bootstrap(high, low)
    assert found is not None and back is not None
    assert found["low"] == pytest.approx(0.3) == found["high"] == -back["difference"]


def test_the_interval_is_that_of_a_normal_mean_for_many_queries() -> None:
    draw = np.random.default_rng(5)
    first = draw.normal(size=2000)
    found = paired_bootstrap(named(list(first)), named(list(first + draw.normal(0.05, 1, 2000))))
    assert found is not None
    half = 1.96 / np.sqrt(2000)
    assert found["high"] - found["difference"] == pytest.approx(half, rel=0.06)
    assert found["difference"] - found["low"] == pytest.approx(half, rel=0.06)


def test_fewer_than_two_common_queries_are_undefined() -> None:
    assert paired_bootstrap({"a": 1.0}, {"a": 0.0, "b": 1.0}) is None
    per_query = {"a": {"map": 1.0}, "b": {"p-mrr": 1.0}}
    assert compare(per_query, per_query, ("map", "p-mrr")) == {"map": None, "p-mrr": None}
