"""How densely texts lie on a map: on a grid, as lines of equal density, and where thin. Pure."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from analysis.figures.figures import CATEGORY_COLOURS
from analysis.map.contours import contour_lines, smoothed

if TYPE_CHECKING:
    import pandas as pd

CELLS, LEVELS = 80, 5
MARGIN: Final = 0.05  # of the map's width and height, on each side of the grid
THIN_SHARE: Final = 0.1


class Grid(NamedTuple):
    """CELLS × CELLS cells over a map: the edges of its rows and columns, in the map's units."""

    x: np.ndarray
    y: np.ndarray

    def cells_of(self, xy: np.ndarray) -> np.ndarray:
        """The number of each point's cell, row by row of x; shape (points,)."""
        places = [
            np.clip(np.searchsorted(edges, xy[:, side], "right") - 1, 0, CELLS - 1)
            for side, edges in enumerate(self)
        ]
        found: np.ndarray = places[0] * CELLS + places[1]
        return found

    def density(self, cells: np.ndarray, sigma: float = 2.0) -> np.ndarray:
        """Points per cell under a Gaussian of `sigma` cells, shape (CELLS, CELLS)."""
        counts = np.bincount(cells, minlength=CELLS * CELLS).reshape(CELLS, CELLS)
        return smoothed(counts.astype(np.float64), sigma)

    def centres(self) -> tuple[np.ndarray, np.ndarray]:
        """The middles of the cells, along x and along y."""
        x, y = ((edges[:-1] + edges[1:]) / 2 for edges in self)
        return x, y


def grid_over(xy: np.ndarray) -> Grid:
    """The grid over all points, shape (points, 2), with a margin."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    margin = MARGIN * np.maximum(high - low, 1e-9)
    return Grid(*(np.linspace(low[n] - margin[n], high[n] + margin[n], CELLS + 1) for n in (0, 1)))


def places_of(points: "pd.DataFrame") -> np.ndarray:
    """The points of a frame with `x` and `y`, float64, shape (points, 2)."""
    found: np.ndarray = points[["x", "y"]].to_numpy(np.float64)
    return found


def density_lines(points: "pd.DataFrame") -> list[dict[str, Any]]:
    """Per corpus its name, colour and lines of equal density (`pieces`, shape (n, 4)): of a
    Gaussian-smoothed histogram, at 1/6 … 5/6 of the corpus's own highest density."""
    if points.empty:
        return []
    xy = places_of(points)
    grid = grid_over(xy)
    corpora = points["corpus"].astype(str).to_numpy()
    found = []
    for place, name in enumerate(sorted(set(corpora))):
        density = grid.density(grid.cells_of(xy[corpora == name]))
        top = float(density.max())
        levels = [top * step / (LEVELS + 1) for step in range(1, LEVELS + 1)]
        pieces = [contour_lines(density, level, *grid.centres()) for level in levels]
        found.append(
            {
                "name": name,
                "colour": CATEGORY_COLOURS[place % len(CATEGORY_COLOURS)],
                "pieces": np.concatenate(pieces),
            }
        )
    return found


def thin_rows(points: "pd.DataFrame", share: float = THIN_SHARE) -> np.ndarray:
    """The rows where the fewest texts of groups lie around, ascending: this share of all rows.

    Where no text belongs to a group, all texts count. Of rows with equally few the first.
    """
    if points.empty:
        return np.zeros(0, dtype=np.int64)
    xy = places_of(points)
    grid = grid_over(xy)
    cells = grid.cells_of(xy)
    grown = points["group_id"].notna().to_numpy()
    around = grid.density(cells[grown] if grown.any() else cells).ravel()[cells]
    wanted = max(1, round(share * len(points)))
    found: np.ndarray = np.sort(np.argsort(around, kind="stable")[:wanted])
    return found
