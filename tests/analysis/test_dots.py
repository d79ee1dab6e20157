"""Dots, slopes and the flow: every value where it was given, none invented, none lost."""

import pytest

from analysis.figures.dots import Dot, dots, slopes
from analysis.figures.flow import Stream, few_reasons, flow
from analysis.figures.screen import on_screen

PEOPLE = [Dot("ann – bob", 0.6, (0.4, 0.8), "30 items"), Dot("ann – <cy>", -0.1)]


def test_a_dot_stands_at_its_value_in_its_row_and_its_interval_reaches_its_limits() -> None:
    figure = dots({"pairs": PEOPLE}, title="kappa", from_zero=True)
    (trace,) = figure.data
    assert list(trace.x) == [0.6, -0.1] and list(trace.y) == [0, 1]
    assert list(trace.error_x.array) == pytest.approx([0.2, 0.0])
    assert list(trace.error_x.arrayminus) == pytest.approx([0.2, 0.0])
    assert list(figure.layout.yaxis.ticktext) == ["ann – bob", "ann – &lt;cy&gt;"]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first on top
    assert trace.customdata[0] == "ann – bob: 0.600 [0.400, 0.800], 30 items"
    assert figure.layout.xaxis.zeroline and not figure.layout.showlegend


def test_groups_that_share_a_row_stand_side_by_side_in_it_and_others_in_its_middle() -> None:
    shared = dots({"all": PEOPLE, "without": [Dot("ann – bob", 0.7)]}, title="kappa")
    first, second = shared.data
    assert first.y[0] < second.y[0] and round(first.y[0]) == round(second.y[0]) == 0
    assert shared.layout.showlegend
    apart = dots({"one": PEOPLE[:1], "two": PEOPLE[1:]}, title="kappa")
    assert [list(trace.y) for trace in apart.data] == [[0], [1]]


def test_sorted_rows_go_from_the_highest_down_whatever_group_they_are_of() -> None:
    """A group of its own put all flagged pairs above or below the others."""
    groups = {"flagged": [Dot("b", 0.9), Dot("c", 0.1)], "pairs": [Dot("a", 0.5)]}
    figure = dots(groups, title="kappa", is_sorted=True)
    assert list(figure.layout.yaxis.ticktext) == ["b", "a", "c"]
    places = {trace.name: list(trace.y) for trace in figure.data}
    assert places == {"flagged": [0, 2], "pairs": [1]}


def test_a_section_stands_above_its_rows_and_a_name_may_be_in_several() -> None:
    one = [
        Dot("flip", 0.2, section="Goals: a"),
        Dot("nDCG", 0.1, section="Guards: a", is_hollow=True),
    ]
    two = [*one[:1], Dot("flip", 0.3, section="Goals: <b>")]
    figure = dots({"m": one, "n": two}, title="difference")
    labels = [
        "<b>Goals: a</b>",
        "flip",
        "<b>Guards: a</b>",
        "nDCG",
        "<b>Goals: &lt;b&gt;</b>",
        "flip",
    ]
    assert list(figure.layout.yaxis.ticktext) == labels
    first, second = figure.data
    assert [round(place) for place in first.y] == [1, 3]
    assert list(first.marker.symbol) == ["circle", "circle-open"]
    assert [round(place) for place in second.y] == [1, 5] and first.y[0] < second.y[0]


def test_a_slope_goes_from_before_to_after_and_names_both() -> None:
    before, after = Dot("Flip", 0.35, (0.26, 0.44)), Dot("Flip", 0.47, (0.38, 0.56))
    figure = slopes([(before, after)], ends=("base", "trained"), title="share")
    (line,) = figure.data
    assert list(line.y) == [0.35, 0.47]
    assert line.name == "Flip: 0.350 → 0.470"
    assert list(figure.layout.xaxis.ticktext) == ["base", "trained"]


def test_the_flow_has_every_stream_with_its_number_and_no_empty_one() -> None:
    streams = [
        Stream("Pairs", "Kept", 7, "on"),
        Stream("Pairs", "too <long>", 2, "out"),
        Stream("Kept", "Released", 0, "on"),
    ]
    (sankey,) = flow(streams).data
    assert list(sankey.node.label) == [
        "Pairs<br>9",
        "7 · Kept",
        "2 · too &lt;long&gt;",
    ]
    assert list(zip(sankey.link.source, sankey.link.target, sankey.link.value, strict=True)) == [
        (0, 1, 7),
        (0, 2, 2),
    ]
    (alone,) = flow([*streams[:2], Stream("Kept", "Released", 7, "on")]).data
    assert list(alone.node.label)[-1] == "\u200b<br>" * 4 + "Released<br>7"  # stands before it
    on = [Stream("Kept", "Not reviewed", 7, "waits"), Stream("Not reviewed", "Released", 7, "on")]
    assert flow(on).data[0].node.label[1] == "Not<br>reviewed<br>7"  # whole between two places
    found = on_screen(flow(streams))
    assert found.alt == "Pairs to Kept: 7; Pairs to too <long>: 2"
    assert on_screen(flow([])).alt == "No groups yet"


def test_rare_reasons_are_summed_and_none_is_lost() -> None:
    dropped = {f"reason {n}": 10 - n for n in range(9)}
    few = few_reasons(dropped, most=4)
    assert list(few)[:2] == ["reason 0", "reason 1"] and list(few)[-1] == "other reasons"
    assert sum(few.values()) == sum(dropped.values())
    assert few_reasons(dropped, most=8) == dropped
