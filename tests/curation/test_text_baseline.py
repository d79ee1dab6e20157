"""The text baseline: worked by hand, and in the report of a run."""

from collections.abc import Callable

import pytest
from app_pages import open_page
from conftest import Ran
from sqlalchemy import select, update
from sqlalchemy.orm import Session
from study_world import make_world

from curation.judging import text_baseline as module
from curation.judging.text_baseline import baseline_sentence, text_baseline
from db.store.store import Store
from db.tables import Item, Passage

ENGLISH = "The {word} stands on the table with the others, and it is of no use to you."
GERMAN = "Der {word} steht auf dem Tisch, und die anderen sind nicht von hier; das ist so."


def write(session: Session, item: Item, words: dict[str, str], *, foreign: str = "") -> None:
    """Give an item the question "teapot kettle" and each passage the words of its label."""
    item.instruction, item.query = "Find the teapot.", "Where is a kettle?"
    for entry in item.candidates:
        label = entry["label"]
        text = (GERMAN if label == foreign else ENGLISH).format(word=words.get(label, "spoon"))
        session.execute(update(Passage).where(Passage.id == entry["passage_id"]).values(text=text))
    session.flush()


def test_the_baseline_is_worked_out_by_hand(store: Store) -> None:
    run_id = make_world(store, groups=1, dropped_every=9)
    with store.write() as session:
        items = list(session.scalars(select(Item).order_by(Item.id)))
        roles = [one.scenario for one in items]
        # the passage of the first role has two of the words, one distractor one: 1, 0, 0
        for item in items:
            write(session, item, {roles[0]: "teapot kettle", "distractor_1": "teapot"})
        assert text_baseline(session, run_id).found == pytest.approx(1 / 3)
        # three passages with one word each, among them two of the three right ones: 1/3, 1/3, 0
        for item in items:
            write(
                session,
                item,
                {roles[0]: "teapot", roles[1]: "kettle", "distractor_2": "teapot"},
                foreign="distractor_2",
            )
        found = text_baseline(session, run_id)
    assert (found.found, found.items, found.groups) == (pytest.approx(2 / 9), 3, 1)
    assert found.chance == pytest.approx(1 / 5) and not found.sampled
    assert found.low < found.found < found.high
    assert found.foreign == 3
    assert "22.2% of 3 items" in baseline_sentence(found)
    assert "3 of them hold an added passage in another language" in baseline_sentence(found)


def test_a_large_run_is_sampled_and_the_sample_is_the_same_each_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_world(store, groups=9)
    monkeypatch.setattr(module, "MAX_GROUPS", 4)
    with store.read() as session:
        found = text_baseline(session, run_id)
        assert (found.groups, found.items, found.sampled) == (4, 12, True)
        assert text_baseline(session, run_id) == found


def test_the_baseline_stands_in_the_run_s_report(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    run_id = make_world(sqlite_store, groups=4)
    with sqlite_store.read() as session:
        found = text_baseline(session, run_id)
    shown = inf("runs", "show", str(run_id), "--json").json["text_baseline"]
    assert (shown["found"], shown["chance"]) == (found.found, found.chance)
    assert "Shared words alone" in inf("runs", "show", str(run_id)).out
    at = open_page("curate", run=str(run_id))
    at.toggle(key="curate.show_baseline").set_value(True).run()
    assert any("Shared words alone" in each.value for each in at.markdown)


def test_a_run_without_items_has_no_baseline(sqlite_store: Store, inf: Callable[..., Ran]) -> None:
    run_id = make_world(sqlite_store, groups=0)
    assert inf("runs", "show", str(run_id), "--json").json["text_baseline"] is None
