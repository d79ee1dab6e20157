import numpy as np
import pytest

from analysis.map.manifold import (
    CELLS,
    cells_of,
    covered_share,
    hull_volume,
    occupied_share,
    principal_components,
)


def on_circle(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_occupied_cells_worked_by_hand() -> None:
    every = np.array([[0.0, 0.0], [1.0, 1.0], [0.999, 0.999], [0.0, 1.0]])
    assert cells_of(every, every).tolist() == [0, CELLS**2 - 1, CELLS**2 - 1, CELLS - 1]
    assert occupied_share(every[:2], every) == 2 / 3
    assert occupied_share(every, every) == 1.0
    assert occupied_share(every[:1], every[:1]) == 1.0  # all in one place


def test_the_hull_of_a_unit_cube_has_volume_one() -> None:
    cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    assert hull_volume(cube).value == pytest.approx(1.0)
    assert hull_volume(cube[:3]).reason == "fewer than 4 different texts"
    assert "lie in a plane" in str(hull_volume(cube * [1, 1, 0]).reason or "") or (
        "fewer than" in str(hull_volume(cube * [1, 1, 0]).reason)
    )


def test_components_are_those_of_the_largest_spread_and_turn_nothing() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(200, 5)) * [5, 1, 3, 0.1, 2]
    found = principal_components(vectors)
    assert np.allclose(np.abs(found.axes[0]), [1, 0, 0, 0, 0], atol=0.15)
    assert np.allclose(found.axes @ found.axes.T, np.eye(3))
    assert np.allclose(found.of(vectors).mean(axis=0), 0)


def test_precision_and_recall_of_a_part_of_a_circle() -> None:
    half, whole = on_circle(*range(0, 180, 10)), on_circle(*range(0, 360, 10))
    assert covered_share(half, whole).value == 1.0
    # the half's balls reach 2 neighbours (20°) on, 30° at its two ends: 180°, 190°, 350°, 340° …
    share = covered_share(whole, half).value
    assert share is not None
    assert 18 / 36 < share < 28 / 36
    assert covered_share(on_circle(270), half).value == 0.0


def test_a_corpus_covers_itself_and_too_few_texts_are_undefined() -> None:
    points = on_circle(0, 50, 70, 200, 300)
    assert covered_share(points, points).value == 1.0
    assert "needs more" in str(covered_share(points, points[:3]).reason)
    assert covered_share(points[:0], points).reason == "no texts"
