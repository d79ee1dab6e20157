"""Lines and points over numbers or times, with intervals and names."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from analysis.figures.screen.parts import (
    INK,
    X_TICK,
    Y_TICK,
    Channel,
    Parts,
    coloured,
    tooltip,
    value_axis,
)
from analysis.figures.screen.series import DASHES, Series, series_of
from analysis.figures.traces import hover_text, interval, listed, number_text, plain_text
from db.errors import BadInput

Trace = Mapping[str, Any]
POINT_SIZE: Final = 30  # square pixels
NAMED_SIZE: Final = 130  # of a point with its name beside it
MAX_STEPS: Final = 200  # places at which a pointer finds the values of all lines
EDGE: Final = 8  # pixels between the outermost points and the axes
LONG_SECONDS: Final = 8 * 86_400  # from here on, days are enough for the ticks
ZOOM: Final = {
    "name": "zoom",
    "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.ctrlKey]"},
    "bind": "scales",
}


def draw_lines(traces: Sequence[Trace], layout: Mapping[str, Any]) -> Parts:
    """The layers of lines and points; a line has a gap at a value of None."""
    points = [
        row
        for number, (trace, series) in enumerate(zip(traces, series_of(traces), strict=True))
        for row in _points(trace, number, series)
    ]
    place = {
        "x": _x_axis(layout.get("xaxis") or {}, points),
        "y": _y_axis(layout.get("yaxis") or {}, points),
    }
    is_unified = layout.get("hovermode") == "x unified"
    parts = Parts()
    _add_lines(parts, traces, [row for row in points if row["has_line"]], place)
    _add_intervals(parts, [row for row in points if row["low"] is not None], place)
    _add_points(parts, [row for row in points if row["has_point"]], place, is_unified=is_unified)
    if is_unified:
        parts.add("readings", _readings(points, traces, place), _reading_layer(place))
    _add_names(parts, [row for row in points if row["name"] and row["y"] is not None], place)
    return parts


def _points(trace: Trace, number: int, series: Series) -> list[dict[str, Any]]:
    """A row per point of a trace, those without a value too."""
    mode = trace.get("mode") or "lines+markers"
    marker = trace.get("marker") or {}
    is_open = str(marker.get("symbol") or "").endswith("-open")
    texts = listed(trace.get("text")) if "text" in mode else []
    given = listed(trace.get("customdata"))
    rows = []
    for each, (x, y) in enumerate(zip(listed(trace.get("x")), listed(trace.get("y")), strict=True)):
        place, is_time = _number(x)
        ends = None if y is None else interval(trace.get("error_y"), each, y)
        about = (
            ""
            if y is None
            else hover_text(trace, x=x, y=y, customdata=given[each] if given else None)
        )
        rows.append(
            {
                "x": place,
                "y": y,
                "is_time": is_time,
                "series": number,
                "colour": series.colour,
                "fill": "transparent" if is_open else series.colour,
                "has_line": "lines" in mode,
                "has_point": "markers" in mode,
                "low": None if ends is None else ends[0],
                "high": None if ends is None else ends[1],
                "name": plain_text(texts[each]) if texts else "",
                "about": about,
            }
        )
    return rows


def _number(x: Any) -> tuple[float, bool]:
    """A number, or a time as milliseconds since 1970 in UTC, and whether it is a time."""
    if isinstance(x, int | float):
        return x, False
    try:
        at = datetime.fromisoformat(str(x))
    except ValueError:
        raise BadInput(
            f"{x!r} on the axis of a line is neither a number nor a time",
            code="axis_value_invalid",
        ) from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return 1000 * at.timestamp(), True


def _x_axis(layout: Mapping[str, Any], points: list[dict[str, Any]]) -> Channel:
    values = [row["x"] for row in points]
    found = value_axis("x", layout, every=X_TICK, is_ruled=False, zero=False, padding=EDGE)
    found["scale"]["nice"] = False
    if any(row["is_time"] for row in points):
        found |= {"type": "temporal", "scale": {"type": "utc", "padding": EDGE}}
        is_long = max(values) - min(values) > LONG_SECONDS * 1000
        found["axis"] |= {"format": "%b %-d" if is_long else "%b %-d, %H:%M", "tickCount": 5}
        return found
    if all(isinstance(value, int) for value in values):
        found["axis"]["tickMinStep"] = 1
    return _widened(found, values)


def _y_axis(layout: Mapping[str, Any], points: list[dict[str, Any]]) -> Channel:
    found = value_axis("y", layout, every=Y_TICK, zero=False, padding=EDGE)
    known = ("y", "low", "high")
    return _widened(found, [row[name] for row in points for name in known if row[name] is not None])


def _widened(axis: Channel, values: Sequence[float]) -> Channel:
    """The axis with a range around its value if there is only one."""
    if len(set(values)) == 1 and "domain" not in axis["scale"]:
        around = abs(values[0]) or 1
        axis["scale"] |= {"domain": [values[0] - around, values[0] + around], "nice": False}
    return axis


def _add_lines(
    parts: Parts, traces: Sequence[Trace], rows: list[dict[str, Any]], place: dict[str, Channel]
) -> None:
    """The lines, which a person zooms by Ctrl and the wheel, moves by a drag and resets by a
    double click."""
    dashes = [DASHES.get(each.dash, [1, 0]) for each in series_of(traces)]
    dash = {
        "field": "series",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": list(range(len(dashes))), "range": dashes},
    }
    layer = {
        "mark": {"type": "line", "clip": True, "strokeWidth": 2, "tooltip": None, "aria": False},
        "encoding": place | {"color": coloured(), "strokeDash": dash},
        "params": [ZOOM],
    }
    parts.add("lines", _only(rows, "x", "y", "series", "colour"), layer)


def _add_intervals(parts: Parts, rows: list[dict[str, Any]], place: dict[str, Channel]) -> None:
    ends = {"low": place["y"] | {"field": "low"}, "high": place["y"] | {"field": "high"}}
    encoding = {"x": place["x"], "y": ends["low"], "y2": {"field": "high"}}
    encoding |= {"color": coloured(), "tooltip": tooltip()}
    shown = _only(rows, "x", "low", "high", "colour", "about")
    parts.add("intervals", shown, {"mark": {"type": "rule", "aria": False}, "encoding": encoding})
    for end in ("low", "high"):
        mark = {"type": "tick", "orient": "horizontal", "size": 9, "thickness": 1, "aria": False}
        encoding = {"x": place["x"], "y": ends[end], "color": coloured()}
        parts.add(f"{end}s", shown, {"mark": mark, "encoding": encoding})


def _add_points(
    parts: Parts, rows: list[dict[str, Any]], place: dict[str, Channel], *, is_unified: bool
) -> None:
    """The points; each has its text at the pointer, unless one place has that of all lines."""
    size = NAMED_SIZE if any(row["name"] for row in rows) else POINT_SIZE
    mark = {"type": "point", "clip": True, "opacity": 1, "size": size, "strokeWidth": 2}
    encoding = place | {"stroke": coloured(), "fill": coloured("fill")}
    fields = ["x", "y", "colour", "fill"]
    if is_unified:
        mark |= {"tooltip": None, "aria": False}
    else:
        encoding |= {"tooltip": tooltip(), "description": tooltip()}
        fields.append("about")
    parts.add("points", _only(rows, *fields), {"mark": mark, "encoding": encoding})


def _readings(
    points: list[dict[str, Any]], traces: Sequence[Trace], place: dict[str, Channel]
) -> list[dict[str, Any]]:
    """The values of all lines at one place, as a text, at no more than `MAX_STEPS` places."""
    found: dict[float, list[str]] = {}
    names = [plain_text(trace.get("name")) for trace in traces]
    for row in points:
        if row["y"] is not None:
            name = f"{names[row['series']]}: " * (len(traces) > 1)
            found.setdefault(row["x"], []).append(f"{name}{number_text(row['y'])}")
    title = place["x"]["axis"]["title"] or "at"
    every = -(-len(found) // MAX_STEPS) or 1
    return [
        {"x": x, "about": "\n".join([f"{title} {x:,g}", *found[x]])} for x in sorted(found)[::every]
    ]


def _reading_layer(place: dict[str, Channel]) -> dict[str, Any]:
    """A line at the place that is nearest to the pointer."""
    near = {"type": "point", "nearest": True, "on": "pointerover", "clear": "pointerout"}
    shown = {"condition": {"param": "near", "empty": False, "value": 0.4}, "value": 0}
    return {
        "mark": {"type": "rule", "color": INK, "clip": True, "aria": False},
        "encoding": {"x": place["x"], "opacity": shown, "tooltip": tooltip()},
        "params": [{"name": "near", "select": near | {"encodings": ["x"]}}],
    }


def _add_names(parts: Parts, rows: list[dict[str, Any]], place: dict[str, Channel]) -> None:
    mark = {"type": "text", "align": "left", "dx": 9, "dy": -9, "fontSize": 12, "color": INK}
    mark |= {"limit": 220, "aria": False, "tooltip": None}
    encoding = place | {"text": {"field": "name", "type": "nominal"}}
    parts.add("names", _only(rows, "x", "y", "name"), {"mark": mark, "encoding": encoding})


def _only(rows: list[dict[str, Any]], *fields: str) -> list[dict[str, Any]]:
    return [{field: row[field] for field in fields} for row in rows]
