"""A figure as a file to print: SVG, PDF or PNG, drawn by matplotlib from Plotly's. Pure.

The pages' figures are Plotly's; this reads the traces that they use (bars, lines and points,
matrices, flows) and raises BadInput for another one, so that nothing is left out unseen. Fonts are
in the file: as outlines in SVG, as TrueType (type 42) in PDF, which publishers ask for. PNG has 300
dots per inch. The same figure gives the same bytes. A character that the font does not have is
written as its code point (`U+4E2D`), and a name of more than 60 characters is cut, or in a flow
continued in the next line. The figure's description, if it has one, is the file's title.

matplotlib is loaded when a file is asked for, not with the page.
"""

import io
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import cycle
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import plotly.graph_objects as go

from analysis.figures.figures import CATEGORY_COLOURS
from analysis.figures.traces import (
    categories,
    listed,
    named_values,
    places_of,
    reach_of,
    rows_of,
    unmarked,
)
from db.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS: Final = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}
DOTS_PER_INCH: Final = 300
FLOW_GAP: Final = 0.06  # between two places of a flow, of the highest one
FLOW_WIDTH: Final = 0.05  # of a place, of the distance between two columns
MAX_LINE: Final = 60  # characters
WIDTH: Final = 6.75  # inches: both columns of a page
PIXELS: Final = 100.0  # of a Plotly figure's height, per inch
SETTINGS: Final[dict[str, Any]] = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "inf-studio",  # ids in the file, which are random without it
    "font.size": 8.0,
    "axes.titlesize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "text.parse_math": False,  # names are text: `$` is a dollar sign
}
MARKERS: Final = {"circle": "o", "circle-open": "o", "diamond": "D", "square": "s"}
DASHES: Final = {"dot": ":", "dash": "--", "dashdot": "-."}
UNPRINTED: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


def printed(figure: go.Figure, kind: str) -> bytes:
    """The figure as a file of this kind (`svg`, `pdf` or `png`). Raises BadInput for a trace that
    cannot be drawn."""
    described = figure.to_plotly_json()
    whole = new_figure((described["layout"].get("height") or 340) / PIXELS)
    draw_on(whole.add_subplot(), described["data"], described["layout"])
    return saved(whole, kind, title=described["layout"].get("meta"))


def new_figure(height: float, width: float = WIDTH) -> "Figure":
    """An empty figure in the printed style, in inches."""
    found: Figure = _styled_figures()(figsize=(width, height), layout="constrained")
    return found


def saved(
    figure: "Figure", kind: str, dots_per_inch: int = DOTS_PER_INCH, title: str | None = None
) -> bytes:
    """The bytes of a file of this kind with its title; without the time at which it was made."""
    if kind not in KINDS:
        raise BadInput(
            f"{kind!r}: choose {', '.join(KINDS)}", "name one of these", code="figure_kind_unknown"
        )
    date = {"svg": "Date", "pdf": "CreationDate"}.get(kind)
    about: dict[str, str | None] = {} if date is None else {date: None}
    about |= {"Title": UNPRINTED.sub(" ", title)} if title else {}
    sink = io.BytesIO()
    figure.savefig(sink, format=kind, dpi=dots_per_inch, metadata=about)
    return sink.getvalue()


@cache
def _styled_figures() -> Any:
    """The class of figures; the style is the process's, as nothing else here uses matplotlib."""
    import matplotlib
    from matplotlib.figure import Figure

    style: Any = matplotlib.rcParams
    style.update(SETTINGS)
    return Figure


def draw_on(axes: "Axes", traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any]) -> None:
    """Draw Plotly's traces with its layout on these axes."""
    bars = [trace for trace in traces if trace["type"] == "bar"]
    _draw_bars(axes, bars, layout)
    colours = cycle(CATEGORY_COLOURS)
    for trace in traces:
        if trace["type"] == "scatter":
            _draw_points(axes, trace, next(colours), places_of(bars))
        elif trace["type"] == "heatmap":
            _draw_matrix(axes, trace)
        elif trace["type"] == "sankey":
            _draw_flow(axes, trace)
        elif trace["type"] != "bar":
            raise BadInput(
                f"a figure with {trace['type']!r} cannot be saved as a file",
                "save it from the browser",
                code="figure_not_printable",
            )
    _draw_frame(axes, traces, layout)


def _draw_bars(axes: "Axes", bars: Sequence[Mapping[str, Any]], layout: Mapping[str, Any]) -> None:
    """Bars side by side, or on each other with `barmode` stack; None is left out."""
    places = places_of(bars)
    is_stacked = layout.get("barmode") == "stack"
    thickness = 0.8 if is_stacked else 0.8 / max(1, len(bars))
    foot = dict.fromkeys(places, 0.0)
    for number, trace in enumerate(bars):
        is_flat = trace.get("orientation") == "h"
        names, values = named_values(trace)
        shift = 0.0 if is_stacked else (number - (len(bars) - 1) / 2) * thickness
        colours = trace.get("marker", {}).get("color")
        for each, (name, value) in enumerate(zip(names, values, strict=True)):
            if value is None:
                continue
            draw = axes.barh if is_flat else axes.bar
            draw(
                places[name] + shift,
                value,
                thickness,
                foot[name] if is_stacked else 0.0,
                color=colours if isinstance(colours, str) else colours[each] if colours else None,
                label=_plain(trace.get("name")) if each == 0 else None,
            )
            foot[name] += value if is_stacked else 0.0
            _draw_error(axes, trace, each, (places[name] + shift, value), is_flat=is_flat)
            _draw_bar_text(axes, trace, each, (places[name] + shift, value), is_flat=is_flat)
    if places:
        is_flat = any(bar.get("orientation") == "h" for bar in bars)
        axis, limit = (axes.yaxis, axes.set_ylim) if is_flat else (axes.xaxis, axes.set_xlim)
        axis.set_ticks(list(places.values()), [_plain(name) for name in places])
        limit(-0.5, len(places) - 0.5)  # a category without a value keeps its place


def _draw_error(
    axes: "Axes", trace: Mapping[str, Any], each: int, at: tuple[float, float], *, is_flat: bool
) -> None:
    """The interval of a bar or a point; nothing without one."""
    for side in ("error_y", "error_x"):
        reach = reach_of(trace.get(side), each)
        if reach is None:
            continue
        place, value = at
        spread = [[reach[0]], [reach[1]]]
        x, y = (value, place) if is_flat else (place, value)
        is_across = is_flat or side == "error_x"
        axes.errorbar(
            x,
            y,
            xerr=spread if is_across else None,
            yerr=None if is_across else spread,
            color="#333333",
            linewidth=0.8,
            capsize=2,
        )


def _draw_bar_text(
    axes: "Axes", trace: Mapping[str, Any], each: int, at: tuple[float, float], *, is_flat: bool
) -> None:
    texts = listed(trace.get("text"))
    if not texts:
        return
    place, value = at
    inside = trace.get("insidetextanchor") == "start"
    length = 0.0 if inside else value
    x, y = (length, place) if is_flat else (place, length)
    axes.annotate(
        _plain(texts[each]),
        (x, y),
        xytext=(3, 0) if is_flat else (0, 3),
        textcoords="offset points",
        ha="left" if is_flat else "center",
        va="center" if is_flat else "bottom",
        color="white" if inside else "#333333",
    )


def _draw_points(
    axes: "Axes", trace: Mapping[str, Any], colour: str, places: Mapping[str, float]
) -> None:
    """Points, lines or both; at the bars' places where the figure has bars."""
    x, y = listed(trace.get("x")), categories(trace.get("y"))
    if places and y and all(str(name) in places for name in y):
        y = [places[str(name)] for name in y]
    marker, line = trace.get("marker") or {}, trace.get("line") or {}
    mode = trace.get("mode") or "lines+markers"
    colour = line.get("color") or marker.get("color") or colour
    symbol = marker.get("symbol", "circle")
    symbols = [symbol] * len(y) if isinstance(symbol, str) else listed(symbol)
    for number, one in enumerate(dict.fromkeys(symbols)):
        axes.plot(
            x,
            [
                float("nan") if value is None or of != one else value
                for value, of in zip(y, symbols, strict=True)
            ],
            color=colour,
            linestyle=DASHES.get(line.get("dash", ""), "-") if "lines" in mode else "none",
            marker=MARKERS.get(one, "o") if "markers" in mode else "",
            markerfacecolor="none" if one.endswith("-open") else colour,
            markersize=4,
            linewidth=1.2,
            label="" if number else _plain(trace.get("name")),
        )
    for each, value in enumerate(y):
        if value is not None:
            _draw_error(axes, trace, each, (x[each], value), is_flat=False)
    if "text" in mode:
        for each, text in enumerate(listed(trace.get("text"))):
            at = (x[each], y[each])
            axes.annotate(_plain(text), at, xytext=(4, 4), textcoords="offset points")


def _draw_matrix(axes: "Axes", trace: Mapping[str, Any]) -> None:
    """A matrix with its texts; an undefined cell stays empty."""
    values = np.array(
        [[np.nan if cell is None else cell for cell in row] for row in rows_of(trace["z"])],
        dtype=float,
    )
    if not values.size:
        return
    is_two_sided = trace.get("zmid") == 0
    axes.imshow(
        values,
        cmap="RdBu" if is_two_sided else "Blues",
        vmin=trace.get("zmin"),
        vmax=trace.get("zmax"),
        aspect="auto",
    )
    texts = rows_of(trace["text"]) if trace.get("text") is not None else values
    known = values[~np.isnan(values)]
    low, high = trace.get("zmin", known.min(initial=0)), trace.get("zmax", known.max(initial=0))
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            share = 0.5 if high == low or np.isnan(value) else (value - low) / (high - low)
            is_dark = abs(share - 0.5) > 0.35 if is_two_sided else share > 0.55
            shown = texts[row][column]
            label = f"{shown:g}" if isinstance(shown, float) else _plain(shown)
            colour = "white" if is_dark else "#222222"
            axes.text(column, row, label, ha="center", va="center", color=colour)
    x, y = listed(trace["x"]), listed(trace["y"])
    axes.set_xticks(range(len(x)), [_plain(name) for name in x], rotation=30, ha="right")
    axes.set_yticks(range(len(y)), [_plain(name) for name in y])
    axes.grid(visible=False)


def _draw_flow(axes: "Axes", trace: Mapping[str, Any]) -> None:
    """A Sankey diagram: places in columns by the number of streams before them, each as high as
    what passes it, and the streams as bands. Its links are in the order of the places. Names are
    whole, in lines."""
    node, link = trace["node"], trace["link"]
    streams = list(zip(link["source"], link["target"], link["value"], link["color"], strict=True))
    places = range(len(node["label"]))
    names = [
        wrap(_in_font(unmarked(each).replace("\u200b", "").strip()), MAX_LINE)
        for each in node["label"]
    ]
    passes = [
        max(sum(e[2] for e in streams if e[side] == place) for side in (0, 1)) for place in places
    ]
    column = dict.fromkeys(places, 0)
    for _ in places:
        for start, end, *_rest in streams:
            column[end] = max(column[end], column[start] + 1)
    gap, width = FLOW_GAP * max(passes, default=0), FLOW_WIDTH
    top, foot = dict[int, float](), dict.fromkeys(column.values(), 0.0)
    for place in places:
        top[place] = foot[column[place]]
        foot[column[place]] += passes[place] + gap * max(1, len(names[place]))
    left, right = dict(top), dict(top)  # how far the sides of a place are taken
    for start, end, value, colour in streams:
        x = np.linspace(column[start] + width, column[end], 40)
        share = (1 - np.cos(np.linspace(0, np.pi, 40))) / 2
        y = right[start] + (left[end] - right[start]) * share
        axes.fill_between(x, y, y + value, color=_solid(colour), linewidth=0)
        right[start] += value
        left[end] += value
    for place in places:
        at, middle = column[place], top[place] + passes[place] / 2
        axes.bar(at, passes[place], width, top[place], align="edge", color=node["color"][place])
        label, beside = "\n".join(names[place]), (at + width, middle)
        axes.annotate(label, beside, (3, 0), textcoords="offset points", va="center")
    axes.set_xlim(0, max(column.values(), default=0) + 1)
    axes.set_ylim(max(foot.values(), default=1), -gap)
    axes.set_axis_off()


def _solid(colour: str) -> tuple[float, ...]:
    """A colour that Plotly writes as rgba(0,114,178,0.35)."""
    red, green, blue, opacity = map(float, colour[len("rgba(") : -1].split(","))
    return red / 255, green / 255, blue / 255, opacity


def _draw_frame(
    axes: "Axes", traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any]
) -> None:
    """Titles, ranges, the legend and the notes on what is undefined."""
    x, y = layout.get("xaxis") or {}, layout.get("yaxis") or {}
    axes.set_xlabel(_plain((x.get("title") or {}).get("text")))
    axes.set_ylabel(_plain((y.get("title") or {}).get("text")))
    if x.get("range") is not None:
        axes.set_xlim(*x["range"])
    if y.get("range") is not None:
        axes.set_ylim(*y["range"])
    for axis, described in ((axes.xaxis, x), (axes.yaxis, y)):
        if described.get("tickvals") is not None:
            axis.set_ticks(described["tickvals"], [_plain(each) for each in described["ticktext"]])
    if x.get("zeroline"):
        axes.axvline(0, color="#999999", linewidth=0.8)
    if y.get("autorange") == "reversed" and not axes.yaxis_inverted():
        axes.invert_yaxis()
    if layout.get("showlegend", len(traces) > 1) and axes.get_legend_handles_labels()[1]:
        axes.figure.legend(loc="outside lower center", ncols=3)
    notes = [_plain(each.get("text")) for each in layout.get("annotations") or ()]
    title = _plain((layout.get("title") or {}).get("text"))
    axes.set_title("\n".join([title] * bool(title) + notes), loc="left", fontsize=7 if notes else 9)


def _plain(text: Any) -> str:
    """A text of Plotly's, which reads a little HTML, as matplotlib shows it."""
    if text is None:
        return ""
    return printable(unmarked(text))


def printable(text: str) -> str:
    """The text in characters of the font, its lines cut."""
    return "\n".join(
        line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"
        for line in _in_font(text).split("\n")
    )


def _in_font(text: str) -> str:
    letters = _letters()
    return "".join(
        each if each == "\n" or each in letters else f"U+{ord(each):04X}"
        for each in UNPRINTED.sub(" ", text)
    )


@cache
def _letters() -> frozenset[str]:
    """The characters of matplotlib's own font."""
    from matplotlib.font_manager import findfont, get_font

    return frozenset(map(chr, get_font(findfont("DejaVu Sans")).get_charmap()))
