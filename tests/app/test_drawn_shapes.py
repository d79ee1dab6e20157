"""Maps, diversity and pages of a run name its texts as its own shape does."""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from curation_runs import add_dataset, run_curation
from openai_server import Server
from records_world import list_groups

from analysis.figures.figures import SHADES
from analysis.files.corpora import Corpus, load_corpora
from analysis.map.coverage import points_frame, points_table, to_bytes
from analysis.map.picture import coloured, point_hover
from analysis.map.printed_map import printed_map
from analysis.text.diversity import describe_corpus
from analysis.text.diversity_tables import number_rows
from app.groups.group import draw_listed, draw_triplets
from curation.recipe.recipe import load_recipe
from curation.release import findings
from db.corpus.browsing import texts_with
from db.run.group_detail import get_group
from db.store.store import Store

SHAPE = load_recipe("promptriever").shape


@pytest.fixture
def run_id(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    add_dataset(sqlite_store, pairs=6)
    asked = {"dataset": "small", "provider": "openai", "recipe": "promptriever"}
    with Server(schema="taken") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield run_curation(sqlite_store, **asked, settings=["model=small"])["run_id"]


def corpus_of(store: Store, run_id: int) -> Corpus:
    with store.read() as session:
        return load_corpora(session, {"run": run_id})[0]


def points_of(*corpora: Corpus) -> pd.DataFrame:
    texts = [row.text for corpus in corpora for row in corpus.texts]
    places = {text: np.array([place, place % 7.0]) for place, text in enumerate(texts)}
    return points_frame(to_bytes(points_table(corpora, places, set())))


def test_a_map_names_and_colours_the_texts_of_the_runs_shape(
    sqlite_store: Store, run_id: int
) -> None:
    corpus = corpus_of(sqlite_store, run_id)
    points = points_of(corpus)
    colours = coloured(points, "role")
    assert list(colours) == ["I", "Q", "P+", "N"]
    assert list(colours.values()) == [
        SHADES["instruction"][0],
        SHADES["query"][0],
        *SHADES["passage"][:2],
    ]
    assert coloured(points[points["sign"] == "N"], "role") == {"N": SHADES["passage"][1]}
    row = int(np.flatnonzero(points["sign"] == "N")[0])
    hover = point_hover(points, row)
    assert [sign for sign, _ in hover["lines"]] == ["I", "Q", "N"]
    assert hover["lines"][2][1].startswith(points["text"][row][:100])
    with sqlite_store.read() as session:
        found = texts_with(session, {run_id: SHAPE}, points["text"][row][-80:])
    assert (points["group_id"][row], "N", "passage") in found


def test_a_maps_picture_on_a_card_is_the_printed_map_of_its_points(
    sqlite_store: Store, run_id: int
) -> None:
    """One painter, one description: the colours are those of `coloured`, for all kinds of sight."""
    points = points_of(corpus_of(sqlite_store, run_id))
    picture = printed_map(points, "role", "svg").decode()
    assert set(coloured(points, "role").values()) <= set(re.findall("#[0-9a-f]{6}", picture))
    with sqlite_store.read() as session, patch.object(findings, "_of_run") as of_run:
        of_run.return_value.payload = to_bytes(pa.Table.from_pandas(points))
        plan = SimpleNamespace(runs=[1], first=None)
        drawn = findings.coverage_picture(session, cast(Any, plan))
    assert drawn == printed_map(points, "role", "png", findings.CARD_DOTS_PER_INCH)


def test_diversity_has_a_row_for_each_text_of_the_shape(sqlite_store: Store, run_id: int) -> None:
    corpus = corpus_of(sqlite_store, run_id)
    found = describe_corpus(corpus, lambda texts: np.eye(len(texts)))
    counts = {row["Text"]: row["Texts"] for row in number_rows([found])}
    assert counts.keys() == {
        *("instruction, all", "query, all", "passage, all"),
        *("I", "Q", "P+", "N"),
    }
    assert counts["P+"] == counts["Q"] and counts["passage, all"] == counts["P+"] + counts["N"]


@pytest.mark.long
def test_texts_of_two_shapes_stand_on_a_map_by_their_own_names(
    sqlite_store: Store, run_id: int
) -> None:
    other = run_curation(sqlite_store, dataset="small", provider="offline", recipe="offline")
    points = points_of(*(corpus_of(sqlite_store, each) for each in (run_id, other["run_id"])))
    assert {"I", "I+", "N", "P1-"} <= set(points["sign"])


def test_a_label_explains_the_text_as_its_shape_does(sqlite_store: Store, run_id: int) -> None:
    with sqlite_store.read() as session:
        group = next(row.id for row in list_groups(session, run_id).rows if row.verdict == "kept")
        shown = get_group(session, group)
    with patch("streamlit.html") as html:
        draw_triplets(shown)
        draw_listed(shown)
    drawn = "".join(call.args[0] for call in html.call_args_list)
    for sign in ("Q", "P+", "I", "N"):
        assert f'<abbr title="{SHAPE.slots[sign].meaning}">' in drawn, sign
    assert "the real passage that answers (I+, Q+)" not in drawn
