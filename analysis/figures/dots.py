"""Values with their intervals: dots by name, differences around zero, before and after. Pure.

One description for pairs and judges of a study, models against their base, and a training; files to
print are drawn from the same (`analysis.figures.printed`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import plotly.graph_objects as go

from analysis.figures.figures import CATEGORY_COLOURS, escape

ROW: Final = 30  # pixels
MAX_NAME: Final = 40  # characters at the axis; the pointer has all
FRAME: Final = 110  # pixels, of the axis below and the legend


@dataclass(frozen=True)
class Dot:
    """A value, its 95 % interval if it has one, what the pointer says besides, the section of the
    figure that it stands in, and whether it is hollow: a control, no result."""

    name: str
    value: float
    interval: tuple[float, float] | None = None
    about: str = ""
    section: str = ""
    is_hollow: bool = False

    @property
    def text(self) -> str:
        """`.443 [.31, .57]` as the pointer shows it, escaped."""
        found = f"{self.value:.3f}"
        if self.interval is not None:
            found += f" [{self.interval[0]:.3f}, {self.interval[1]:.3f}]"
        return escape("".join((f"{self.name}: {found}", f", {self.about}" if self.about else "")))


def known(low: float | None, high: float | None) -> tuple[float, float] | None:
    """An interval of two limits; None where one is missing."""
    return None if low is None or high is None else (low, high)


def dots(
    groups: Mapping[str, Sequence[Dot]],
    *,
    title: str,
    from_zero: bool = False,
    unit: str = "",
    is_sorted: bool = False,
) -> go.Figure:
    """A row per name with a dot for each group that has it, from top to bottom as given; the name
    of a section stands above its rows.

    Groups have their own colours and stand side by side in a row. from_zero: a line at 0, which the
    reader compares with. unit: what a row is, for the axis. is_sorted: the highest value first,
    whatever group it is of.
    """
    places, labels = _rows(groups, is_sorted=is_sorted)
    figure = go.Figure()
    lanes = _lanes(groups)
    for number, (group, found) in enumerate(groups.items()):
        figure.add_scatter(
            x=[dot.value for dot in found],
            y=[places[dot.section, dot.name] + lanes[group] for dot in found],
            error_x=_reach(found),
            mode="markers",
            name=escape(group),
            marker={
                "color": CATEGORY_COLOURS[number % len(CATEGORY_COLOURS)],
                "size": 9,
                "symbol": ["circle-open" if dot.is_hollow else "circle" for dot in found],
            },
            customdata=[dot.text for dot in found],
            hovertemplate="%{customdata}<extra></extra>",
        )
    figure.update_layout(
        height=FRAME + ROW * max(1, len(labels)) * max(1, len(set(lanes.values()))) ** 0.5,
        showlegend=len(groups) > 1,
        hovermode="closest",
    )
    # a single dot would have an axis of its surroundings alone
    reach = "tozero" if from_zero else "normal"
    figure.update_xaxes(title=title, zeroline=from_zero, rangemode=reach)
    figure.update_yaxes(
        title=unit,
        tickvals=list(range(len(labels))),
        ticktext=labels,
        range=[len(labels) - 0.4, -0.6],
        automargin=True,
        showgrid=False,
        zeroline=False,
    )
    return figure


def slopes(found: Sequence[tuple[Dot, Dot]], *, ends: tuple[str, str], title: str) -> go.Figure:
    """A line per pair of values, from before to after, with their intervals; its name and both
    values stand at its end."""
    figure = go.Figure()
    ordered = sorted(found, key=lambda pair: pair[1].value)
    for number, (before, after) in enumerate(ordered):
        colour = CATEGORY_COLOURS[number % len(CATEGORY_COLOURS)]
        side = (number - (len(ordered) - 1) / 2) * 0.012  # intervals do not lie on each other
        figure.add_scatter(
            x=[side, 1 + side],
            y=[before.value, after.value],
            error_y=_reach((before, after)),
            mode="lines+markers",
            name=escape(f"{after.name}: {before.value:.3f} → {after.value:.3f}"),
            line={"color": colour, "dash": "dot" if number >= len(CATEGORY_COLOURS) else "solid"},
            customdata=[before.text, after.text],
            hovertemplate="%{customdata}<extra></extra>",
        )
    height = max(420, 240 + 22 * len(ordered))  # on a phone the names are a list below the lines
    figure.update_layout(height=height, showlegend=True, legend={"traceorder": "reversed"})
    figure.update_xaxes(
        tickvals=[0, 1], ticktext=list(ends), range=[-0.2, 1.2], showgrid=False, zeroline=False
    )
    figure.update_yaxes(title=title, zeroline=False)
    return figure


def cut(name: str) -> str:
    """The first characters of a long name."""
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def _rows(
    groups: Mapping[str, Sequence[Dot]], *, is_sorted: bool
) -> tuple[dict[tuple[str, str], int], list[str]]:
    """The place of each row by section and name, and the text at every place."""
    sections: dict[str, dict[str, None]] = {}
    every = [dot for found in groups.values() for dot in found]
    for dot in sorted(every, key=lambda dot: -dot.value) if is_sorted else every:
        sections.setdefault(dot.section, {})[dot.name] = None
    places: dict[tuple[str, str], int] = {}
    labels: list[str] = []
    for section, names in sections.items():
        if section:
            labels.append(f"<b>{escape(cut(section))}</b>")
        for name in names:
            places[section, name] = len(labels)
            labels.append(escape(cut(name)))
    return places, labels


def _lanes(groups: Mapping[str, Sequence[Dot]]) -> dict[str, float]:
    """Where the dots of a group stand within their row: side by side where rows are shared."""
    names = [(dot.section, dot.name) for found in groups.values() for dot in found]
    if len(names) == len(set(names)):
        return dict.fromkeys(groups, 0.0)
    step = 0.5 / len(groups)
    return {group: (n - (len(groups) - 1) / 2) * step for n, group in enumerate(groups)}


def _reach(found: Sequence[Dot]) -> dict[str, Any] | None:
    if not any(dot.interval for dot in found):
        return None
    known = [dot.interval or (dot.value, dot.value) for dot in found]
    return {
        "type": "data",
        "symmetric": False,
        "thickness": 1.2,
        "array": [high - dot.value for dot, (_, high) in zip(found, known, strict=True)],
        "arrayminus": [dot.value - low for dot, (low, _) in zip(found, known, strict=True)],
    }
