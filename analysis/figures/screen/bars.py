"""Bars, side by side or stacked, with intervals, texts and points on them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis.figures.screen.parts import (
    INK,
    ON_BAR,
    X_TICK,
    Y_TICK,
    Channel,
    Parts,
    category_axis,
    coloured,
    tooltip,
    value_axis,
)
from analysis.figures.screen.series import series_of
from analysis.figures.traces import (
    categories,
    hover_text,
    interval,
    listed,
    named_values,
    number_text,
    places_of,
    plain_text,
    two_levels,
    unmarked,
)

Trace = Mapping[str, Any]
ROOM: Final = 0.14  # of the axis, for a text at the end of a bar
MAX_TEXTS: Final = 20  # on upright bars; more do not fit beside each other
LARGE: Final = 10_000  # from here on, 10k: beside narrow figures numbers take the bars' room
POINT_SIZE: Final = 80  # square pixels


def draw_bars(traces: Sequence[Trace], layout: Mapping[str, Any]) -> Parts:
    """The layers of a figure with bars; a value of None is left out."""
    bars = [trace for trace in traces if trace["type"] == "bar"]
    is_flat = any(bar.get("orientation") == "h" for bar in bars)
    axes = _Axes(bars, layout, is_flat=is_flat)
    parts, rows = Parts(), _bar_rows(bars, axes, is_stacked=layout.get("barmode") == "stack")
    _place_texts(rows, axes)
    axes.is_whole = all(isinstance(row["to"], int) for row in rows)
    axes.is_large = any(abs(row["to"]) >= LARGE for row in rows)
    ends = axes.ends("from", "to")
    bar = {"type": "bar", "cornerRadiusEnd": 2} if len(bars) == 1 else {"type": "bar"}
    parts.add(
        "bars",
        rows,
        {
            "mark": bar,
            "encoding": axes.place()
            | ends
            | {"color": coloured(), "tooltip": tooltip(), "description": tooltip()},
        },
    )
    _add_intervals(parts, [row for row in rows if row["low"] is not None], axes)
    has_room = axes.is_flat or len(rows) <= MAX_TEXTS
    _add_texts(parts, [row for row in rows if row["text"] and has_room], axes)
    _add_points(parts, traces, axes)
    return parts


class _Axes:
    """Where the categories and the values of the bars stand."""

    def __init__(self, bars: Sequence[Trace], layout: Mapping[str, Any], *, is_flat: bool) -> None:
        self.is_flat = is_flat
        self.names, self.places, self.headings = _categories(bars)
        self.category, self.value = ("y", "x") if is_flat else ("x", "y")
        self.category_layout = layout.get(f"{self.category}axis") or {}
        self.value_layout = layout.get(f"{self.value}axis") or {}
        self.groups = 1 if layout.get("barmode") == "stack" else len(bars)
        self.scale: dict[str, Any] = {"zero": True}
        self.is_whole = self.is_large = False

    def place(self) -> dict[str, Channel]:
        """The channels that put a mark at its category, and at its bar in a group."""
        found = {
            self.category: category_axis(
                self.names, self.category_layout, is_side=self.is_flat, headings=self.headings
            )
        }
        if self.groups > 1:
            offset = {"field": "series", "type": "ordinal"}
            found[f"{self.category}Offset"] = offset | {
                "scale": {"domain": list(range(self.groups))}
            }
        return found

    def ends(self, start: str, end: str) -> dict[str, Channel]:
        """The channels of a mark that goes from one number to another."""
        return {**self.at(end), f"{self.value}2": {"field": start}}

    def at(self, field: str) -> dict[str, Channel]:
        """The channel of a number."""
        every = X_TICK if self.is_flat else Y_TICK
        found = value_axis(field, self.value_layout, every=every, **self.scale)
        found["axis"] |= {"tickMinStep": 1} if self.is_whole else {}
        found["axis"] |= {"format": "~s"} if self.is_large else {}
        return {self.value: found}


def _categories(bars: Sequence[Trace]) -> tuple[list[str], dict[str, int], list[int]]:
    """The rows of the axis, the row of each category, and which rows are headings of others."""
    names: list[str] = []
    places: dict[str, int] = {}
    headings: list[int] = []
    for bar in bars:
        given = listed(bar.get("y") if bar.get("orientation") == "h" else bar.get("x"))
        levels = two_levels(given)
        for name in places_of([bar]) if levels is None else ():
            if name not in places:
                places[name] = len(names)
                names.append(unmarked(name))
        for outer, inner in levels or ():
            if unmarked(outer) not in [names[place] for place in headings]:
                headings.append(len(names))
                names.append(unmarked(outer))
            if f"{outer}: {inner}" not in places:
                places[f"{outer}: {inner}"] = len(names)
                names.append(unmarked(inner))
    return names, places, headings


def _bar_rows(bars: Sequence[Trace], axes: _Axes, *, is_stacked: bool) -> list[dict[str, Any]]:
    """A row per bar that has a value."""
    rows: list[dict[str, Any]] = []
    foot: dict[str, float] = dict.fromkeys(axes.places, 0)
    for number, (bar, series) in enumerate(zip(bars, series_of(bars), strict=True)):
        names, values = named_values(bar)
        colours = (bar.get("marker") or {}).get("color") or series.colour
        for each, (name, value) in enumerate(zip(names, values, strict=True)):
            if value is None:
                continue
            row = _bar_row(bar, each, (name, value), axes)
            row |= {"place": axes.places[name], "series": number}
            row["colour"] = colours if isinstance(colours, str) else colours[each]
            row["from"] = foot[name] if is_stacked else 0
            row["to"] = row["from"] + value
            foot[name] = row["to"]
            rows.append(row)
    return rows


def _bar_row(bar: Trace, each: int, at: tuple[str, Any], axes: _Axes) -> dict[str, Any]:
    """The interval and the texts of a bar."""
    ends = interval(bar.get(f"error_{axes.value}"), each, at[1])
    texts = listed(bar.get("text"))
    return {
        "low": None if ends is None else ends[0],
        "high": None if ends is None else ends[1],
        "about": _about(bar, each, at, ends, is_flat=axes.is_flat),
        "text": plain_text(texts[each]) if texts else "",
        "at_foot": bar.get("insidetextanchor") == "start",
    }


def _about(
    bar: Trace, each: int, at: tuple[str, Any], ends: tuple[Any, Any] | None, *, is_flat: bool
) -> str:
    """The text at the pointer: of the trace, or its category, value and interval."""
    name, value = at
    if bar.get("hovertemplate"):
        x, y = (value, name) if is_flat else (name, value)
        given = listed(bar.get("customdata"))
        return hover_text(bar, x=x, y=y, customdata=given[each] if given else None)
    lines = [plain_text(bar.get("name")), unmarked(name)]
    spread = "" if ends is None else f" [{number_text(ends[0])}, {number_text(ends[1])}]"
    return "\n".join([*filter(None, lines), f"{number_text(value)}{spread}"])


def _place_texts(rows: list[dict[str, Any]], axes: _Axes) -> None:
    """Put each text where it fits: in white at the foot of a long bar, else past its end."""
    reached = [0.0]
    for row in rows:
        reached += [end for end in (row["to"], row["low"], row["high"]) if end is not None]
    lowest, highest = min(reached), max(reached)
    length = (highest - lowest) or 1.0
    for row in rows:
        is_down = row["to"] < row["from"]
        row["inside"] = row["at_foot"] and abs(row["to"] - row["from"]) > ROOM * length
        past = (row["low"] if is_down else row["high"]) if row["low"] is not None else row["to"]
        row["text_at"] = row["from"] if row["inside"] else past
        row["is_down"] = is_down
        row["ink"] = ON_BAR if row["inside"] else INK
    if any(row["text"] and not row["inside"] for row in rows):
        axes.scale |= {"domainMax": highest + ROOM * length} if highest > 0 else {}
        axes.scale |= {"domainMin": lowest - ROOM * length} if lowest < 0 else {}


def _add_intervals(parts: Parts, rows: list[dict[str, Any]], axes: _Axes) -> None:
    encoding = axes.place() | axes.ends("low", "high") | {"tooltip": tooltip()}
    parts.add(
        "intervals",
        rows,
        {"mark": {"type": "rule", "color": INK, "aria": False}} | {"encoding": encoding},
    )
    for end in ("low", "high"):
        mark = {"type": "tick", "color": INK, "size": 9, "thickness": 1, "aria": False}
        parts.add(f"{end}s", rows, {"mark": mark, "encoding": axes.place() | axes.at(end)})


def _add_texts(parts: Parts, rows: list[dict[str, Any]], axes: _Axes) -> None:
    away = "datum.is_down ? -5 : 5" if axes.is_flat else "datum.is_down ? 5 : -5"
    mark: dict[str, Any] = {"type": "text", "aria": False, "fontSize": 12, "tooltip": None}
    if axes.is_flat:
        mark |= {"align": {"expr": "datum.is_down ? 'right' : 'left'"}, "dx": {"expr": away}}
    else:
        mark |= {"baseline": {"expr": "datum.is_down ? 'top' : 'bottom'"}, "dy": {"expr": away}}
    encoding = axes.place() | axes.at("text_at")
    encoding |= {"text": {"field": "text", "type": "nominal"}, "color": coloured("ink")}
    parts.add("texts", rows, {"mark": mark, "encoding": encoding})


def _add_points(parts: Parts, traces: Sequence[Trace], axes: _Axes) -> None:
    """Points at the categories of the bars."""
    rows = []
    for trace, series in zip(traces, series_of(traces), strict=True):
        if trace["type"] != "scatter":
            continue
        names, values = categories(trace.get(axes.category)), listed(trace.get(axes.value))
        for name, value in zip(names, values, strict=True):
            if value is not None and str(name) in axes.places:
                row = {"place": axes.places[str(name)], "to": value, "colour": series.colour}
                about = f"{plain_text(series.name)}\n{unmarked(name)}\n{number_text(value)}"
                rows.append(row | {"shape": series.symbol, "about": about})
    place = {axes.category: axes.place()[axes.category]}
    shape = {"field": "shape", "type": "nominal", "scale": None, "legend": None}
    encoding = place | axes.at("to") | {"color": coloured(), "shape": shape}
    mark = {"type": "point", "filled": True, "size": POINT_SIZE, "opacity": 1}
    encoding |= {"tooltip": tooltip(), "description": tooltip()}
    parts.add("points", rows, {"mark": mark, "encoding": encoding})
