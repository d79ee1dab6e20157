"""Where one layer of the map is denser than another: the difference of two densities. Pure.

Two layers are two corpora, or the kept and the dropped groups: of these the share kept of both is
shown by cell, where at least FLOOR texts lie, and the difference tells where it is no chance.

A layer's density is the share of its texts per cell (`analysis.map.density`), so that layers of
unequal size can be compared. t = (a - b) / sqrt(pooled): densities vary more where more texts lie;
pooled is at least that of FLOOR texts, or single texts at the edge would set the bound below.

What chance does is found by shuffling: all texts of a group go to the one layer or the other
together, with as many groups in each layer as there are, SHUFFLES times. A cell differs where |t|
is above the highest |t| of any cell of any shuffle: if the layers differed in nothing, the chance
that a single cell of the map is marked is 1 in SHUFFLES + 1. Groups in both layers count as two,
which makes the bound higher, not lower.
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from analysis.map.density import CELLS, Grid, grid_over, places_of, smoothed

if TYPE_CHECKING:
    import pandas as pd

SHUFFLES: Final = 19
FLOOR: Final = 5  # texts at one place
SIGMA: Final = 4.0  # cells: with the contours' 2, a heap of a tenth of a layer was within chance
COLOURS: Final = ("#0072b2", "#d55e00")  # Okabe and Ito's blue and vermilion


class Layers(NamedTuple):
    """What is compared: the texts with these two values in this column of the map."""

    first: str
    second: str
    column: str = "corpus"

    @property
    def legend(self) -> list[str]:
        """What the colour of each layer says of a place."""
        return [f"denser in {name}" for name in (self.first, self.second)]


VERDICTS: Final = Layers("kept", "dropped", "verdict")


class Difference(NamedTuple):
    """The first layer's density less the second's, by cell, and which cells differ by more than
    chance; both of shape (CELLS, CELLS).

    `shares`: the first layer's share of both layers' texts by cell; NaN with less than FLOOR texts
    around. `whole`: that of all texts.
    """

    grid: Grid
    values: np.ndarray
    is_clear: np.ndarray
    shares: np.ndarray
    whole: float


def density_difference(
    points: "pd.DataFrame", first: str, second: str, column: str = "corpus", *, seed: int = 0
) -> Difference | None:
    """The difference of two layers of the map; None where one of them has no texts on it."""
    values_of = points[column].astype(str).to_numpy()
    here = np.isin(values_of, (first, second))
    is_first = values_of[here] == first
    if first == second or not is_first.any() or is_first.all():
        return None
    whole = places_of(points)
    grid = grid_over(whole)
    cells = grid.cells_of(whole[here])
    pooled = _spread(grid.density(cells, SIGMA) / len(cells), len(cells))
    values = _difference(grid, cells, is_first)
    limit = _limit(grid, cells, is_first, _units(points[here], is_first), pooled, seed)
    is_clear = np.abs(values) / pooled > limit
    shares = _shares(grid, cells, is_first)
    return Difference(grid, values, is_clear, shares, float(is_first.mean()))


def topic_shares(points: "pd.DataFrame", first: str, second: str) -> list[dict[str, Any]]:
    """Per cluster its texts in two layers and its share of each, the largest difference first."""
    corpora, clusters = points["corpus"].astype(str), points["cluster"].astype(str)
    sides = [clusters[corpora == name].value_counts() for name in (first, second)]
    rows = []
    for name in sorted(set(sides[0].index) | set(sides[1].index)):
        counts = [int(side.get(name, 0)) for side in sides]
        shares = [n / max(1, int(side.sum())) for n, side in zip(counts, sides, strict=True)]
        rows.append(
            {
                "cluster": name,
                "first": counts[0],
                "second": counts[1],
                "first_share": shares[0],
                "second_share": shares[1],
                "difference": shares[0] - shares[1],
            }
        )
    return sorted(rows, key=lambda row: (-abs(row["difference"]), row["cluster"]))


def _difference(grid: Grid, cells: np.ndarray, is_first: np.ndarray) -> np.ndarray:
    ours, theirs = (grid.density(cells[side], SIGMA) for side in (is_first, ~is_first))
    found: np.ndarray = ours / is_first.sum() - theirs / (~is_first).sum()
    return found


def _shares(grid: Grid, cells: np.ndarray, is_first: np.ndarray) -> np.ndarray:
    both, first = (grid.density(of, SIGMA) for of in (cells, cells[is_first]))
    found: np.ndarray = np.where(both >= _floor(), first / np.maximum(both, 1e-12), np.nan)
    return found


def _spread(pooled: np.ndarray, texts: int) -> np.ndarray:
    """The root of the pooled density, at least that of FLOOR texts at their own place."""
    found: np.ndarray = np.sqrt(np.maximum(pooled, _floor() / texts))
    return found


def _floor() -> float:
    """The density of FLOOR texts at their own place."""
    alone = np.zeros((CELLS, CELLS))
    alone[CELLS // 2, CELLS // 2] = FLOOR
    return float(smoothed(alone, SIGMA).max())


def _units(points: "pd.DataFrame", is_first: np.ndarray) -> np.ndarray:
    """What is shuffled as a whole: the group of each text in its layer, or the text itself."""
    groups = points["group_id"].to_numpy(np.float64, na_value=np.nan)
    alone = np.isnan(groups)
    keys = np.where(alone, -1.0 - np.arange(len(groups)), 2 * groups + is_first)
    found: np.ndarray = np.unique(keys, return_inverse=True)[1]
    return found


def _limit(
    grid: Grid,
    cells: np.ndarray,
    is_first: np.ndarray,
    units: np.ndarray,
    pooled: np.ndarray,
    seed: int,
) -> float:
    """The highest |t| of any cell of any shuffle."""
    generator = np.random.default_rng(seed)
    layer_of_unit = np.zeros(units.max() + 1, dtype=bool)
    layer_of_unit[units] = is_first
    highest = 0.0
    for _ in range(SHUFFLES):
        shuffled = generator.permutation(layer_of_unit)[units]
        if shuffled.any() and not shuffled.all():
            found = np.abs(_difference(grid, cells, shuffled)) / pooled
            highest = max(highest, float(found.max()))
    return highest
