import numpy as np
import pytest

from analysis.neighbours import nearest
from analysis.projection import place, project
from db.errors import BadInput


def unit(rows: int, dimensions: int = 16, seed: int = 0) -> np.ndarray:
    array = np.random.default_rng(seed).normal(size=(rows, dimensions)).astype(np.float32)
    return array / np.linalg.norm(array, axis=1, keepdims=True)


def test_the_neighbours_are_those_of_the_whole_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.neighbours.FLOATS_AT_ONCE", 200)
    vectors = unit(50)
    places, distances = nearest(vectors, vectors, 5, themselves=True)
    expected = 1 - vectors @ vectors.T
    np.fill_diagonal(expected, -1)
    assert np.array_equal(places, np.argsort(expected, axis=1)[:, :5])
    assert np.array_equal(places[:, 0], np.arange(50))
    assert (distances[:, 0] == 0).all()
    assert (np.diff(distances, axis=1) >= 0).all()


def test_equal_vectors_are_each_their_own_first_neighbour() -> None:
    vectors = np.repeat(unit(2), 3, axis=0)
    places, _ = nearest(vectors, vectors, 3, themselves=True)
    assert places[:, 0].tolist() == list(range(6))


@pytest.mark.slow
def test_two_heaps_stay_apart_and_the_same_input_gives_the_same_map() -> None:
    centre = np.zeros(16, dtype=np.float32)
    centre[0] = 3
    vectors = np.concatenate([unit(40) + centre, unit(40, seed=1) - centre])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first = project(vectors, seed=3)
    assert first.shape == (80, 2)
    middles = first[:40].mean(axis=0), first[40:].mean(axis=0)
    spread = max(first[:40].std(), first[40:].std())
    assert np.linalg.norm(middles[0] - middles[1]) > spread
    assert np.array_equal(project(vectors, seed=3), first)
    assert not np.array_equal(project(vectors, seed=4), first)
    assert np.isfinite(project(unit(10))).all()


def test_too_few_texts_are_refused() -> None:
    with pytest.raises(BadInput, match="9 different texts: a map needs at least 10"):
        project(unit(9))


def test_new_texts_are_placed_among_their_neighbours_and_known_ones_where_they_are() -> None:
    fitted, map_ = unit(30), np.random.default_rng(1).normal(size=(30, 2)).astype(np.float32)
    assert np.allclose(place(fitted, fitted, map_), map_, atol=1e-4)
    near = fitted[:1] + 0.01 * unit(1, seed=9)
    near /= np.linalg.norm(near)
    found = place(near, fitted, map_)[0]
    assert np.linalg.norm(found - map_[0]) < np.linalg.norm(map_ - map_[0], axis=1).max()
    low, high = map_.min(axis=0), map_.max(axis=0)
    assert ((low <= found) & (found <= high)).all()
