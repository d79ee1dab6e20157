"""Which points of the map a selection holds: all that are stored there. Pure."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.map.density import thin_rows
from analysis.map.picture import categories_of

if TYPE_CHECKING:
    import pandas as pd


def rows_inside(points: "pd.DataFrame", shape: Mapping[str, Any] | None) -> np.ndarray:
    """The rows that `shape` holds, ascending; none without one.

    A box has `x` and `y` (low and high, both inside), a lasso its corners as `path`, a cluster its
    `name`, a search its rows as `found`; `thin` is where the fewest texts lie. Categories of
    `colour` that the legend hides (`hidden`) are left out: what is not drawn cannot be selected.
    """
    if not shape:
        return np.zeros(0, dtype=np.int64)
    inside = _inside(points, shape)
    if shape.get("hidden"):
        inside = inside & ~np.isin(
            categories_of(points, shape["colour"]).astype(str), shape["hidden"]
        )
    return np.flatnonzero(inside)


def _inside(points: "pd.DataFrame", shape: Mapping[str, Any]) -> np.ndarray:
    """Whether each point is inside."""
    kind = shape["kind"]
    if kind in ("box", "lasso"):
        x, y = points["x"].to_numpy(np.float64), points["y"].to_numpy(np.float64)
        if kind == "box":
            return inside_box(x, y, shape["x"], shape["y"])
        return inside_lasso(x, y, np.array(shape["path"], dtype=np.float64))
    if kind == "cluster" and "cluster" in points:
        found: np.ndarray = (points["cluster"].astype(str) == shape["name"]).to_numpy()
        return found
    inside = np.zeros(len(points), dtype=bool)
    inside[thin_rows(points) if kind == "thin" else shape.get("found", [])] = True
    return inside


def inside_box(x: np.ndarray, y: np.ndarray, xs: list[float], ys: list[float]) -> np.ndarray:
    """Edges are inside."""
    found: np.ndarray = (x >= xs[0]) & (x <= xs[1]) & (y >= ys[0]) & (y <= ys[1])
    return found


def inside_lasso(x: np.ndarray, y: np.ndarray, path: np.ndarray) -> np.ndarray:
    """By the even-odd rule: a ray to the right crosses the closed path an odd number of times.

    `path` has shape (corners, 2); fewer than three hold nothing.
    """
    inside = np.zeros(len(x), dtype=bool)
    if len(path) < 3:
        return inside
    low, high = path.min(axis=0), path.max(axis=0)
    near = np.flatnonzero(inside_box(x, y, [low[0], high[0]], [low[1], high[1]]))
    px, py = x[near], y[near]
    odd = np.zeros(len(near), dtype=bool)
    for (x0, y0), (x1, y1) in zip(path, np.roll(path, -1, axis=0), strict=True):
        if y0 == y1:
            continue
        passes = (py >= min(y0, y1)) & (py < max(y0, y1))
        odd ^= passes & (px < x0 + (py - y0) / (y1 - y0) * (x1 - x0))
    inside[near] = odd
    return inside
