"""A map with a panel for each language: the largest on top, the others in rows below it. Pure.

Texts of different languages lie far apart (most embedding models separate them), so that on one
map each language has a corner and most of the picture is empty.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from analysis.map.clusters import WORD, most_common
from analysis.map.function_words import LANGUAGE_NAMES, language_by_script, languages_of

if TYPE_CHECKING:
    import pandas as pd

ENOUGH: Final = 300  # texts of a topic that tell its language
MIN_SHARE: Final = 0.01  # of the map's texts; smaller languages share a panel
PER_ROW: Final = 4  # panels below the largest
GAP = 0.04  # between panels, as a share of the largest one's width
MARGIN = 0.03  # inside a panel, as a share of its sides
LOWEST = 0.4  # a panel's height over its width, at least


class Panel(NamedTuple):
    """A language's place: its corners, in the map's new units."""

    name: str
    left: float
    bottom: float
    width: float
    height: float

    def label(self) -> dict[str, object]:
        """Its name on its upper edge, which no click selects."""
        x, y = self.left + self.width / 2, self.bottom + self.height
        return {"name": self.name, "x": x, "y": y, "panel": True}

    def cells(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Which cells lie inside it, by their middles; shape (cells of x, cells of y)."""
        of_x = (self.left <= x) & (x <= self.left + self.width)
        of_y = (self.bottom <= y) & (y <= self.bottom + self.height)
        return of_x[:, None] & of_y

    def pieces(self) -> np.ndarray:
        """Its frame as lines: (4, 4), x0 y0 x1 y1 each."""
        x0, y0, x1, y1 = self.left, self.bottom, self.left + self.width, self.bottom + self.height
        return np.array([(x0, y0, x1, y0), (x1, y0, x1, y1), (x1, y1, x0, y1), (x0, y1, x0, y0)])


def languages_of_topics(points: "pd.DataFrame") -> dict[str, str]:
    """The language of most texts of each topic; "" where too few words show it.

    By topic, not by text: a text that lies among those of another language stays where it lies.
    """
    if "cluster" not in points:
        return {}
    found = {}
    for name, texts in points.groupby(points["cluster"].astype(str), sort=True)["text"]:
        codes = most_common(Counter(filter(None, map(_languages, islice(texts, ENOUGH)))))
        found[str(name)] = LANGUAGE_NAMES[codes[0]] if codes else ""
    return found


def _languages(text: object) -> tuple[str, ...]:
    found = languages_of(WORD.findall(str(text).casefold()))
    return found or tuple(filter(None, [language_by_script(str(text))]))


def faceted(
    points: "pd.DataFrame", languages: Mapping[str, str]
) -> tuple["pd.DataFrame", list[Panel]]:
    """The points in a panel for each language, and the panels, the largest first.

    Inside a panel distances keep their proportions; those between panels mean nothing. The points
    themselves and no panel where there is one language.
    """
    if "cluster" not in points or points.empty:
        return points, []
    of_point = points["cluster"].astype(str).map(languages).fillna("").to_numpy(dtype=object)
    names, counts = np.unique(of_point[of_point != ""].astype(str), return_counts=True)
    order = sorted(range(len(names)), key=lambda each: (-counts[each], names[each]))
    if len(names) < 2:
        return points, []
    ordered = [str(names[each]) for each in order]
    small = [str(names[each]) for each in order[1:] if counts[each] < MIN_SHARE * len(points)]
    large = [name for name in ordered if name not in small]
    of_point[of_point == ""] = ordered[0]
    if len(small) > 1:
        large.append(f"other languages ({len(small)})")
        of_point[np.isin(of_point.astype(str), small)] = large[-1]
    else:
        large = ordered
    xy = np.array(points[["x", "y"]], dtype=np.float64)  # of its own: a frame's may be read-only
    heaps = [of_point == name for name in large]
    low, high = ([of(xy[heap], axis=0) for heap in heaps] for of in (np.min, np.max))
    sizes = [np.maximum(top - bottom, 1e-9) for bottom, top in zip(low, high, strict=True)]
    panels = _laid_out(large, [float(size[1] / size[0]) for size in sizes])
    for panel, heap, bottom, top, size in zip(panels, heaps, low, high, sizes, strict=True):
        room = np.array([panel.width, panel.height])
        scale = float(((1 - 2 * MARGIN) * room / size).min())
        middle = np.array([panel.left, panel.bottom]) + room / 2
        xy[heap] = middle + scale * (xy[heap] - (bottom + top) / 2)
    return points.assign(x=xy[:, 0].astype(np.float32), y=xy[:, 1].astype(np.float32)), panels


def _laid_out(names: list[str], tallness: list[float]) -> list[Panel]:
    """A panel per name: as wide as there is room, as tall as its heap is, within LOWEST and 1."""
    across = min(PER_ROW, len(names) - 1)
    width = min(0.5, (1 - GAP * (across - 1)) / across)
    height = width * _between(max(tallness[1:]))
    below = [
        Panel(
            name,
            place % across * (width + GAP),
            -(place // across + 1) * (GAP + height),
            width,
            height,
        )
        for place, name in enumerate(names[1:])
    ]
    return [Panel(names[0], 0.0, 0.0, 1.0, _between(tallness[0])), *below]


def _between(tallness: float) -> float:
    return min(1.0, max(LOWEST, tallness))
