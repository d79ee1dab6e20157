"""The traces of a figure as series: name, colour, symbol and dash."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Final

from analysis.figures.figures import CATEGORY_COLOURS

DASHES: Final = {"dot": [2, 3], "dash": [6, 4], "dashdot": [6, 3, 2, 3]}


@dataclass(frozen=True)
class Series:
    """A trace as its legend shows it."""

    name: str
    kind: str
    colour: str
    symbol: str
    dash: str
    is_line: bool


def series_of(traces: Sequence[Mapping[str, Any]]) -> list[Series]:
    """A series per trace, in order; one without a colour has the next of the palette."""
    palette = cycle(CATEGORY_COLOURS)
    return [_series(trace, next(palette)) for trace in traces]


def _series(trace: Mapping[str, Any], colour: str) -> Series:
    marker, line = trace.get("marker") or {}, trace.get("line") or {}
    colours = line.get("color") or marker.get("color") or colour
    is_scatter = trace["type"] == "scatter"
    return Series(
        str(trace.get("name") or ""),
        trace["type"],
        colours if isinstance(colours, str) else next(iter(colours), colour),
        str(marker.get("symbol") or "circle").removesuffix("-open"),
        str(line.get("dash") or ""),
        is_scatter and "lines" in (trace.get("mode") or "lines+markers"),
    )


def is_legend_shown(traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any]) -> bool:
    """Whether the figure has a legend: as its layout says, or with several traces."""
    return bool(traces) and bool(layout.get("showlegend", len(traces) > 1))
