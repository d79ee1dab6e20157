"""Density of the map: thin regions, and the difference of two layers against chance."""

import numpy as np
import pandas as pd
import pytest

from analysis.map.density import CELLS, grid_over, places_of, thin_rows
from analysis.map.difference import VERDICTS, density_difference, topic_shares


def layer(
    name: str, number: int, seed: int, *, at: tuple[float, float] = (0, 0), each: int = 1
) -> pd.DataFrame:
    """Texts around a place, `each` of them per group at the group's place."""
    generator = np.random.default_rng(seed)
    places = np.repeat(generator.normal(size=(number, 2)) + at, each, axis=0)
    groups = np.repeat(np.arange(number) + 1000 * seed, each).astype(float)
    return pd.DataFrame(
        {
            "x": places[:, 0],
            "y": places[:, 1],
            "corpus": name,
            "cluster": "bees",
            "group_id": groups,
        }
    )


def test_two_layers_from_one_place_do_not_differ_and_a_heap_of_one_alone_does() -> None:
    same = pd.concat([layer("a", 600, 1), layer("b", 300, 2)], ignore_index=True)
    found = density_difference(same, "a", "b")
    assert found is not None
    assert not found.is_clear.any()
    heap = layer("a", 120, 3, at=(8, 8))
    found = density_difference(pd.concat([same, heap], ignore_index=True), "a", "b")
    assert found is not None
    x, y = np.meshgrid(*found.grid.centres(), indexing="ij")
    in_heap = np.hypot(x - 8, y - 8) < 1
    assert found.is_clear[in_heap].any()
    assert (found.values[found.is_clear & in_heap] > 0).all()
    turned = density_difference(pd.concat([same, heap], ignore_index=True), "b", "a")
    assert turned is not None
    assert np.allclose(turned.values, -found.values)


def test_equal_layers_are_marked_in_about_one_map_in_twenty() -> None:
    marked = 0
    for seed in range(60):
        both = pd.concat([layer("a", 80, 2 * seed + 1), layer("b", 80, 2 * seed + 2)])
        found = density_difference(both.reset_index(drop=True), "a", "b", seed=seed)
        assert found is not None
        marked += bool(found.is_clear.any())
    assert marked <= 8  # of 60 at 1 in 20: more than 8 has a chance below 1 %


def test_texts_of_one_group_are_no_evidence_of_their_own() -> None:
    # each group stands for seven texts at one place: with texts shuffled one by one, any two
    # layers would differ
    marked = 0
    for seed in range(30):
        both = pd.concat(
            [layer("a", 40, 2 * seed + 1, each=7), layer("b", 40, 2 * seed + 2, each=7)]
        )
        found = density_difference(both.reset_index(drop=True), "a", "b", seed=seed)
        assert found is not None
        marked += bool(found.is_clear.any())
    assert marked <= 5


def test_a_layer_without_texts_has_no_difference() -> None:
    one = layer("a", 30, 1)
    assert density_difference(one, "a", "b") is None
    assert density_difference(one, "a", "a") is None
    assert density_difference(one.iloc[:0], "a", "b") is None


def test_the_difference_sums_to_nothing_and_a_share_does_not_depend_on_the_size() -> None:
    both = pd.concat([layer("a", 900, 1), layer("b", 90, 2)], ignore_index=True)
    found = density_difference(both, "a", "b")
    assert found is not None
    assert found.values.sum() == pytest.approx(0, abs=0.02)  # what leaves the edge is lost


def test_the_shares_of_a_topic_are_of_its_own_layer() -> None:
    points = pd.DataFrame(
        {
            "corpus": ["a", "a", "a", "a", "b", "b"],
            "cluster": ["bees", "bees", "bees", "tea", "tea", "snow"],
        }
    )
    rows = topic_shares(points, "a", "b")
    assert [row["cluster"] for row in rows] == ["bees", "snow", "tea"]
    assert rows[0]["first_share"] == 0.75
    assert rows[0]["second_share"] == 0
    assert rows[2]["difference"] == pytest.approx(-0.25)
    assert (rows[2]["first"], rows[2]["second"]) == (1, 1)


def test_thin_rows_are_those_with_the_fewest_grown_texts_around() -> None:
    crowd = layer("a", 90, 1)
    edge = layer("a", 3, 2, at=(30, 30))
    pairs = layer("pairs", 7, 3, at=(15, 15)).assign(group_id=np.nan)
    points = pd.concat([crowd, edge, pairs], ignore_index=True)
    assert thin_rows(points, 0.07).tolist() == list(range(93, 100))  # pairs where nothing is grown
    assert thin_rows(points, 0.1).tolist() == list(range(90, 100))
    assert thin_rows(points.iloc[93:].reset_index(drop=True), 0.5).size == 4
    assert thin_rows(points.iloc[:0]).size == 0


def test_every_point_lies_in_the_grid() -> None:
    points = layer("a", 50, 1)
    xy = places_of(points)
    grid = grid_over(xy)
    cells = grid.cells_of(xy)
    assert cells.min() >= 0 and cells.max() < CELLS * CELLS
    x, y = grid.centres()
    step = (x[1] - x[0], y[1] - y[0])
    for (px, py), cell in zip(xy, cells, strict=True):
        assert abs(x[cell // CELLS] - px) <= step[0] / 2 + 1e-9
        assert abs(y[cell % CELLS] - py) <= step[1] / 2 + 1e-9
    assert grid_over(np.zeros((3, 2))).cells_of(np.zeros((3, 2))).shape == (3,)


def test_the_kept_share_differs_where_more_is_kept_and_not_by_chance_alone() -> None:
    points = pd.concat([layer("a", 500, 1), layer("a", 200, 2, at=(8, 8))], ignore_index=True)
    chance = np.random.default_rng(0).random(len(points))
    points["verdict"] = np.where(chance < 0.5, "kept", "dropped")
    found = density_difference(points, *VERDICTS)
    assert found is not None and not found.is_clear.any()
    apart = points["x"] > 4
    points["verdict"] = np.where(chance < np.where(apart, 0.95, 0.4), "kept", "dropped")
    found = density_difference(points, *VERDICTS)
    assert found is not None
    x, y = np.meshgrid(*found.grid.centres(), indexing="ij")
    in_heap, elsewhere = np.hypot(x - 8, y - 8) < 1, np.hypot(x, y) < 1
    assert (found.values[found.is_clear & in_heap] > 0).all()
    assert found.is_clear[in_heap].any() and found.is_clear[elsewhere].any()
    assert (found.values[found.is_clear & elsewhere] < 0).all()


def test_the_kept_share_of_a_cell_is_kept_over_all_and_none_where_few_texts_lie() -> None:
    heaps = [
        pd.DataFrame({"x": at, "y": 0.0, "verdict": ["kept"] * kept + ["dropped"] * (40 - kept)})
        for at, kept in ((0.0, 30), (10.0, 10))
    ]
    alone = pd.DataFrame({"x": [5.0], "y": [9.0], "verdict": ["kept"]})
    points = pd.concat([*heaps, alone], ignore_index=True).assign(group_id=np.nan)
    found = density_difference(points, *VERDICTS)
    assert found is not None
    shares = [
        found.shares.ravel()[found.grid.cells_of(np.array([place]))[0]]
        for place in ((0.0, 0.0), (10.0, 0.0), (5.0, 9.0))
    ]
    assert shares[:2] == pytest.approx([0.75, 0.25], abs=1e-3)  # 30 / 40 and 10 / 40
    assert np.isnan(shares[2])
    assert found.whole == pytest.approx(41 / 81)
