"""What the web app computes itself gives what scipy gives."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtrc

from analysis.agreement.judge_profile import chi_squared_tail
from analysis.text.splits import _joined


@pytest.mark.parametrize("degrees", range(1, 12))
def test_the_tail_of_chi_squared_is_scipys(degrees: int) -> None:
    for statistic in (0.0, 1e-9, 0.3, 1.0, 4.2, 11.0, 60.0, 700.0, 3000.0):
        expected = float(chdtrc(degrees, statistic))
        assert chi_squared_tail(statistic, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_the_tail_by_hand() -> None:
    # two degrees: e^(-x/2); one degree at 3.841459: 5 %
    assert chi_squared_tail(4.0, 2) == pytest.approx(np.exp(-2.0))
    assert chi_squared_tail(3.841458820694124, 1) == pytest.approx(0.05)


@pytest.mark.parametrize("seed", range(20))
def test_components_are_scipys_and_named_by_their_smallest_node(seed: int) -> None:
    chance = np.random.default_rng(seed)
    nodes, edges = 200, int(chance.integers(0, 260))
    left, right = chance.integers(0, nodes, edges), chance.integers(0, nodes, edges)
    label = _joined(nodes, left, right)
    graph = coo_array((np.ones(edges, dtype=bool), (left, right)), shape=(nodes, nodes))
    _, expected = connected_components(graph, directed=False)
    for component in np.unique(expected):
        members = np.flatnonzero(expected == component)
        assert set(label[members].tolist()) == {int(members.min())}


def test_a_long_shuffled_chain_is_one_component() -> None:
    order = np.random.default_rng(1).permutation(50_000)
    assert set(_joined(len(order), order[:-1], order[1:]).tolist()) == {0}
