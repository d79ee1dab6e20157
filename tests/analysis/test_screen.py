"""Figures on the screen: described as Plotly reads them, fitted to a page, nothing invented."""

import plotly.graph_objects as go
import pytest
from app_figures import EMPTY, FIGURES, HOSTILE, MEAN, hostile_figures

from analysis.figures.dots import Dot, slopes
from analysis.figures.figures import escape, human_model_bars
from analysis.figures.screen import HEIGHT, on_screen


@pytest.mark.parametrize("name", [*FIGURES, *EMPTY])
def test_every_figure_has_a_height_and_a_text_for_readers_and_stays_as_it_was(name: str) -> None:
    figure = {**FIGURES, **EMPTY}[name]
    before = figure.to_json()
    found = on_screen(figure)
    assert figure.to_json() == before
    assert found.figure.layout.height == (figure.layout.height or HEIGHT)
    assert found.alt and (name in EMPTY or found.alt != "Figure")
    assert go.Figure(found.figure.data).to_json() == go.Figure(figure.data).to_json()


@pytest.mark.parametrize("figure", hostile_figures())
def test_names_of_people_reach_the_screen_as_text_and_no_tag_of_theirs(figure: go.Figure) -> None:
    described = on_screen(figure).figure.to_json()
    for name in HOSTILE:
        if escape(name) != name:  # as JSON writes it, unescaped
            raw = name.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
            assert name not in described and raw not in described


def test_a_legend_is_whole_and_leaves_room_for_the_lines() -> None:
    """On a phone it is a list, of which Plotly shows half the figure's height by default."""
    pairs = [(Dot(f"measure {n}", 0.1 * n, None, ""),) * 2 for n in range(14)]
    shown = on_screen(slopes(pairs, ends=("base", "trained"), title="")).figure
    assert shown.layout.legend.maxheight == 1
    assert shown.layout.height - 14 * 19 > 200  # 19 px a line


def test_what_is_undefined_stands_below_the_figure() -> None:
    unknown = MEAN | {"value": None, "reason": "no items", "items": 0, "agreement": None}
    figure = human_model_bars({"human_human": MEAN, "human_model": {"o3": unknown}})
    found = on_screen(figure)
    assert found.notes == ("undefined: o3: no items",)
    assert len(figure.layout.annotations) == 1 and not found.figure.layout.annotations


def test_a_long_name_is_cut_on_the_axis_and_whole_at_the_pointer() -> None:
    long = "a name of a model that does not end " * 9
    found = on_screen(human_model_bars({"human_human": MEAN, "human_model": {long: MEAN}})).figure
    ticks = list(found.layout.xaxis.ticktext)
    assert ticks[0] == "people among themselves" and len(ticks[1]) == 40 and ticks[1][-1] == "…"
    assert list(found.layout.xaxis.tickvals) == list(found.data[0].x)
    assert long in found.data[0].customdata[1]


def test_only_lines_are_zoomed_by_a_drag() -> None:
    for name in ("curve", "time"):
        assert on_screen(FIGURES[name]).figure.layout.dragmode == "zoom"
    for name in ("dots", "confusion", "bars", "ranking"):
        shown = on_screen(FIGURES[name]).figure.layout
        assert shown.dragmode is False and shown.xaxis.fixedrange and shown.yaxis.fixedrange
