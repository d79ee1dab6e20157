"""How densely texts lie on a map: on a grid, as lines of equal density, and where thin. Pure."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from analysis.figures.figures import CATEGORY_COLOURS

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


# Lines of equal density on a grid: smoothing, and marching squares. Pure.
# Of a square with corners 0 (low x, low y), 1 (high x, low y), 2 (high x, high y), 3 (low x, high
# y): the sides that a line joins, per case; the case has a bit per corner above the level. A saddle
# (5 and 10) has two lines. Side n goes from corner n to corner n + 1.
JOINED: Final = {
    1: [(3, 0)],
    2: [(0, 1)],
    3: [(3, 1)],
    4: [(1, 2)],
    5: [(3, 0), (1, 2)],
    6: [(0, 2)],
    7: [(3, 2)],
    8: [(2, 3)],
    9: [(2, 0)],
    10: [(0, 1), (2, 3)],
    11: [(2, 1)],
    12: [(1, 3)],
    13: [(1, 0)],
    14: [(0, 3)],
}


def smoothed(counts: np.ndarray, sigma: float = 2.0) -> np.ndarray:
    """A histogram under a Gaussian of `sigma` cells, side by side; what leaves the edge is lost."""
    reach = int(4 * sigma)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    kernel /= kernel.sum()
    for axis in (0, 1):
        counts = np.apply_along_axis(np.convolve, axis, counts, kernel, mode="same")
    return counts


def contour_lines(values: np.ndarray, level: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where `values` (shape (len(x), len(y))) pass `level`: pieces x0 y0 x1 y1, shape (n, 4).

    Linear between the grid's points; no piece where everything lies on one side.
    """
    corners = [values[:-1, :-1], values[1:, :-1], values[1:, 1:], values[:-1, 1:]]
    case = np.zeros(corners[0].shape, dtype=np.int64)
    for bit, corner in enumerate(corners):
        case |= (corner > level).astype(np.int64) << bit
    pieces = [np.zeros((0, 4))]
    for number, joined in JOINED.items():
        i, j = np.nonzero(case == number)
        at = [np.stack([x[i + a], y[j + b]], axis=1) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]
        height = [corner[i, j] for corner in corners]
        for sides in joined:
            ends = [_crossing(at, height, side, level) for side in sides]
            pieces.append(np.concatenate(ends, axis=1))
    return np.concatenate(pieces)


def _crossing(
    at: list[np.ndarray], height: list[np.ndarray], side: int, level: float
) -> np.ndarray:
    one, other = side, (side + 1) % 4
    share = (level - height[one]) / (height[other] - height[one])
    found: np.ndarray = at[one] + share[:, None] * (at[other] - at[one])
    return found
