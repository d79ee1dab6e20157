import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.text.splits import held_out


def test_groups_that_share_a_key_land_on_the_same_side() -> None:
    groups = [("q1", "p1"), ("q2", "p1"), ("q2", "p9")] + [
        (f"q{n}", f"p{n}") for n in range(10, 27)
    ]
    for seed in range(20):
        out = held_out(groups, fraction=0.5, seed=seed)
        assert out[0] == out[1] == out[2]
        assert out.sum() == 10


@given(
    st.lists(st.tuples(st.integers(0, 9), st.text("abc", max_size=2)), min_size=1, max_size=20),
    st.integers(0, 5),
    st.floats(0.05, 0.95),
    st.randoms(use_true_random=False),
)
def test_no_key_is_on_both_sides_and_the_order_does_not_matter(
    groups: list[tuple[int, str]], seed: int, fraction: float, rng: random.Random
) -> None:
    out = held_out(groups, fraction=fraction, seed=seed)
    inside = {key for group, held in zip(groups, out, strict=True) if held for key in group}
    outside = {key for group, held in zip(groups, out, strict=True) if not held for key in group}
    assert not inside & outside
    assert not out.all()
    order = list(range(len(groups)))
    rng.shuffle(order)
    shuffled = held_out([groups[place] for place in order], fraction=fraction, seed=seed)
    assert np.array_equal(shuffled, out[order])


def test_another_seed_holds_out_others() -> None:
    groups = [(f"q{n}",) for n in range(100)]
    one, other = (held_out(groups, fraction=0.2, seed=seed) for seed in (1, 2))
    assert one.sum() == other.sum() == 20
    assert not np.array_equal(one, other)


def test_a_small_fraction_still_holds_something_out_and_never_everything() -> None:
    assert held_out([("a",), ("b",), ("c",)], fraction=0.01, seed=0).sum() == 1
    assert held_out([("a",), ("b",), ("c",)], fraction=0.99, seed=0).sum() == 2
    assert held_out([("a",)], fraction=0.5, seed=0).sum() == 0
    assert held_out([("a",), ("b",)], fraction=0.0, seed=0).sum() == 0
    assert held_out([("a",), ("b",)], fraction=1.0, seed=0).all()
    assert held_out([], fraction=0.5, seed=0).shape == (0,)


def test_a_fraction_outside_zero_to_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"fraction 1\.5"):
        held_out([("a",)], fraction=1.5, seed=0)
