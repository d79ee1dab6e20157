"""Lines of equal density on a grid: smoothing, and marching squares. Pure."""

from typing import Final

import numpy as np

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
