"""The map as the browser draws it: places, categories with colours, lines of equal density. Pure.

Every point is sent (10 bytes each) and the browser draws every one, mixing the colours of those
that share a pixel: nothing is sampled, so there is nothing to refine when one zooms in.
"""

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures.figures import CATEGORY_COLOURS, SIGN_COLOURS, sign
from analysis.map.contours import contour_lines, smoothed

if TYPE_CHECKING:
    import pandas as pd

CONTOUR_CELLS, LEVELS = 80, 5


def map_payload(
    points: "pd.DataFrame", colour_by: str = "role", *, contours: bool = False
) -> bytes:
    """The points coloured by `role` (its sign) or another column, as bytes (little-endian).

    `points` has the columns of `analysis.map.coverage.points_table`. First the length of the header
    (uint32) and the header as JSON; then x and y (float32, points each), the lines (float32, x0 y0
    x1 y1 per piece) and the category of each point (uint16, its place in `categories`).
    """
    names = categories_of(points, colour_by)
    order, codes = _ordered(names, colour_by)
    counts = np.bincount(codes, minlength=len(order))
    lines = density_lines(points) if contours else []
    pieces = np.concatenate([each["pieces"] for each in lines] or [np.zeros((0, 4))])
    body = b"".join(
        [
            points["x"].to_numpy("<f4").tobytes(),
            points["y"].to_numpy("<f4").tobytes(),
            pieces.astype("<f4").tobytes(),
            codes.astype("<u2").tobytes(),
        ]
    )
    header = json.dumps(
        {
            "points": len(points),
            "colour": colour_by,
            "categories": [
                {"name": name, "colour": colour, "points": int(count)}
                for (name, colour), count in zip(order.items(), counts, strict=True)
            ],
            "lines": [
                {"name": each["name"], "colour": each["colour"], "pieces": len(each["pieces"])}
                for each in lines
            ],
            "version": hashlib.sha256(body).hexdigest(),
        }
    ).encode()
    header += b" " * (-len(header) % 4)
    return len(header).to_bytes(4, "little") + header + body


def categories_of(points: "pd.DataFrame", colour_by: str) -> np.ndarray:
    """The category by which each point is coloured; – where it has none."""
    if colour_by == "role":
        pairs = points["field"].astype(str) + "\n" + points["role"].astype(str)
        signs = {pair: sign(*pair.split("\n", 1)) for pair in pairs.unique()}
        return pairs.map(signs).to_numpy(dtype=object)
    found: np.ndarray = points[colour_by].astype(object).fillna("–").astype(str).to_numpy(object)
    return found


def density_lines(points: "pd.DataFrame") -> list[dict[str, Any]]:
    """Per corpus its name, colour and lines of equal density (`pieces`, shape (n, 4)): of a
    Gaussian-smoothed histogram, at 1/6 … 5/6 of the corpus's own highest density."""
    if points.empty:
        return []
    xy = points[["x", "y"]].to_numpy(np.float64)
    low, high = xy.min(axis=0), xy.max(axis=0)
    margin = 0.05 * np.maximum(high - low, 1e-9)
    span = [(low[side] - margin[side], high[side] + margin[side]) for side in (0, 1)]
    corpora = points["corpus"].astype(str).to_numpy()
    found = []
    for place, name in enumerate(sorted(set(corpora))):
        here = xy[corpora == name]
        counts, x, y = np.histogram2d(here[:, 0], here[:, 1], bins=CONTOUR_CELLS, range=span)
        density = smoothed(counts)
        top = float(density.max())
        levels = [top * step / (LEVELS + 1) for step in range(1, LEVELS + 1)]
        pieces = [
            contour_lines(density, level, (x[:-1] + x[1:]) / 2, (y[:-1] + y[1:]) / 2)
            for level in levels
        ]
        found.append(
            {
                "name": name,
                "colour": CATEGORY_COLOURS[place % len(CATEGORY_COLOURS)],
                "pieces": np.concatenate(pieces),
            }
        )
    return found


def _ordered(names: np.ndarray, colour_by: str) -> tuple[dict[str, str], np.ndarray]:
    """The colour of each category, in the legend's order, and each point's place in it."""
    found, codes = np.unique(names.astype(str), return_inverse=True)
    there = [str(name) for name in found]
    order = [name for name in SIGN_COLOURS if name in there] if colour_by == "role" else []
    order += [name for name in there if name not in order]
    colours = {
        name: (SIGN_COLOURS.get(name) if colour_by == "role" else None)
        or CATEGORY_COLOURS[place % len(CATEGORY_COLOURS)]
        for place, name in enumerate(order)
    }
    places = np.array([order.index(name) for name in there], dtype=np.int64)
    return colours, places[codes]
