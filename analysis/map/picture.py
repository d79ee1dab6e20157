"""The map as the browser draws it: places, categories, lines of equal density, hover texts. Pure.

Every point is sent (10 bytes each) and the browser draws every one, mixing the colours of those
that share a pixel: nothing is sampled, so there is nothing to refine when one zooms in.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analysis.figures.figures import CATEGORY_COLOURS, SHADES
from analysis.map.density import CELLS, contour_lines, density_lines
from analysis.map.difference import (
    COLOURS,
    FLOOR,
    VERDICTS,
    Difference,
    Layers,
    density_difference,
)

if TYPE_CHECKING:
    import pandas as pd

    from analysis.map.facets import Panel

EDGE_COLOUR: Final = "#808080"
FRAME_COLOURS = ("#7a8788", "#b5742a", "#5a6fae", "#7d5aa0", "#4c8a5f")


def map_payload(
    points: "pd.DataFrame",
    colour_by: str = "role",
    *,
    contours: bool = False,
    layers: Layers | None = None,
    panels: "Sequence[Panel]" = (),
) -> bytes:
    """The points coloured by `role` (its sign) or another column, as bytes (little-endian).

    `points` has the columns of `analysis.map.coverage.points_table`; `layers`: the two whose
    densities are compared; `panels` are framed by lines. First the length of the header (uint32)
    and the header as JSON; then x and y (float32, points each), the lines (float32, x0 y0 x1 y1 per
    piece), the cells of the difference (float32, row by row of x; none without `layers`) and the
    category of each point (uint16, its place in `categories`).
    """
    order, codes = _ordered(points, colour_by)
    counts = np.bincount(codes, minlength=len(order))
    lines = [
        each | {"name": f"density of {each['name']}"}
        for each in (density_lines(points) if contours else [])
    ]
    lines += [
        {"name": f"panel of {panel.name}", "colour": FRAME_COLOURS[place % len(FRAME_COLOURS)]}
        | {"pieces": panel.pieces()}
        for place, panel in enumerate(panels)
    ]
    difference = density_difference(points, *layers) if layers else None
    if difference and panels:
        difference = _within(panels, difference)
    veil, cells = _veil(difference, layers)
    if difference and layers == VERDICTS and difference.is_clear.any():
        edges = contour_lines(1.0 * difference.is_clear, 0.5, *difference.grid.centres())
        lines.append({"name": "beyond chance", "colour": EDGE_COLOUR, "pieces": edges})
    pieces = np.concatenate([each["pieces"] for each in lines] or [np.zeros((0, 4))])
    body = b"".join(
        [
            points["x"].to_numpy("<f4").tobytes(),
            points["y"].to_numpy("<f4").tobytes(),
            pieces.astype("<f4").tobytes(),
            cells.astype("<f4").tobytes(),
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
            "labels": [panel.label() for panel in panels] + labels_of(points),
            "difference": veil,
            "version": hashlib.sha256(body).hexdigest(),
        }
    ).encode()
    header += b" " * (-len(header) % 4)
    return len(header).to_bytes(4, "little") + header + body


def categories_of(points: "pd.DataFrame", colour_by: str) -> np.ndarray:
    """The category by which each point is coloured; – where it has none."""
    column = points["sign" if colour_by == "role" else colour_by]
    found: np.ndarray = column.astype(object).fillna("–").astype(str).to_numpy(object)
    return found


def labels_of(points: "pd.DataFrame") -> list[dict[str, Any]]:
    """Per cluster its name, the median of its points and how many they are; largest first.

    The clusters are cells around means, so that the median lies inside.
    """
    if "cluster" not in points or points.empty:
        return []
    by_name = points.groupby(points["cluster"].astype(str), sort=True)[["x", "y"]]
    middles, sizes = by_name.median(), by_name.size()
    found = [
        {"name": name, "x": float(x), "y": float(y), "points": int(sizes[name])}
        for name, x, y in zip(middles.index, middles["x"], middles["y"], strict=True)
    ]
    return sorted(found, key=lambda each: (-each["points"], each["name"]))


def _within(panels: "Sequence[Panel]", found: Difference) -> Difference:
    """The difference without what a density spreads beyond the panels."""
    inside = np.any([panel.cells(*found.grid.centres()) for panel in panels], axis=0)
    return found._replace(
        shares=np.where(inside, found.shares, np.nan), is_clear=found.is_clear & inside
    )


def _veil(
    found: Difference | None, layers: Layers | None
) -> tuple[dict[str, Any] | None, np.ndarray]:
    """The header of a difference and its cells: of two corpora -1 to 1, 0 where chance would do; of
    the kept groups their share, 0 to 1, NaN where too few texts lie.
    """
    if found is None or layers is None:
        return None, np.zeros((0, 0))
    clear = np.where(found.is_clear, found.values, 0.0)
    header = {
        "cells": CELLS,
        "x": [float(found.grid.x[0]), float(found.grid.x[-1])],
        "y": [float(found.grid.y[0]), float(found.grid.y[-1])],
        "layers": layers.legend,
        "colours": list(COLOURS),
        "clear": [int((clear > 0).sum()), int((clear < 0).sum())],
        "shares": None,
    }
    if layers != VERDICTS:
        highest = float(np.abs(clear).max())
        return header, clear / highest if highest else clear
    there = found.shares[~np.isnan(found.shares)]
    low, high = (float(of(there, initial=found.whole)) for of in (np.min, np.max))
    header |= {
        "shares": [low, found.whole, high],
        "layers": [f"{100 * high:.0f} % kept", f"{100 * low:.0f} % kept"],
        "places": there.size,
        "floor": FLOOR,
    }
    return header, found.shares


def coloured(points: "pd.DataFrame", colour_by: str) -> dict[str, str]:
    """The colour of each category, in the legend's order."""
    signs = sign_colours(points, SHADES) if colour_by == "role" else {}
    column = "sign" if colour_by == "role" else colour_by
    there = categories_of(points[[column]].drop_duplicates(), colour_by)
    order = [*signs, *sorted(set(map(str, there)) - signs.keys())]
    return {
        name: signs.get(name) or CATEGORY_COLOURS[place % len(CATEGORY_COLOURS)]
        for place, name in enumerate(order)
    }


def sign_colours(points: "pd.DataFrame", shades: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """A colour for every sign of a shape, field by field: the n-th text of a field in its n-th
    shade. Signs of no shape have none."""
    families = list(shades)
    drawn = points[["field", "shade", "sign"]].drop_duplicates().itertuples(index=False)
    found: dict[str, str] = {}
    for family, shade, sign in sorted(
        (families.index(field), shade, str(sign))
        for field, shade, sign in drawn
        if shade >= 0 and field in families
    ):
        colours = shades[families[family]]
        found.setdefault(sign, colours[shade % len(colours)])
    return found


def _ordered(points: "pd.DataFrame", colour_by: str) -> tuple[dict[str, str], np.ndarray]:
    """The colour of each category, in the legend's order, and each point's place in it."""
    names = categories_of(points, colour_by)
    found, codes = np.unique(names.astype(str), return_inverse=True)
    colours = coloured(points, colour_by)
    order = list(colours)
    places = np.array([order.index(str(name)) for name in found], dtype=np.int64)
    return colours, places[codes]


MAX_CHARACTERS: Final = 110  # characters of each text of a triplet


def point_hover(points: "pd.DataFrame", row: int) -> dict[str, Any]:
    """`sign`, `corpus` and `group` (or none) of the point in this row, and the lines beneath: sign
    and text of each part of the triplet it belongs to, of a text without a group itself."""
    point = points.iloc[row]
    mine, beside = str(point["sign"]), str(point["beside"])
    group = None if point["group_id"] != point["group_id"] else point["group_id"]
    hover: dict[str, Any] = {"sign": mine, "corpus": str(point["corpus"]), "group": None}
    if group is None or not beside:
        return {**hover, "lines": [["", str(point["text"])]]}
    mates = points[(points["group_id"] == group) & (points["corpus"] == point["corpus"])]
    texts = dict(zip(mates["sign"].astype(str), mates["text"].astype(str), strict=True))
    texts[mine] = str(point["text"])
    lines = [[each, _start(texts[each])] for each in beside.split("\n") if each in texts]
    return {**hover, "group": int(group), "lines": lines}


def _start(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
