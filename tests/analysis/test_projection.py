import warnings

import numpy as np
import pytest

from analysis.embed.neighbours import Best, below_share, nearest
from analysis.map.projection import place, project, restored_fit, sparse
from db.errors import BadInput


def unit(rows: int, dimensions: int = 16, seed: int = 0) -> np.ndarray:
    array = np.random.default_rng(seed).normal(size=(rows, dimensions)).astype(np.float32)
    return array / np.linalg.norm(array, axis=1, keepdims=True)


def test_the_neighbours_are_those_of_the_whole_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.embed.neighbours.FLOATS_AT_ONCE", 200)
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


@pytest.mark.long
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


@pytest.mark.long
def test_texts_placed_in_parts_lie_where_they_lie_when_placed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted, new = unit(100), unit(90, seed=1)
    map_ = project(fitted)
    whole = place(np.concatenate([fitted, new]), fitted, map_)
    monkeypatch.setattr("analysis.map.projection.PLACED", 50)
    parts = place(np.concatenate([fitted, new]), fitted, map_)
    assert np.array_equal(parts[:100], map_) and np.array_equal(whole[:100], map_)
    apart = np.linalg.norm((parts - whole) / np.ptp(map_, axis=0), axis=1)
    assert np.median(apart[100:]) < 0.05


def test_too_few_texts_are_refused() -> None:
    with pytest.raises(BadInput, match="9 different texts: a map needs at least 10"):
        project(unit(9))


@pytest.mark.long
def test_new_texts_are_placed_as_umaps_own_fitted_object_places_them() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import umap

        fitted, new = unit(120), unit(40, seed=1)
        reducer = umap.UMAP(metric="cosine", random_state=7, transform_seed=7, n_jobs=1)
        map_ = reducer.fit_transform(fitted)
        restored = restored_fit(map_, 15, 0.1, 7)
        # what the layout of `transform` starts from; it magnifies roundings, so it is compared here
        reducer.transform_mode = restored.transform_mode = "graph"
        weights = restored.transform(sparse(*nearest(new, fitted, 15), 120)).toarray()
        assert np.allclose(weights, reducer.transform(new).toarray(), atol=1e-5)
    for name in ("_a", "_b", "_initial_alpha", "transform_seed", "negative_sample_rate"):
        assert getattr(restored, name) == getattr(reducer, name)
    assert np.array_equal(restored.embedding_, reducer.embedding_)
    found = place(new, fitted, map_, seed=7)
    assert (found.dtype, found.shape) == (np.float32, (40, 2))
    assert np.array_equal(place(new, fitted, map_, seed=7), found)


@pytest.mark.long
@pytest.mark.slow
def test_texts_of_the_map_keep_their_points_and_near_ones_come_near() -> None:
    centre = np.zeros(16, dtype=np.float32)
    centre[0] = 3
    fitted = np.concatenate([unit(40) + centre, unit(40, seed=1) - centre])
    fitted /= np.linalg.norm(fitted, axis=1, keepdims=True)
    map_ = project(fitted, seed=3)
    near = fitted[:1] + 0.01 * unit(1, seed=9)
    near /= np.linalg.norm(near)
    found = place(np.concatenate([fitted, near]), fitted, map_, seed=3)
    assert np.array_equal(found[:80], map_)
    middles = map_[:40].mean(axis=0), map_[40:].mean(axis=0)
    assert np.linalg.norm(found[80] - middles[0]) < np.linalg.norm(found[80] - middles[1])
    assert place(np.zeros((0, 16), np.float32), fitted, map_).shape == (0, 2)


def test_a_map_of_too_few_texts_takes_no_others() -> None:
    with pytest.raises(BadInput, match="a map of 9 texts: at least 10 are needed"):
        place(unit(1), unit(9), np.zeros((9, 2), np.float32))


def test_up_to_a_share_of_the_right_texts_score_and_none_where_that_is_not_above_zero() -> None:
    scores = np.array([0.9, 0.5, 0.7, -0.4, 0.5, -0.1], dtype=np.float32)
    assert below_share(scores, 0.9, 0.8, 3) == [2, 1, 4]
    assert below_share(scores, 0.9, 0.8, 3, barred=[2]) == [1, 4, 5]
    assert below_share(scores, -0.1, 0.5, 3) == below_share(scores, 0.0, 0.5, 3) == []


@pytest.mark.parametrize("floor", [-np.inf, 0.0])
def test_the_best_of_parts_are_those_of_the_whole_with_ties_in_their_order(floor: float) -> None:
    chance = np.random.default_rng(4)
    scores = chance.integers(-3, 4, (5, 60)).astype(np.float32)
    scores[4, :57] = -np.inf
    best = Best(5, 7, floor)
    for start, end in ((0, 1), (1, 30), (30, 30), (30, 60)):
        for query in range(5):
            best.add(query, scores[query, start:end], np.arange(start, end) + 100)
    for query, of in enumerate(scores):
        order = [place for place in np.argsort(-of, kind="stable") if of[place] > floor][:7]
        assert best.of(query) == [(place + 100, of[place]) for place in order]
