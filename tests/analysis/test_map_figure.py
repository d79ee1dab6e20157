"""The map: a colour per category, contours, cells beyond the limit, clusters named by words."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis.clusters import cluster_names, cluster_points, with_clusters
from analysis.coverage import add_points
from analysis.map_figure import coverage_scatter, selected_rows, smoothed

POINTS = pd.DataFrame(
    {
        "x": [0.0, 1.0, 2.0],
        "y": [0.0, 1.0, 2.0],
        "corpus": ["demo", "demo", "other"],
        "field": ["instruction", "passage", "text"],
        "role": ["positive", "query_negative", "text"],
        "verdict": ["kept", "kept", None],
        "group_id": [7, 7, None],
        "text": ["Only <b>short</b> ones", "a passage " * 20, "x"],
    }
)


def test_the_map_has_a_colour_per_role_and_shows_texts_verbatim() -> None:
    figure = coverage_scatter(POINTS)
    assert [trace.name for trace in figure.data] == ["I+", "P2-", "text"]
    assert {trace.type for trace in figure.data} == {"scattergl"}
    assert "&lt;b&gt;short&lt;/b&gt;" in figure.data[0].text[0]
    assert [list(trace.customdata) for trace in figure.data] == [[0], [1], [2]]


def test_the_hover_shows_the_triplet_a_text_belongs_to() -> None:
    found = {
        ("instruction", "positive"): "Mention <bees>.",
        ("query", "positive"): "who sells honey",
        ("passage", "positive"): "p " * 200,
        ("instruction", "instruction_negative"): "Omit bees.",
        ("passage", "instruction_negative"): "no insects here",
    }
    points = pd.DataFrame(
        {
            **{name: [0.0] * len(found) for name in ("x", "y")},
            "corpus": "demo",
            "field": [field for field, _ in found],
            "role": [role for _, role in found],
            "group_id": 7,
            "text": list(found.values()),
        }
    )
    hover = {trace.name: trace.text[0] for trace in coverage_scatter(points).data}
    assert hover["P1-"] == (
        "<b>P1-</b> demo, group 7<br><b>I-</b> Omit bees.<br><b>Q+</b> who sells honey<br>"
        "<b>P1-</b> no insects here"
    )
    assert "<b>I+</b> Mention &lt;bees&gt;." in hover["Q+"]
    assert hover["I+"].endswith("…")
    assert "group" not in coverage_scatter(POINTS).data[2].text[0]


def test_the_map_can_be_coloured_by_corpus_or_verdict() -> None:
    by_corpus = coverage_scatter(POINTS, "corpus")
    assert [trace.name for trace in by_corpus.data] == ["demo", "other"]
    assert [trace.name for trace in coverage_scatter(POINTS, "verdict").data] == ["kept", "–"]


def many(number: int) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": generator.normal(size=number).astype(np.float32),
            "y": generator.normal(size=number).astype(np.float32),
            "corpus": np.where(np.arange(number) % 3 == 0, "one", "two"),
            "field": "query",
            "role": "positive",
            "verdict": "kept",
            "group_id": np.arange(number),
            "text": "a <text>",
        }
    )


def test_many_points_are_drawn_in_turns_so_that_no_category_hides_the_others() -> None:
    points = many(30_000)
    figure = coverage_scatter(points, "corpus")
    assert [trace.name for trace in figure.data][:4] == ["one", "two", "one", "two"]
    assert [trace.showlegend for trace in figure.data] == [True, True] + [False] * 14
    assert {trace.legendgroup for trace in figure.data} == {"one", "two"}
    drawn = np.concatenate([trace.customdata for trace in figure.data])
    assert sorted(drawn.tolist()) == list(range(30_000))


def test_beyond_the_limit_every_point_is_in_one_cell_of_the_picture() -> None:
    points = many(3000)
    figure = coverage_scatter(points, "corpus", most=1000)
    cells = np.concatenate([trace.customdata for trace in figure.data])
    assert len(set(cells)) == len(cells) < 3000
    told = sum(
        int(text.split(" ")[0].replace(",", "")) for trace in figure.data for text in trace.text
    )
    assert told == 3000
    assert list(selected_rows(points, cells.tolist(), most=1000)) == list(range(3000))
    one = selected_rows(points, [int(cells[0])], most=1000)
    assert 1 <= len(one) < 3000


def test_within_the_limit_a_selection_is_of_the_points_themselves() -> None:
    assert list(selected_rows(many(10), [3, 3, 1, 99, -1])) == [1, 3]


def test_contours_are_lines_per_corpus_whose_density_is_a_share() -> None:
    points = many(500)
    figure = coverage_scatter(points, "corpus", contours=True)
    lines = [trace for trace in figure.data if trace.type == "contour"]
    assert [trace.name for trace in lines] == ["density of one", "density of two"]
    for trace in lines:
        assert np.asarray(trace.z).sum() == pytest.approx(1, abs=0.05)  # the edge loses a little


def test_smoothing_keeps_the_mass_inside_and_is_symmetric() -> None:
    counts = np.zeros((41, 41))
    counts[20, 20] = 7
    found = smoothed(counts)
    assert found.sum() == pytest.approx(7)
    assert np.allclose(found, found.T)
    assert np.allclose(found, found[::-1])


def test_clusters_lie_apart_and_are_named_by_their_own_words() -> None:
    generator = np.random.default_rng(0)
    bees = generator.normal(size=(30, 2))
    tea = generator.normal(size=(20, 2)) + 100
    points = np.concatenate([tea, bees])
    labels = cluster_points(points, seed=0)
    assert not set(labels[:20]) & set(labels[20:])
    assert np.bincount(labels)[0] == np.bincount(labels).max()
    again = cluster_points(points, seed=0)
    assert (labels == again).all()
    texts = ["The honey bees of 1999"] * 3 + ["green tea and the bees"] * 2
    # c-TF-IDF: A = (6 + 6) / 2 = 6; of the first, honey 1/2 ln(1 + 6/3), bees 1/2 ln(1 + 6/5)
    # of the second, green and tea 1/3 ln(1 + 6/2), bees 1/3 ln(1 + 6/5)
    assert cluster_names(texts, np.array([0, 0, 0, 1, 1])) == ["honey, bees", "green, tea, bees"]


def test_a_cluster_without_a_word_of_its_own_has_a_number_and_equal_names_are_told_apart() -> None:
    assert cluster_names(["12", "the", "bees", "bees"], np.array([0, 0, 1, 2])) == [
        "cluster 1",
        "bees",
        "bees (3)",
    ]
    assert list(cluster_points(np.zeros((4, 2)), seed=0)) == [0, 0, 0, 0]


def test_points_on_an_older_map_leave_its_missing_columns_empty() -> None:
    old = pa.table({"x": [0.0, 1.0], "y": [0.0, 1.0], "text": ["a bee", "a bee"]})
    new = pa.table({"x": [2.0], "y": [2.0], "text": ["tea"], "source": ["nq"]})
    both = with_clusters(add_points(old, new), seed=0)
    assert both["source"].to_pylist() == [None, None, "nq"]
    assert both.num_rows == len(both["cluster"].to_pylist()) == 3
    assert add_points(both, new).num_rows == 4
