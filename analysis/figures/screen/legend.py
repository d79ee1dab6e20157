"""The legend of a figure: a layer of its own that draws no mark."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis.figures.screen.parts import names_literal, shown_name
from analysis.figures.screen.series import DASHES, Series, is_legend_shown, series_of
from analysis.figures.traces import unmarked

SYMBOLS: Final = {"bar": "square", "scatter": "circle"}
COLUMN: Final = 40  # pixels beside the name
LETTER: Final = 6.4  # pixels of a letter, about
MAX_NAME: Final = 32  # letters of a legend's column
Layer = tuple[list[dict[str, Any]], dict[str, Any]]


def legend_layer(traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any]) -> Layer | None:
    """A row per trace and the layer with their legend; None where none is shown."""
    series = series_of(traces)
    if not is_legend_shown(traces, layout):
        return None
    names = [shown_name(unmarked(each.name)) for each in series]
    numbers = list(range(len(series)))
    longest = min(MAX_NAME, max(map(len, names)))
    legend: dict[str, Any] = {
        "title": None,
        "orient": "bottom",
        "direction": "horizontal",
        "labelExpr": names_literal(names),
        "labelLimit": round(MAX_NAME * LETTER),
        "columns": {"expr": f"max(1, floor(width / {longest * LETTER + COLUMN:g}))"},
        "symbolOpacity": 1,
        "description": ", ".join(names),
    }

    def channel(values: list[Any]) -> dict[str, Any]:
        return {
            "field": "series",
            "type": "nominal",
            "scale": {"domain": numbers, "range": values},
            "legend": legend,
        }

    encoding = {
        "color": channel([each.colour for each in series]),
        "shape": channel([_symbol(each) for each in series]),
    }
    mark = {"type": "point", "filled": True, "opacity": 0, "tooltip": None, "aria": False}
    if all(each.is_line for each in series):
        encoding = {
            "color": encoding["color"],
            "strokeDash": channel([DASHES.get(each.dash, [1, 0]) for each in series]),
        }
        mark = {"type": "line", "opacity": 0, "tooltip": None, "aria": False}
        legend |= {"symbolType": "stroke", "symbolStrokeWidth": 2.5}
    return [{"series": number} for number in numbers], {"mark": mark, "encoding": encoding}


def _symbol(each: Series) -> str:
    return each.symbol if each.kind == "scatter" else SYMBOLS["bar"]
