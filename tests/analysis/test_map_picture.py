"""The map: colours, contours, shapes, hover text, clusters named by words."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis.map.clusters import cluster_names, cluster_points, nearest_texts, with_clusters
from analysis.map.coverage import add_points, with_marks
from analysis.map.density import CELLS, contour_lines, density_lines, smoothed
from analysis.map.difference import VERDICTS, Layers
from analysis.map.picture import map_payload, point_hover
from app.corpora.map.canvas.card import rows_inside

POINTS = with_marks(
    pd.DataFrame(
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
)


def unpacked(payload: bytes) -> tuple[dict[str, Any], np.ndarray, np.ndarray, np.ndarray]:
    """Header, points (n, 2), pieces of lines (m, 4), categories: as canvas/card.js reads them."""
    length = int.from_bytes(payload[:4], "little")
    header = json.loads(payload[4 : 4 + length])
    points, place = header["points"], 4 + length
    pieces = sum(line["pieces"] for line in header["lines"])
    assert place % 4 == 0
    xy = np.frombuffer(payload, "<f4", 2 * points, place).reshape(2, points).T
    lines = np.frombuffer(payload, "<f4", 4 * pieces, place + 8 * points).reshape(-1, 4)
    place += 8 * points + 16 * pieces
    if header["difference"]:
        place += 4 * header["difference"]["cells"] ** 2
    codes = np.frombuffer(payload, "<u2", points, place)
    assert len(payload) == place + 2 * points
    return header, xy, lines, codes


def test_every_point_is_sent_with_its_place_and_the_colour_of_its_role() -> None:
    header, xy, _, codes = unpacked(map_payload(POINTS))
    categories = header["categories"]
    assert [each["name"] for each in categories] == ["I+", "P2-", "text"]
    assert [each["points"] for each in categories] == [1, 1, 1]
    assert len({each["colour"] for each in categories}) == 3
    assert xy.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert codes.tolist() == [0, 1, 2]


def test_the_map_can_be_coloured_by_corpus_or_verdict() -> None:
    header, _, _, codes = unpacked(map_payload(POINTS, "corpus"))
    assert [each["name"] for each in header["categories"]] == ["demo", "other"]
    assert codes.tolist() == [0, 0, 1]
    header, _, _, codes = unpacked(map_payload(POINTS, "verdict"))
    assert [each["name"] for each in header["categories"]] == ["kept", "–"]
    assert codes.tolist() == [0, 0, 1]


@pytest.mark.parametrize("number", [0, 1, 30_000])
def test_the_counts_of_the_legend_are_those_of_the_points_and_equal_points_equal_bytes(
    number: int,
) -> None:
    points = many(number)
    payload = map_payload(points, "corpus", contours=True)
    assert payload == map_payload(many(number), "corpus", contours=True)
    header, xy, _, codes = unpacked(payload)
    assert sum(each["points"] for each in header["categories"]) == number == len(codes)
    assert (xy == points[["x", "y"]].to_numpy()).all()
    names = [each["name"] for each in header["categories"]]
    assert [names[code] for code in codes] == points["corpus"].tolist()


def test_the_hover_of_a_point_is_the_triplet_it_belongs_to() -> None:
    found = {
        ("instruction", "positive"): "Mention <bees>.",
        ("query", "positive"): "who sells honey",
        ("passage", "positive"): "p " * 200,
        ("instruction", "instruction_negative"): "Omit bees.",
        ("passage", "instruction_negative"): "no insects here",
    }
    points = with_marks(
        pd.DataFrame(
            {
                "corpus": "demo",
                "field": [field for field, _ in found],
                "role": [role for _, role in found],
                "group_id": 7,
                "text": list(found.values()),
            }
        )
    )
    by_sign = {point_hover(points, row)["sign"]: point_hover(points, row) for row in range(5)}
    assert by_sign["P1-"] == {
        "sign": "P1-",
        "corpus": "demo",
        "group": 7,
        "lines": [["I-", "Omit bees."], ["Q+", "who sells honey"], ["P1-", "no insects here"]],
    }
    assert by_sign["Q+"]["lines"][0] == ["I+", "Mention <bees>."]
    assert by_sign["Q+"]["lines"][2][1].endswith("…")
    json.dumps(by_sign)
    alone = point_hover(POINTS, 2)
    assert alone == {"sign": "text", "corpus": "other", "group": None, "lines": [["", "x"]]}


def test_the_hover_lines_of_a_group_are_those_of_its_own_corpus() -> None:
    twin = POINTS.assign(corpus="twin", text="elsewhere")
    points = pd.concat([POINTS, twin], ignore_index=True)
    lines = point_hover(points, 0)["lines"]
    assert lines == [["I+", "Only <b>short</b> ones"]]


def many(number: int) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    return with_marks(
        pd.DataFrame(
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
    )


def test_a_box_holds_the_stored_points_inside_it_and_its_edges() -> None:
    points = many(5000)
    box = {"kind": "box", "x": [-0.5, 1.0], "y": [0.0, 2.0], "hidden": [], "colour": "corpus"}
    expected = [
        row
        for row, (x, y) in enumerate(zip(points["x"], points["y"], strict=True))
        if -0.5 <= x <= 1.0 and 0.0 <= y <= 2.0
    ]
    assert rows_inside(points, box).tolist() == expected
    edge = {"kind": "box", "x": [0.0, 1.0], "y": [1.0, 1.0]}
    assert rows_inside(POINTS, edge).tolist() == [1]
    assert rows_inside(points, None).tolist() == []


def test_a_lasso_around_a_box_selects_what_the_box_does_and_leaves_out_a_dent() -> None:
    points = many(5000)
    path = [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]
    lasso = rows_inside(points, {"kind": "lasso", "path": path})
    box = rows_inside(points, {"kind": "box", "x": [-1.0, 1.0], "y": [-1.0, 1.0]})
    assert lasso.tolist() == box.tolist()  # no point of a normal draw lies on an edge
    turned = rows_inside(points, {"kind": "lasso", "path": path[::-1]})
    assert turned.tolist() == lasso.tolist()
    dented = rows_inside(points, {"kind": "lasso", "path": [*path, [0.0, 0.0]]})
    x, y = points["x"], points["y"]
    in_dent = (x < 0) & (abs(y) < -x)
    assert dented.tolist() == [row for row in lasso.tolist() if not in_dent[row]]
    assert rows_inside(points, {"kind": "lasso", "path": path[:2]}).tolist() == []


def test_a_selection_leaves_out_what_the_legend_hides() -> None:
    points = many(300)
    every = {"kind": "box", "x": [-9, 9], "y": [-9, 9], "colour": "corpus", "hidden": ["one"]}
    assert rows_inside(points, every).tolist() == np.flatnonzero(points["corpus"] == "two").tolist()


def test_the_line_of_a_level_around_a_hill_is_a_closed_circle() -> None:
    axis = np.linspace(-2, 2, 200)
    hill = -np.hypot(axis[:, None], axis[None, :])
    pieces = contour_lines(hill, -1.0, axis, axis)
    ends = pieces.reshape(-1, 2)
    assert np.allclose(np.hypot(*ends.T), 1, atol=1e-3)
    length = np.hypot(*(pieces[:, :2] - pieces[:, 2:]).T).sum()
    assert length == pytest.approx(2 * np.pi, rel=1e-3)
    _, times = np.unique(ends.round(9), axis=0, return_counts=True)
    assert set(times.tolist()) == {2}  # every piece goes on at both ends
    assert len(contour_lines(hill, 5.0, axis, axis)) == 0


def test_a_line_lies_between_two_grid_points_in_proportion() -> None:
    side = np.array([0.0, 1.0])
    # heights 0 and 4 along x, level 1: a quarter of the way, at all y
    pieces = contour_lines(np.array([[0.0, 0.0], [4.0, 4.0]]), 1.0, side, side)
    assert pieces[:, [0, 2]].tolist() == [[0.25, 0.25]]
    assert sorted(pieces[0, [1, 3]].tolist()) == [0, 1]
    # a saddle, high at (0, 0) and (1, 1): a line around each, half way
    saddle = contour_lines(np.array([[1.0, 0.0], [0.0, 1.0]]), 0.5, side, side)
    assert len(saddle) == 2


def test_contours_are_lines_per_corpus() -> None:
    lines = density_lines(many(500))
    assert [line["name"] for line in lines] == ["one", "two"]
    assert all(len(line["pieces"]) for line in lines)
    header, _, pieces, _ = unpacked(map_payload(many(500), "corpus", contours=True))
    assert [line["pieces"] for line in header["lines"]] == [len(line["pieces"]) for line in lines]
    assert np.allclose(pieces, np.concatenate([line["pieces"] for line in lines]), atol=1e-6)


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


def test_a_cluster_without_a_word_of_its_own_has_a_number_and_equal_names_are_numbered() -> None:
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


def test_a_cluster_in_another_language_is_not_named_by_its_function_words() -> None:
    german = ["die Bienen und der Honig sind die Speise der Bienen"] * 3
    english = ["a board game: every player moves tokens along some board and throws one die"] * 3
    names = cluster_names([*german, *english], np.array([0, 0, 0, 1, 1, 1]))
    assert set(names[0].split(", ")) == {"bienen", "honig", "speise"}
    assert names[1].startswith("board, ")
    assert cluster_names(english, np.zeros(3, np.int64)) == ["board, die, game"]


GERMAN = (
    "Ich möchte wissen, warum die Suppe etwa zwei oder drei Stunden kochen muss",
    "Warum gibt es in der Suppe zwei bis drei Löffel Salz und nicht mehr?",
    "Suppe kochen wie lange",
)
SPANISH = (
    "Quiero saber por qué la sopa de la abuela lleva dos o tres dientes de ajo",
    "De la sopa se sirven dos platos, y de los tres ajos que lleva ninguno es para mí",
    "sopa de ajo cómo se hace",
)
ENGLISH = (
    "Onions need an hour, then bread goes into bowls",
    "Which vegetables shall someone peel before roasting?",
    "Simmer stock slowly until marrow dissolves",
    "Her grandmother ladled broth over dumplings",
    "Season lentils after boiling, never earlier",
    "Please list spices sold in markets",
)
BEES = ("A honey bee of the hive collects nectar",) * 4


def test_few_german_and_spanish_texts_among_english_ones_do_not_name_it_by_function_words() -> None:
    texts = [*GERMAN, *SPANISH, *ENGLISH * 2, *BEES]
    labels = np.array([0] * 18 + [1] * 4)
    mixed, bees = (set(name.split(", ")) for name in cluster_names(texts, labels))
    assert mixed == {"suppe", "sopa", "ajo"}
    assert bees <= {"honey", "bee", "hive", "collects", "nectar"}


def test_numbers_in_words_and_requests_name_no_german_or_spanish_cluster() -> None:
    german, spanish = cluster_names([*GERMAN, *SPANISH], np.array([0] * 3 + [1] * 3))
    assert set(german.split(", ")) == {"suppe", "kochen", "löffel"}
    assert spanish.split(", ")[:2] == ["sopa", "ajo"]
    assert not set(spanish.split(", ")) & {"dos", "tres", "por", "qué", "que"}


def test_a_cluster_of_function_words_alone_is_named_by_its_language() -> None:
    texts = ["Was ist das, und warum?", "Wie war das denn so?", "12", "honey"]
    names = cluster_names(texts, np.array([0, 1, 2, 3]))
    assert names == ["German texts", "German texts (2)", "cluster 3", "honey"]


def test_where_words_say_nothing_the_three_instructions_nearest_to_the_middle_do() -> None:
    """A German island among English texts: its words set it apart from English alone."""
    texts = [*GERMAN, *("Suppe " + text for text in GERMAN), *("Salz " + text for text in GERMAN)]
    texts += ["Ask somebody about the old work today, and then ask her about her garden"] * 9
    labels = np.array([0] * 9 + [1] * 9)
    points = np.zeros((18, 2))
    points[:9, 0] = [0.0, 3.0, 0.1, 0.2, 4.0, 0.0, 0.0, 2.0, 0.0]
    among = np.array([True, True, False] * 3 + [False] * 9)
    nearest = nearest_texts(texts, points, labels, among)
    assert nearest[1] == []
    german, english = cluster_names(texts, labels, nearest)
    # the middle is at 1.03: .2 is nearest, then 2, then 0; a passage, at 0 and .1, names nothing
    assert german == (
        "Suppe Ich möchte wissen, warum… / Salz Warum gibt es in der Suppe… / "
        "Ich möchte wissen, warum die…"
    )
    # no instruction there: what words it has name it
    assert english == "ask, garden, somebody"


def test_a_fragment_of_a_contraction_names_nothing() -> None:
    texts = ["I don't grow them, he doesn't, and they didn't: roses"] * 3
    assert cluster_names(texts, np.zeros(3, np.int64)) == ["grow, roses"]


def test_every_cluster_has_its_name_in_its_middle_the_largest_first() -> None:
    points = many(300)
    points["cluster"] = np.where(points["x"] > 0.5, "<b>bees</b>", "tea")
    header, _, _, _ = unpacked(map_payload(points))
    names = header["labels"]
    assert [each["name"] for each in names] == ["tea", "<b>bees</b>"]
    assert sum(each["points"] for each in names) == 300
    assert names[1]["x"] == pytest.approx(points["x"][points["x"] > 0.5].median(), abs=1e-6)
    assert unpacked(map_payload(many(3)))[0]["labels"] == []  # a map older than clusters


def test_two_layers_have_a_difference_only_where_both_are_on_the_map() -> None:
    points = many(400)
    points.loc[points["corpus"] == "two", "x"] += 9
    payload = map_payload(points, layers=Layers("one", "two"))
    header, _, _, codes = unpacked(payload)
    assert header["difference"]["layers"] == ["denser in one", "denser in two"]
    assert min(header["difference"]["clear"]) > 50
    assert len(codes) == 400
    assert unpacked(map_payload(points, layers=Layers("one", "gone")))[0]["difference"] is None
    assert unpacked(map_payload(points))[0]["difference"] is None


def test_the_kept_share_is_a_ground_of_its_own() -> None:
    points = many(400)
    points["corpus"] = "one"
    points["verdict"] = np.where(points["x"] > points["x"].median(), "kept", "dropped")
    points.loc[:20, "verdict"] = "waiting"
    header, *_ = unpacked(map_payload(points, layers=VERDICTS))
    assert header["lines"][-1]["name"] == "beyond chance"
    assert min(header["difference"]["clear"]) > 50
    low, whole, high = header["difference"]["shares"]
    assert header["difference"]["layers"] == [f"{100 * n:.0f} % kept" for n in (high, low)]
    assert low < 0.1 and high > 0.9 and whole == pytest.approx(0.5, abs=0.03)
    points["verdict"] = "kept"
    assert unpacked(map_payload(points, layers=VERDICTS))[0]["difference"] is None


def test_a_kept_share_within_chance_is_heat_without_a_line() -> None:
    points = many(400)
    points["verdict"] = np.where(np.arange(400) % 16, "kept", "dropped")
    payload = map_payload(points, layers=VERDICTS)
    header, *_ = unpacked(payload)
    assert header["difference"]["clear"] == [0, 0] and not header["lines"]
    cells = np.frombuffer(payload[-400 * 2 - CELLS**2 * 4 : -400 * 2], "<f4")
    low, whole, high = header["difference"]["shares"]
    assert low < whole < high <= 1 and whole == pytest.approx(375 / 400)
    assert (np.nanmin(cells), np.nanmax(cells)) == pytest.approx((low, high))
    assert header["difference"]["places"] == np.isfinite(cells).sum() < CELLS**2
    points["corpus"] = np.where(np.arange(400) % 16, "one", "two")
    of_corpora = map_payload(points, layers=Layers("one", "two"))
    assert unpacked(of_corpora)[0]["difference"]["shares"] is None
    assert not np.frombuffer(of_corpora[-400 * 2 - CELLS**2 * 4 : -400 * 2], "<f4").any()
