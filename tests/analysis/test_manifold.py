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


def test_a_part_of_a_circle_covers_itself_and_a_ball_beyond_its_ends() -> None:
    half, whole = on_circle(*range(0, 180, 10)), on_circle(*range(0, 360, 10))
    assert covered_share(half, whole).value == 1.0
    # the fifth nearest of a point of the whole circle is 30° away: 180°, 190° and 200° have 170°
    # within their balls, 330°, 340° and 350° have 0°; with the half's own 18 these are 24 of 36
    assert covered_share(whole, half).value == 24 / 36
    assert covered_share(half, on_circle(270)).value == 0.0


def in_space(generator: np.random.Generator, size: int, centre: np.ndarray) -> np.ndarray:
    points = generator.normal(size=(size, len(centre))) * 0.2 + centre
    unit: np.ndarray = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return unit


def test_four_outliers_move_the_covered_share_by_no_more_than_their_own_number() -> None:
    generator = np.random.default_rng(3)
    here, there = np.eye(16)[0], np.eye(16)[1]
    ours = np.concatenate([in_space(generator, 250, here), in_space(generator, 250, there)])
    theirs = in_space(generator, 500, here)
    far = in_space(generator, 4, -np.eye(16)[2])
    plain = covered_share(ours, theirs).value
    assert plain is not None and 0.4 < plain < 0.6
    assert covered_share(ours, np.concatenate([theirs, far])).value == plain
    moved = covered_share(np.concatenate([ours, far]), theirs).value
    assert moved is not None and abs(moved - plain) <= 4 / 504


def test_two_samples_of_one_distribution_are_covered_but_for_one_in_32() -> None:
    generator = np.random.default_rng(5)
    one, other = (in_space(generator, 1500, np.eye(8)[0]) for _ in "ab")
    assert covered_share(one, other).value == pytest.approx(1 - 2**-5, abs=0.015)


def test_a_corpus_covers_itself_and_too_few_texts_are_undefined() -> None:
    points = on_circle(0, 50, 70, 200, 250, 300)
    assert covered_share(points, points).value == 1.0
    assert "needs more" in str(covered_share(points[:3], points).reason)
    assert covered_share(points, points[:0]).reason == "no texts"
