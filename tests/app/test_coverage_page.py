"""The Coverage page: numbers beside the map where several corpora share it."""

import pandas as pd
import pytest
import streamlit as st
from app_pages import open_page, words
from grown_dataset import grown
from measured import mapped
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

from analysis.found.texts import CorpusPoints
from analysis.map.coverage import with_marks
from analysis.map.difference import VERDICTS, Layers
from app.corpora.map.canvas.card import hover_data
from app.corpora.map.points import Searched, rows_with
from app.corpora.map.topics import compared_rows, short_names, topic_rows
from db.corpus.texts import pair_texts, run_texts
from db.run.groups import groups_by_run
from db.shape import INF_IR
from db.store.store import Store
from db.study.studies import add_study
from db.tables import Group, Item, Pair, Passage, Review


def test_two_corpora_on_one_map_have_their_shares_beside_it(sqlite_store: Store) -> None:
    grown(sqlite_store)
    grown(sqlite_store, "other")
    mapped(sqlite_store, "demo", "other")
    page = open_page("coverage")
    assert not page.exception
    frames = [frame.value for frame in page.dataframe]
    shares = next(frame for frame in frames if "Share of the map" in frame)
    assert set(shares["Corpus"]) == {"demo", "other"}
    assert shares["Share of the map"].between(0, 1).all()
    assert set(shares["Compared with"]) == {"demo", "other"}
    assert shares["Share of the map, own halves"].between(0, 1).all()
    assert any("grow with the number of texts" in each.label for each in page.expander)


def selected_on_the_map() -> None:
    import pandas as pd
    import streamlit as st

    from analysis.map.coverage import with_marks
    from analysis.map.picture import map_payload
    from app.corpora.map.canvas.card import draw_map_card, selected_rows
    from app.corpora.map.points import Searched

    points = with_marks(
        pd.DataFrame(
            {
                "x": [0.0, 1.0, 2.0],
                "y": [0.0, 1.0, 2.0],
                "corpus": "demo",
                "field": "query",
                "role": "positive",
                "text": ["a", "b", "c"],
                "group_id": None,
            }
        )
    )
    draw_map_card(map_payload(points), points, Searched([], ()), key="coverage.card")
    st.text(selected_rows(points, Searched([], ()), key="coverage.card").tolist())


def test_a_map_without_a_selection_forgets_one_of_another_map(sqlite_store: Store) -> None:
    page = AppTest.from_function(selected_on_the_map, default_timeout=180)
    box = {"kind": "box", "x": [0, 1], "y": [0, 1]}
    page.session_state["coverage.shape"] = ("coverage.card of another map", box)
    page.run()
    assert not page.exception
    assert page.text[0].value == "[]"
    page.session_state["coverage.shape"] = ("coverage.card", box)
    page.run()
    assert page.text[0].value == "[0, 1]"


def test_the_hover_text_belongs_to_an_existing_point() -> None:
    points = with_marks(
        pd.DataFrame(
            {"corpus": ["demo"], "field": "text", "role": "text", "text": "<b>", "group_id": None}
        )
    )
    told = hover_data(points, {"row": 0, "request": 3})
    assert (told["request"], told["lines"]) == (3, [["", "<b>"]])
    for asked in (None, {}, {"row": 1}, {"row": -1}, {"row": "0"}, {"row": None}):
        assert hover_data(points, asked) == {}


def selection() -> None:
    import pandas as pd

    from analysis.map.coverage import with_marks
    from app.access.session_user import show_notices
    from app.corpora.map.actions import shown_rows
    from app.corpora.map.selection import draw_selection
    from app.kit.figure import Origin

    show_notices()
    points = with_marks(
        pd.DataFrame(
            {
                "x": [0.0, 1.0, 2.0, 3.0],
                "y": [0.0, 1.0, 2.0, 3.0],
                "corpus": "demo",
                "field": "query",
                "role": "positive",
                "text": ["=cmd", "<b>", "c", "d"],
                "group_id": [1, 2, 2, None],
            }
        )
    )
    import streamlit as st

    st.session_state["coverage.points"] = len(points)
    st.text(str(shown_rows(7, len(points))))
    draw_selection(points, [0, 1, 2, 3], Origin("v", None, "inf"), 7)


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of links to other pages, which a script of its own does not have."""
    found: list[str] = []
    monkeypatch.setattr(st, "page_link", lambda page, label, **_: found.append(label))
    return found


def test_a_selection_is_listed_and_can_be_hidden_or_shown_alone(
    sqlite_store: Store, linked: list[str]
) -> None:
    grown(sqlite_store)
    page = AppTest.from_function(selection, default_timeout=180).run()
    assert not page.exception
    assert "**4 texts** of 2 groups" in [each.value for each in page.markdown]
    assert "Open 2 groups" in linked
    assert list(page.dataframe[0].value["Group"])[:2] == ["groups?group=1", "groups?group=2"]
    assert page.text[0].value == "[0, 1, 2, 3]"
    page.button(key="coverage.hide").click().run()
    assert page.text[0].value == "[]"
    page.button(key="coverage.only").click().run()
    assert page.text[0].value == "[0, 1, 2, 3]"


@pytest.mark.usefixtures("linked")
def test_an_excluded_selection_is_rejected_with_a_reason_and_never_without(
    sqlite_store: Store,
) -> None:
    grown(sqlite_store)
    page = AppTest.from_function(selection, default_timeout=180).run()
    page.button(key="coverage.reject").click().run()
    assert "reject needs a reason" in page.error[0].value
    page.text_input(key="coverage.reason").set_value("off topic").run()
    page.button(key="coverage.reject").click().run()
    assert "Rejected 2 groups" in page.success[0].value
    with sqlite_store.read() as session:
        found = session.scalars(select(Review).order_by(Review.group_id)).all()
    assert [(each.group_id, each.action, each.reason) for each in found] == [
        (1, "reject", "off topic"),
        (2, "reject", "off topic"),
    ]


def test_the_groups_of_a_selection_are_told_by_run(store: Store) -> None:
    grown(store, groups=3)
    grown(store, "other", groups=2)
    with store.read() as session:
        assert groups_by_run(session, [4, 5, 1]) == {2: [4, 5], 1: [1]}
        sources = {row.source for row in run_texts(session, 1, INF_IR, verdicts=("kept",))}
        assert sources == {row.source for row in pair_texts(session, 1)} == {""}


@pytest.mark.usefixtures("linked")
def test_a_group_that_the_user_may_judge_is_not_rejected_on_the_map(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 2)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=2, overlap=1)
        session.commit()
    page = AppTest.from_function(selection, default_timeout=180).run()
    page.text_input(key="coverage.reason").set_value("off topic").run()
    page.button(key="coverage.reject").click().run()
    assert "hidden from you" in page.error[0].value
    with sqlite_store.read() as session:
        assert not session.scalars(select(Review)).all()


def test_the_map_says_how_many_texts_are_hidden(sqlite_store: Store) -> None:
    grown(sqlite_store)
    mapped(sqlite_store, "demo")
    assert "you may judge" not in words(open_page("coverage"))
    with sqlite_store.write() as session:
        group = session.scalars(select(Group).order_by(Group.id)).first()
        assert group is not None
        item = Item(
            group_id=group.id,
            scenario="positive",
            expected="positive",
            instruction="i",
            query="q",
            candidates=[],
        )
        session.add(item)
        session.flush()
        add_study(session, run_id=group.run_id, item_ids=[item.id], overlap=1)
        session.commit()
    shown = words(open_page("coverage"))
    assert "not shown: of groups that you may judge in a study that is not closed" in shown


def test_a_search_finds_what_stands_behind_the_start_of_a_text(store: Store) -> None:
    run_id = grown(store, groups=3)
    with store.write() as session:
        passage = session.scalars(select(Passage).order_by(Passage.id)).first()
        assert passage is not None
        passage.text = "a long text " * 40 + "with NEEDLES_100% at its end"
        session.commit()
    corpora = [CorpusPoints(corpus="demo", run_id=run_id, dataset_id=1, offline=True)]
    points = with_marks(
        pd.DataFrame(
            {
                "group_id": [1, 1, 2, None],
                "pair_id": [1, 1, 2, 1],
                "role": ["positive", "instruction_negative", "positive", "positive"],
                "field": ["passage", "passage", "passage", "passage"],
                "text": ["a long text", "x", "the needles", "a long text"],
            }
        )
    )
    assert rows_with(points, Searched(corpora, ()), "needles").tolist() == [0, 2]
    assert rows_with(points, Searched(corpora, ()), "needles_100%").tolist() == [0]
    assert rows_with(points, Searched(corpora, ()), "needlesX100").tolist() == []
    assert rows_with(points, Searched(corpora, ()), "(").tolist() == []  # no pattern
    assert rows_with(points, Searched(corpora, ()), "n").tolist() == []  # too short
    pairs = [CorpusPoints(corpus="pairs", dataset_id=1, offline=True)]
    assert rows_with(points, Searched(pairs, ()), "needles").tolist() == [2, 3]


def test_a_map_shows_the_kept_share_also_beside_pairs_that_have_no_group(
    sqlite_store: Store,
) -> None:
    grown(sqlite_store)
    with sqlite_store.write() as session:
        passage = session.scalars(select(Passage)).first()
        of = {"dataset_id": passage.dataset_id, "passage_id": passage.id}
        session.add(Pair(external_id="x", query="y", **of))
        session.commit()
    assert open_page("coverage").selectbox("coverage.groups").value == "all"
    mapped(sqlite_store, "demo", pairs=True, groups="all")
    page = open_page("coverage")
    assert not page.exception
    (ground,) = [each for each in page.selectbox if each.label == "Coloured ground"]
    assert ground.value == VERDICTS


def test_the_topics_say_how_many_of_their_groups_were_kept() -> None:
    points = pd.DataFrame(
        {
            "x": [0.0] * 5,
            "y": [0.0] * 5,
            "cluster": ["bees", "bees", "bees", "tea", "snow"],
            "verdict": ["kept", "dropped", "kept", "dropped", None],
        }
    )
    rows = topic_rows(points)
    assert [row["Topic"] for row in rows] == ["bees", "snow", "tea"]
    assert rows[0]["Kept"] == pytest.approx(200 / 3)
    assert rows[2]["Kept"] == 0
    assert "Kept" not in rows[1]  # pairs have no verdict
    kept = topic_rows(points[points["verdict"] == "kept"])
    assert "Kept" not in kept[0]


def test_the_shares_of_two_layers_stand_under_their_short_names() -> None:
    points = pd.DataFrame(
        {"corpus": ["demo, run 1", "demo, run 2"], "cluster": ["bees", "tea"], "x": 0.0, "y": 0.0}
    )
    (row, _) = compared_rows(points, Layers("demo, run 1", "demo, run 2"))
    assert (row["Topic"], row["run 1"], row["run 2"]) == ("bees", 100, 0)
    assert short_names("demo", "other, run 2") == ("demo", "other, run 2")
    assert short_names("a, run 1", "b, run 1") == ("a, run 1", "b, run 1")
