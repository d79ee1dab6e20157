"""The way of a run's groups from its pairs to a trained model, as a Sankey diagram. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import plotly.graph_objects as go

from analysis.figures.figures import DROPPED, KEPT, escape

WAITING: Final = "#999999"
COLOURS: Final[Mapping[str, str]] = {"on": KEPT, "out": DROPPED, "waits": WAITING}
ROW: Final = 34  # pixels of a place
OTHER_REASONS: Final = "other reasons"
MAX_OUT: Final = 6  # drop reasons of their own; the others are one place


@dataclass(frozen=True)
class Stream:
    """Groups that went from one place to another; `kind`: `on`, `out` or `waits`."""

    start: str
    end: str
    groups: int
    kind: str


def flow(streams: Sequence[Stream], links: Sequence[str] = ()) -> go.Figure:
    """The streams between places, each named with its number of groups; empty ones are left out.

    links: places with a link of the page; a click on a place, or a stream into it, is one on that.

    A colour is not all that tells what went on from what was dropped: its place has a name.
    """
    shown = [each for each in streams if each.groups]
    places = list(dict.fromkeys(name for each in shown for name in (each.start, each.end)))
    into = {name: sum(e.groups for e in shown if e.end == name) for name in places}
    out_of = {name: sum(e.groups for e in shown if e.start == name) for name in places}
    kinds = {each.end: each.kind for each in shown}
    opened = {name: links.index(name) for name in places if name in links}
    lasts = {e.end for e in shown if e.kind == "on" and not out_of[e.end] and _is_alone(e, shown)}
    figure = go.Figure(
        go.Sankey(
            arrangement="fixed",
            textfont={"size": 13},
            node={
                "align": "left",  # what was dropped ends where it was dropped
                "label": [
                    _below(name in lasts)
                    + _named(
                        name,
                        f"{max(into[name], out_of[name]):,}",
                        is_wide=not out_of[name] and name not in lasts,
                    )
                    for name in places
                ],
                "color": [COLOURS[kinds.get(name, "on")] for name in places],
                "customdata": [opened.get(name, -1) for name in places],
                "pad": 14,
                "thickness": 14,
                "line": {"width": 0},
                "hovertemplate": "%{label}<extra></extra>",
            },
            link={
                "source": [places.index(each.start) for each in shown],
                "target": [places.index(each.end) for each in shown],
                "value": [each.groups for each in shown],
                "customdata": [opened.get(each.end, -1) for each in shown],
                "color": [_faint(COLOURS[each.kind]) for each in shown],
                "hovertemplate": "%{source.label} → %{target.label}: %{value:,}<extra></extra>",
            },
        )
    )
    ends = sum(not out_of[name] for name in places)
    figure.update_layout(
        height=max(220, 60 + ROW * ends),
        meta="; ".join(f"{e.start} to {e.end}: {e.groups:,}" for e in shown) or "No groups yet",
    )
    return figure


def _named(name: str, number: str, *, is_wide: bool) -> str:
    """A name and its number; in lines where another place follows to its right.

    In one line the number is first, and the page cuts a long name at the picture's edge (boot.js).
    """
    if is_wide:
        return f"{number} · {escape(name)}"
    return f"{escape(name).replace(' ', '<br>')}<br>{number}"


def _is_alone(stream: Stream, shown: Sequence[Stream]) -> bool:
    """Whether nothing else goes on from where it starts, so that its end has no neighbour."""
    return all(each is stream or each.start != stream.start for each in shown)


def _below(is_last: bool) -> str:
    """Empty lines above the name of the last place, which stands before it, else it would meet that
    of the place before it in a narrow window."""
    return "\u200b<br>" * 4 if is_last else ""


def few_reasons(dropped: Mapping[str, int], most: int = MAX_OUT) -> dict[str, int]:
    """The most frequent drop reasons, and the sum of the others as OTHER_REASONS."""
    ordered = sorted(dropped.items(), key=lambda pair: (-pair[1], pair[0]))
    if len(ordered) <= most + 1:
        return dict(ordered)
    rest = sum(count for _, count in ordered[most:])
    return dict(ordered[:most]) | {OTHER_REASONS: rest}


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.35)"
