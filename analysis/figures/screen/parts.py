"""What a specification is made of: layers with their data, axes and scales."""

import json
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

import pandas as pd

from analysis.figures.traces import plain_text

INK: Final = "currentColor"  # the page's text colour, in the light and the dark theme
ON_BAR: Final = "#ffffff"
MAX_NAME: Final = 80  # characters; the axis cuts by pixels, too
SIDE_LABEL: Final = 230  # pixels of a name at the left
SLANTED_LABEL: Final = 150
MAX_UPRIGHT: Final = 64  # characters: the names' longest words in one row below the axis
ROOM: Final = 1.35  # of a name below an axis, in widths of its place: its neighbours are shorter
MAX_SLANTED: Final = 16  # names; more stand upright
WORD_LINES: Final = 3
SHORT_LINE: Final = 12  # characters that stand on one line
X_TICK, Y_TICK = 80, 45  # pixels between ticks
MANY_TICKS: Final = 40
FEW: Final = {1: (0, 1.2), 2: (0.5, 0.5), 3: (0.35, 0.3)}  # space between and beside few bars
Channel = dict[str, Any]


class Parts:
    """The layers of a figure and the data they read."""

    def __init__(self) -> None:
        self.datasets: dict[str, pd.DataFrame] = {}
        self.layers: list[dict[str, Any]] = []

    def add(self, name: str, rows: Sequence[Mapping[str, Any]], layer: Mapping[str, Any]) -> None:
        """Add a layer that reads these rows; nothing without rows."""
        if rows:
            self.datasets[name] = pd.DataFrame(rows)
            self.layers.append({"data": {"name": name}, **layer})


def names_literal(names: Sequence[str | list[str]]) -> str:
    """The names as an expression that gives the one of a category's number."""
    return f"{json.dumps(list(names))}[datum.value]"


def shown_name(name: Any) -> str:
    """A name in one line, cut where it is too long for an axis or a legend."""
    text = " ".join(str(name).split())
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 1]}…"


def category_axis(
    names: Sequence[str],
    layout: Mapping[str, Any],
    *,
    is_side: bool,
    headings: Sequence[int] = (),
    is_slanted: bool = False,
) -> Channel:
    """The channel `place` of categories, at the left or below; `headings` are in bold."""
    shown = [shown_name(name) for name in names]
    title = axis_title(layout)
    axis: dict[str, Any] = {
        "title": title,
        "labelOverlap": False,
        "labelFlush": False,
        "grid": False,
        "ticks": False,
        "description": ": ".join(filter(None, (title, ", ".join(shown)))),
    }
    if is_side:
        axis |= {"labelExpr": names_literal(shown), "labelLimit": SIDE_LABEL}
    elif is_slanted or longest_words(shown) > MAX_UPRIGHT:
        axis |= {"labelExpr": names_literal(shown), "labelLimit": SLANTED_LABEL}
        angle = -35 if len(shown) <= MAX_SLANTED else -90
        axis |= {"labelAngle": angle, "labelAlign": "right", "labelBaseline": "middle"}
    else:
        axis |= {"labelExpr": names_literal([in_lines(name) for name in shown]), "labelAngle": 0}
        axis |= {"labelLimit": {"expr": f"max(30, {ROOM} * width / {max(1, len(shown))})"}}
    if headings:
        test = f"indexof({list(headings)}, datum.value) >= 0"
        axis["labelFontWeight"] = {"condition": {"test": test, "value": 600}, "value": 400}
    few = (0.2, 0.2) if is_side else FEW.get(len(shown), (0.15, 0.15))
    scale: dict[str, Any] = {"domain": list(range(len(shown)))}
    scale |= {"paddingInner": few[0], "paddingOuter": few[1]}
    if is_side and layout.get("autorange") != "reversed":
        scale["reverse"] = True
    return {"field": "place", "type": "ordinal", "axis": axis, "scale": scale}


def longest_words(names: Sequence[str]) -> int:
    """The width of the names below an axis if each is broken between words, in characters."""
    longest = max((len(word) for name in names for word in name.split()), default=0)
    return len(names) * longest


def in_lines(name: str) -> list[str]:
    """The name in up to three lines, broken between words."""
    width = max(SHORT_LINE, -(-len(name) // WORD_LINES) + 2)
    return wrap(name, width, break_long_words=False, break_on_hyphens=False) or [""]


def value_axis(
    field: str, layout: Mapping[str, Any], *, every: int, is_ruled: bool = True, **scale: Any
) -> Channel:
    """The channel of a number, with the range, direction and ticks of its axis.

    A tick stands every so many pixels; `is_ruled` axes have lines across the figure.
    """
    side = "height" if every == Y_TICK else "width"
    axis: dict[str, Any] = {
        "title": axis_title(layout),
        "grid": is_ruled,
        "labelFlush": False,
        "format": layout.get("tickformat") or ",.6~g",
        "tickCount": {"expr": f"max(2, ceil({side} / {every}))"},
    }
    if layout.get("dtick"):
        axis |= {"tickMinStep": layout["dtick"], "tickCount": MANY_TICKS}
    if layout.get("range") is not None:
        scale |= {"domain": list(layout["range"]), "nice": False, "zero": False}
    if layout.get("autorange") == "reversed":
        scale["reverse"] = True
    return {"field": field, "type": "quantitative", "axis": axis, "scale": scale}


def axis_title(layout: Mapping[str, Any]) -> str | None:
    """The title of an axis; None for none."""
    return plain_text((layout.get("title") or {}).get("text")) or None


def tooltip(field: str = "about") -> Channel:
    """The text at the pointer and for screen readers."""
    return {"field": field, "type": "nominal"}


def coloured(field: str = "colour") -> Channel:
    """A colour that the data names."""
    return {"field": field, "type": "nominal", "scale": None, "legend": None}
