"""Part of a queue against the rest: chance is not reported, a chosen part is."""

import numpy as np
import pytest

from analysis.study.balance import imbalances
from db.shape import INF_IR
from db.study.run_items import ItemKind


def queue_of(size: int, seed: int) -> list[ItemKind]:
    chance = np.random.default_rng(seed)
    return [
        ItemKind(
            "kept" if chance.random() < 0.6 else "dropped",
            "rare" if chance.random() < 0.2 else "common",
            "",
            INF_IR.roles[number % 3],
            bool(chance.random() < 0.8),
        )
        for number in range(size)
    ]


@pytest.mark.parametrize("judged", [10, 40])
def test_parts_taken_at_random_are_reported_at_the_stated_rate_at_most(judged: int) -> None:
    alarms = 0
    for seed in range(400):
        queue = queue_of(90, seed)
        order = np.random.default_rng([seed, 1]).permutation(90)
        here = [queue[place] for place in order[:judged]]
        there = [queue[place] for place in order[judged:]]
        alarms += bool(imbalances(here, there))
    assert alarms / 400 <= 0.05 + 0.025  # docs/intervals.md: 5 % at most


def test_a_part_that_somebody_chose_is_reported_with_its_shares() -> None:
    queue = queue_of(90, 0)
    here = [kind for kind in queue if kind.source == "rare"]
    there = [kind for kind in queue if kind.source == "common"]
    (found,) = imbalances(here, there)
    assert (found.field, found.weighted) == ("source", False)
    assert (found.value, found.judged, found.waiting) == ("rare", 1, 0)
    assert found.p < 0.01
    (found,) = imbalances(here, there, strata=("source",))
    assert found.weighted


def test_a_queue_that_is_judged_to_the_end_or_not_at_all_has_nothing_to_compare() -> None:
    queue = queue_of(30, 0)
    assert imbalances(queue, []) == imbalances([], queue) == []
