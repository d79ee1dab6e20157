"""Figures on the screen: all values of the description, names as text, nothing invented."""

import json
import math
from typing import Any

import plotly.graph_objects as go
import pytest
from app_figures import EMPTY, FIGURES, HOSTILE, KEPT_ROW, MEAN, hostile_figures

from analysis.agreement.judging_figures import kappa_against_cost, kept_sets, over_time_lines
from analysis.figures.figures import DROPPED, KEPT, drop_bars, human_model_bars
from analysis.figures.screen.drawn import Drawn, drawn
from app.jobs_page.curves import curve_figure
from app.models.ranking_plot import ranking_figure
from app.training.watched import probe_figure
from db.errors import BadInput

KINDS = {"heatmap": "cells", "bar": "bars", "scatter": "points"}


def rows(found: Drawn, name: str) -> list[dict[str, Any]]:
    """The data of a layer; none where the layer is not drawn."""
    frame = found.spec["datasets"].get(name)
    return [] if frame is None else frame.to_dict("records")


def layer(found: Drawn, name: str) -> dict[str, Any]:
    (one,) = [one for one in found.spec["layer"] if one["data"].get("name") == name]
    return one


def channels(found: Drawn) -> list[dict[str, Any]]:
    return [each for one in found.spec["layer"] for each in one.get("encoding", {}).values()]


def labels(found: Drawn) -> list[str]:
    """The names on axes and in legends: literals in the expressions that write them."""
    guides = [each.get("axis") or each.get("legend") or {} for each in channels(found)]
    written = {guide["labelExpr"] for guide in guides if "labelExpr" in guide}
    names = [json.loads(one.removesuffix("[datum.value]")) for one in written]
    return [" ".join(name) if isinstance(name, list) else name for one in names for name in one]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_of_the_app_is_drawn_with_a_height_and_a_text_for_readers(name: str) -> None:
    found = drawn(FIGURES[name])
    spec = {key: value for key, value in found.spec.items() if key != "datasets"}
    assert json.loads(json.dumps(spec)) == spec
    assert found.spec["datasets"].keys() == {one["data"]["name"] for one in found.spec["layer"]}
    assert found.height == (FIGURES[name].layout.height or 340) and found.alt not in ("", "Figure")
    kind = KINDS[FIGURES[name].data[0].type]
    assert rows(found, kind) or rows(found, "lines")


@pytest.mark.parametrize("name", EMPTY)
def test_nothing_to_draw_is_no_error_and_no_mark(name: str) -> None:
    found = drawn(EMPTY[name])
    for kind in ("cells", "bars"):
        assert rows(found, kind) == []
    assert all(math.isnan(row["y"] or math.nan) for row in rows(found, "points"))


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(BadInput, match="'pie'"):
        drawn(go.Figure(go.Pie(values=[1])))
    with pytest.raises(BadInput, match="neither a number nor a time"):
        drawn(go.Figure(go.Scatter(x=["a"], y=[1])))
    with pytest.raises(BadInput, match="alone"):
        drawn(go.Figure([go.Heatmap(z=[[1]], x=["a"], y=["b"]), go.Bar(x=["a"], y=[1])]))


@pytest.mark.parametrize("figure", hostile_figures())
def test_a_name_is_a_literal_on_its_axis_and_never_part_of_an_expression(figure: go.Figure) -> None:
    found = drawn(figure)
    titles = [each["axis"]["title"] or "" for each in channels(found) if each.get("axis")]
    seen = [*labels(found), *titles, *(row["name"] for row in rows(found, "names"))]
    flat = " ".join(" ".join(seen).replace("_", " ").split())
    for name in HOSTILE:
        assert " ".join(name.replace("_", " ").split()) in flat, (name, seen)
    assert not [name for name in HOSTILE for one in expressions(found.spec) if name in one]


def expressions(part: object) -> list[str]:
    """Every expression of the specification, without the literals of names."""
    if isinstance(part, dict):
        own = [value for key, value in part.items() if key in ("expr", "test")]
        return own + [one for key in part.keys() - {"datasets"} for one in expressions(part[key])]
    return [one for value in part for one in expressions(value)] if isinstance(part, list) else []


def test_a_long_name_is_cut_and_forty_names_stand_upright_without_texts_on_their_bars() -> None:
    names = [f"{number} " + "中文名字 <script>alert(1)</script> $x$ " * 40 for number in range(40)]
    found = drawn(
        human_model_bars({"human_human": MEAN, "human_model": dict.fromkeys(names, MEAN)})
    )
    assert len(rows(found, "bars")) == 41
    assert max(map(len, labels(found))) == 80 and labels(found)[1].endswith("…")
    assert layer(found, "bars")["encoding"]["x"]["axis"]["labelAngle"] == -90
    assert rows(found, "texts") == []


def test_bars_have_their_values_intervals_and_texts() -> None:
    means = {
        "below": MEAN | {"value": -0.2, "interval": [-0.35, -0.05]},
        "tiny": MEAN | {"value": 0.01, "interval": [-0.1, 0.15]},
        "unknown": MEAN | {"value": None, "reason": "no items", "items": 0, "agreement": None},
    }
    found = drawn(human_model_bars({"human_human": MEAN, "human_model": means}))
    people, below, tiny = rows(found, "bars")
    assert [row["to"] for row in (people, below, tiny)] == [0.6, -0.2, 0.01]
    assert [round(end, 2) for end in (below["low"], below["high"])] == [-0.35, -0.05]
    assert people["inside"] and people["text_at"] == 0 and people["text"] == "0.60"
    assert below["is_down"] and not tiny["inside"]
    assert round(tiny["text_at"], 2) == 0.15, "past its interval, where it can be read"
    assert people["about"].startswith("people among themselves\nKrippendorff's alpha over 30 items")
    assert found.notes == ("undefined: unknown: no items",)


def test_bars_without_intervals_have_none_and_a_bar_of_none_is_left_out() -> None:
    error = {"type": "data", "array": [0.1, None, 0.3]}
    found = drawn(go.Figure(go.Bar(x=["a", "b", "c"], y=[1, 2, None], error_y=error, name="one")))
    assert [(row["place"], row["to"]) for row in rows(found, "bars")] == [(0, 1), (1, 2)]
    assert [(row["low"], row["high"]) for row in rows(found, "intervals")] == [(0.9, 1.1)]
    assert labels(found) == ["a", "b", "c"], "a category without a value keeps its place"


def test_stacked_bars_stand_on_each_other_and_counts_have_whole_ticks() -> None:
    found = drawn(kept_sets([KEPT_ROW, KEPT_ROW | {"name": "none", "only_here": 0}]))
    first = [(row["from"], row["to"]) for row in rows(found, "bars") if row["place"] == 0]
    assert first == [(0, 5), (5, 7), (7, 8)]
    bars = layer(found, "bars")["encoding"]
    assert "yOffset" not in bars and bars["x"]["axis"]["tickMinStep"] == 1
    assert {"kept by both", "kept only here", "kept only by the run"} <= set(labels(found))
    assert rows(found, "bars")[0]["about"] == "5 groups\nkept by both"


def test_large_numbers_are_short_on_the_axis_and_whole_at_the_pointer() -> None:
    found = drawn(go.Figure(go.Bar(x=["a", "b"], y=[325_162.45, 7], name="demo")))
    assert layer(found, "bars")["encoding"]["y"]["axis"]["format"] == "~s"
    assert rows(found, "bars")[0]["about"] == "demo\na\n325,162"


def test_horizontal_bars_keep_the_order_of_their_rows() -> None:
    found = drawn(drop_bars([{"groups": "kept", "count": 9}, {"groups": "judge_none", "count": 4}]))
    assert labels(found) == ["kept", "judge none"]
    assert "reverse" not in layer(found, "bars")["encoding"]["y"]["scale"], "the first on top"
    assert [row["colour"] for row in rows(found, "bars")] == [KEPT, DROPPED]


def test_the_ranking_has_its_groups_as_headings_and_its_scores_as_points() -> None:
    ranked = [
        {"model": "e5", "group": "below 1 B", "checkpoint": 1, "p-mrr": -0.05, "score": 0.2},
        {"model": "bge", "group": "below 1 B", "checkpoint": None, "p-mrr": 0.1, "score": None},
        {"model": "e5", "group": "above 5 B", "checkpoint": None, "p-mrr": 0.2, "score": 0.3},
    ]
    found = drawn(ranking_figure(ranked))
    axis = layer(found, "bars")["encoding"]["y"]["axis"]
    names = json.loads(axis["labelExpr"].removesuffix("[datum.value]"))
    assert names == ["below 1 B", "e5", "bge", "above 5 B", "e5"]
    assert axis["labelFontWeight"]["condition"]["test"] == "indexof([0, 3], datum.value) >= 0"
    assert [(row["place"], round(row["to"])) for row in rows(found, "bars")] == [
        (1, -5),
        (2, 10),
        (4, 20),
    ]
    assert [(row["place"], row["to"], row["shape"]) for row in rows(found, "points")] == [
        (1, 2.0, "diamond"),
        (4, 3.0, "diamond"),
    ]


def test_a_line_has_a_gap_where_a_value_is_undefined() -> None:
    window = {"items": 9, "human_human": MEAN, "human_model": {}}
    windows = [
        window | {"window": 1, "to": "2026-11-01T12:00:00+00:00"},
        window | {"window": 2, "to": "2026-11-02T12:00:00+00:00", "human_human": {"value": None}},
        window | {"window": 3, "to": "2026-11-03T12:00:00+00:00"},
    ]
    found = drawn(over_time_lines(windows))
    assert [math.isnan(row["y"]) for row in rows(found, "lines")] == [False, True, False]
    x = layer(found, "lines")["encoding"]["x"]
    assert x["type"] == "temporal" and x["scale"]["type"] == "utc"
    assert rows(found, "lines")[0]["x"] == 1793534400000.0
    about = rows(found, "points")[0]["about"]
    assert about == "0.600\nwindow 1, 9 items\npeople among themselves"


def test_a_curve_is_zoomed_and_read_at_no_more_than_200_places() -> None:
    lines = {"one": [(step, 1 / (step + 1)) for step in range(1000)], "other": [(0, 2.0)]}
    found = drawn(curve_figure(lines, title="Loss <of> $x$"))
    assert found.spec["title"]["text"] == "Loss <of> $x$"
    assert len(rows(found, "lines")) == 1001 and len(rows(found, "readings")) == 200
    assert rows(found, "readings")[0]["about"] == "step 0\none: 1\nother: 2"
    assert layer(found, "lines")["params"][0]["bind"] == "scales"
    (only,) = rows(drawn(curve_figure({"one": [(5, 0.3)]}, title="")), "readings")
    assert only["about"] == "step 5\n0.3"


def test_a_curve_that_grows_keeps_its_specification_so_that_it_is_not_drawn_anew() -> None:
    def spec_of(steps: int) -> list[dict[str, Any]]:
        values = [(step, 1 / (step + 1)) for step in range(steps)]
        return list(drawn(curve_figure({"one": values}, title="Loss")).spec["layer"])

    assert spec_of(50) == spec_of(500)


def test_ranks_have_a_tick_each_with_the_first_on_top_and_one_line_is_dotted() -> None:
    series = {"probe/0/asked": [(0, 5), (9, 1)], "probe/0/other": [(0, 1), (9, 7)]}
    encoding = layer(drawn(probe_figure(0, series)), "lines")["encoding"]
    assert encoding["y"]["scale"]["reverse"] and encoding["y"]["axis"]["tickMinStep"] == 1
    assert encoding["strokeDash"]["scale"]["range"] == [[1, 0], [2, 3]]


def test_an_estimated_price_is_an_open_point_with_its_interval_and_name() -> None:
    row = {"judge": "o3", "human_kappa": MEAN, "usd_per_1000_items": 2.0, "price_from": "estimate"}
    found = drawn(kappa_against_cost([row, row | {"judge": "$x$", "price_from": "calls"}]))
    open_point, full = rows(found, "points")
    assert open_point["fill"] == "transparent" and full["fill"] == full["colour"]
    assert [each["name"] for each in rows(found, "names")] == ["o3", "$x$"]
    ends = [(round(each["low"], 2), round(each["high"], 2)) for each in rows(found, "intervals")]
    assert ends == [(0.5, 0.7)] * 2
    assert open_point["about"] == "2.0000 USD per 1,000 items (estimate)\nkappa 0.600"


def test_a_matrix_has_a_cell_per_value_and_a_dash_where_it_is_undefined() -> None:
    found = drawn(FIGURES["heatmap"])
    assert {(row["x"], row["y"], row["text"]) for row in rows(found, "cells")} == {
        (1, 0, "0.50"),
        (0, 1, "0.50"),
    }
    texts = {(row["x"], row["y"]): row for row in rows(found, "texts")}
    assert texts[2, 0]["text"] == "–" and "no common items" in texts[2, 0]["about"]
    assert rows(found, "cells")[0]["about"].startswith("ann $x$ – <b>bob</b>\nkappa 0.5000")
    scale = layer(found, "cells")["encoding"]["color"]["scale"]
    assert (scale["domain"][0], scale["domain"][-1]) == (-1, 1)
    counts = drawn(FIGURES["confusion"])
    assert [row["text"] for row in rows(counts, "cells")] == ["3", "0", "1", "2"]
    assert rows(counts, "cells")[2]["about"] == "none – positive: 1 items"
