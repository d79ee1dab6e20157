"""The model server and its client: started on demand, guarded by a token, gone when idle."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from app_pages import open_page, send_cookies, words
from evaluation_rows import RECORD
from full_store import NASTY
from sqlalchemy import delete, select
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

from app.access.identity import Actor
from app.models.try_it import moves, verdict
from app.operations import try_it as model_client
from app.operations.try_it import Search, search, search_with
from db.errors import BadInput, NotFound, Refused
from db.machine import of_this_machine
from db.people.rights import Rights
from db.store.store import Store, open_store
from db.tables import (
    Checkpoint,
    Evaluation,
    Group,
    Item,
    Job,
    OpenedGroup,
    Passage,
    Release,
    Run,
    Study,
    StudyItem,
)
from trainer.evaluate.following import INSTRUCTION_FLIP
from trainer.model.tiny import PREFIX
from trainer.settings.table import DEFAULT_BASE_MODEL

MODEL = f"{PREFIX}bert"


@pytest.fixture
def world(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A data set to search in; a server left over is ended."""
    monkeypatch.setenv("INF_MODEL_SERVER_IDLE_SECONDS", "20")
    make_world(sqlite_store)
    yield sqlite_store
    for process in model_client._started:
        process.kill()
        process.wait()
    model_client._started.clear()


def state() -> dict:
    return json.loads(of_this_machine("model-server.json").read_text())


@pytest.mark.long
def test_the_server_starts_on_demand_answers_its_token_only_and_ends_when_idle(
    world: Store,
) -> None:
    found = search_with(
        world, MODEL, Search(dataset="world", instruction="Find it.", query="tea", results=3)
    )
    assert len(found.hits) == 3 and found.passages == 6
    assert found.hits[0].score >= found.hits[1].score >= found.hits[2].score
    said = state()
    assert of_this_machine("model-server.json").stat().st_mode & 0o077 == 0
    url = f"http://127.0.0.1:{said['port']}"
    assert httpx.get(f"{url}/health").status_code == 401
    assert httpx.post(f"{url}/search", json={}, headers={"Authorization": "Bearer x"}).is_error
    for model, dataset, query, words_of_it in (
        (MODEL, "nowhere", "tea", "no dataset"),
        (MODEL, "world", "  ", "no query"),
        ("/no/such/model", "world", "tea", "/no/such/model"),
    ):
        with pytest.raises(BadInput, match=words_of_it):
            search_with(world, model, Search(dataset=dataset, query=query))
    assert state()["pid"] == said["pid"]  # one server for all
    deadline = time.monotonic() + 60
    while model_client._started[0].poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not of_this_machine("model-server.json").exists()


def test_arrows_say_how_a_ranking_moved() -> None:
    assert moves(["a", "b", "c", "d"], ["b", "c", "a", "d"]) == ["▲2", "▼1", "▼1", ""]
    assert moves(["a"], ["b"]) == ["new"]
    assert moves(["a"], None) == [""]


def test_the_page_says_in_words_what_is_missing(world: Store) -> None:
    at = open_page("try_it")
    assert "Change the instruction" in words(at)


def example(group: int, query: str, after: tuple[str, str] = ("P+", "P1-")) -> dict[str, Any]:
    """As a training stores it: the base ranks P+ first under both instructions."""
    texts = {"Q+": query, "I+": "in figures", "I-": NASTY, "P+": "80 metres", "P1-": "oak"}
    return {"group": str(group), "texts": texts, "before": ("P+", "P+"), "after": after}


def found(works: list[dict[str, Any]], fails: list[dict[str, Any]]) -> dict[str, Any]:
    """What a training of ten groups stores."""
    kinds = {"works": works, "fails": fails}
    counts = {"groups": 10, "followed_before": 1, "followed": 10 - len(fails)}
    return counts | {key: {"count": len(of), "examples": of} for key, of in kinds.items()}


def add_training(store: Store, shown: dict[str, Any], config: dict[str, Any] | None = None) -> None:
    """A checkpoint of the world's release whose job shows this."""
    with store.write() as session:
        run = session.scalars(select(Run)).one()
        job = Job(kind="train", status="done", config={}, started_by="another", shown=shown)
        release = Release(
            dataset_id=run.dataset_id,
            name="world-1",
            content_sha256="0" * 64,
            path="/nowhere/world-1",
            format="parquet",
            filter={},
            counts={},
            card="",
            offline=True,
        )
        session.add_all([job, release])
        session.flush()
        about = {"config": config or {}, "summary": {}, "base_model": "the/base"}
        session.add(Checkpoint(path="/the/trained", job_id=job.id, release_id=release.id, **about))
        session.commit()


def boxes(at: AppTest) -> str:
    return "\n".join(str(each.value) for each in at.info)


def test_the_page_opens_with_an_example_where_it_works_and_one_where_it_fails(
    world: Store,
) -> None:
    fails = [example(2, "what fails", ("P+", "P+"))]
    add_training(world, {"examples": found([example(1, "what works")], fails)})
    at = open_page("try_it")
    page = words(at)
    assert "Of 10 held\\-out groups" in page
    assert [tab.label for tab in at.tabs] == ["Where it now works (1)", "Where it fails (1)"]
    assert "what works" in page and "what fails" in page
    assert "&lt;script&gt;" in page and "<script>" not in page
    assert "the group with the fewest characters is shown" in page
    with world.read() as session:  # who read them is never given their items
        assert set(session.scalars(select(OpenedGroup.group_id))) == {1, 2}
    at.button(key="try_it.use_fails").click().run()
    assert at.text_input(key="try_it.query").value == "what fails"
    assert at.text_input(key="try_it.instruction").value == "in figures"


@pytest.mark.parametrize("page", ["home", "try_it", "train"])
def test_examples_are_in_the_language_of_who_looks_or_the_first_where_none_is(
    world: Store, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    passages = {
        "en": "A salt of metal is dissolved in warm water before the wool is put into it.",
        "de": "Ein Salz des Metalls wird in warmem Wasser gelöst, bevor die Wolle hineinkommt.",
    }
    works = []
    for number, (spoken, passage) in enumerate(passages.items(), 1):
        one = example(number, f"query in {spoken}")
        works.append(one | {"texts": one["texts"] | {"P+": passage, "P1-": passage}})
    shown = found(works, [])
    none = {"count": 0, "examples": []}
    shown |= {"gained": 2, "gains": shown["works"], "lost": none, "unchanged": none}
    add_training(world, {"examples": shown})
    with world.write() as session:
        session.scalars(select(Job)).one().result = {
            "held_out": {"groups": 10, "before": {"strict": 0.5}, "after": {"strict": 0.75}}
        }
        for model, checkpoint in (("the/base", None), ("/the/trained", 1)):
            session.add(
                Evaluation(
                    model=model,
                    benchmark="held-out world",
                    metrics={INSTRUCTION_FLIP: 0.5},
                    per_query={"g1": {INSTRUCTION_FLIP: 1.0}},
                    checkpoint_id=checkpoint,
                    record=RECORD,
                )
            )
        session.commit()
    send_cookies(monkeypatch, {})
    for language, wanted in (("de-DE", "de"), ("en-GB", "en"), ("fr-FR", "en")):
        monkeypatch.setattr(ContextProxy, "locale", language)
        said = words(open_page(page))
        assert [spoken for spoken in passages if f"query in {spoken}" in said] == [wanted]


def test_what_was_lost_stands_next_to_what_was_gained_and_the_index_stays(world: Store) -> None:
    lost = example(2, "what was lost", ("P+", "P+")) | {"before": ("P+", "P1-")}
    shown = found([example(1, "what works")], [lost])
    shown |= {"gained": 3, "lost": {"count": 1, "examples": [lost]}}
    add_training(world, {"examples": shown}, config={"trained_side": "query"})
    at = open_page("try_it")
    page = words(at).replace("\\", "")
    assert "3 groups gained" in page and "1 lost" in page
    assert [tab.label for tab in at.tabs][2] == "What it lost (1)"
    assert "index" in page and "stays valid" in page
    assert at.button(key="try_it.use_lost")


def test_train_shows_what_was_gained_lost_and_left_unchanged(world: Store) -> None:
    lost = example(2, "what was lost", ("P+", "P+")) | {"before": ("P+", "P1-")}
    gained = [example(1, "what was gained")]
    shown = found(gained, [lost]) | {"gained": 3, "gains": {"count": 3, "examples": gained}}
    shown |= {"lost": {"count": 1, "examples": [lost]}, "unchanged": {"count": 6, "examples": []}}
    add_training(world, {"examples": shown})
    with world.write() as session:
        scores = {"before": {"strict": 0.5}, "after": {"strict": 0.75}}
        session.scalars(select(Job)).one().result = {"held_out": {"groups": 10, **scores}}
        session.commit()
    at = open_page("train")
    page = words(at)
    assert "what was gained" in page and "what was lost" not in page
    kinds = at.button_group(key="train.change")
    assert kinds.options == ["Gained 3", "Lost 1", "Unchanged 6"]
    kinds.set_value("lost").run()
    assert "what was lost" in words(at) and "what was gained" not in words(at)
    with world.read() as session:  # who read them is never given their items
        assert set(session.scalars(select(OpenedGroup.group_id))) == {1, 2}


def test_a_model_trained_on_both_sides_is_not_said_to_keep_the_index(world: Store) -> None:
    shown = found([example(1, "what works")], [])
    add_training(world, {"examples": shown}, config={"trained_side": "both"})
    assert "stays valid" not in words(open_page("try_it"))


def test_a_verdict_says_which_passage_is_first_and_whether_that_is_right() -> None:
    assert verdict("Base", "P1-", "P+") == ("Base ranks B first: wrong", False)
    assert verdict("Trained", "P1-", "P1-") == ("Trained ranks B first: right", True)
    assert verdict("Trained", "", "P+") == ("Trained ranks A and B equal: wrong", False)


def test_the_page_says_plainly_that_there_is_no_example_of_a_kind(world: Store) -> None:
    fails = [example(2, "what fails", ("P+", "P+"))]
    add_training(world, {"examples": found([], fails)})
    at = open_page("try_it")
    assert "in none of the 10 held" in boxes(at).replace("\\", "")
    assert "what fails" in words(at)


def test_the_page_says_that_a_model_never_fails(world: Store) -> None:
    add_training(world, {"examples": found([example(1, "what works")], [])})
    assert "follows the instruction in all 10" in boxes(open_page("try_it")).replace("\\", "")


def test_a_model_without_stored_examples_and_no_model_are_explained(world: Store) -> None:
    assert "No example yet" in boxes(open_page("try_it"))
    add_training(world, {})
    assert "No example is stored for the/trained" in boxes(open_page("try_it")).replace("\\", "")


def test_groups_that_the_reader_may_be_given_to_judge_are_passed_over(world: Store) -> None:
    with world.write() as session:
        run = session.scalars(select(Run)).one()
        study = sampled_study(session, run_id=run.id, items=1, overlap=1)
        item = session.scalars(select(StudyItem.item_id)).one()
        group = session.scalars(select(Item.group_id).where(Item.id == item)).one()
        free = session.scalars(select(Group.id).where(Group.id != group)).first()
        study.status = "open"
        session.commit()
    assert free is not None
    hidden = example(group, "the hidden one")
    add_training(world, {"examples": found([hidden, example(free, "the free one")], [hidden])})
    at = open_page("try_it")
    assert "the hidden one" not in words(at) and "the free one" in words(at)
    assert "hidden from you" in boxes(at)
    with world.write() as session:
        session.execute(delete(OpenedGroup))
        session.get_one(Study, study.id).status = "closed"
        session.commit()
    assert "the hidden one" in words(open_page("try_it"))


def write_own(folder: Path) -> Path:
    """The world's passages as a team would have them indexed by MODEL."""
    from trainer.model.backbone import load_model

    folder.mkdir()
    with open_store().read() as session:
        rows = session.scalars(select(Passage).where(Passage.origin != "generated")).all()
    vectors = load_model(MODEL).encode_document([row.text for row in rows])
    np.save(folder / "vectors.npy", vectors)
    (folder / "ids.json").write_text(json.dumps([row.external_id for row in rows]))
    return folder


@pytest.mark.long
def test_an_index_of_ones_own_is_searched_on_the_page_and_by_command(
    world: Store, tmp_path: Path, inf: Any
) -> None:
    place = str(write_own(tmp_path / "own"))
    dataset = ("--dataset", "world", "--model", MODEL, "--instruction", "Find it.", "--json")
    stored = inf("models", "search", "tea", *dataset)
    own = inf("models", "search", "tea", *dataset, "--index", place)
    assert stored.code == own.code == 0, stored.err + own.err
    assert [hit["passage_id"] for hit in own.json["data"][0]["hits"]] == [
        hit["passage_id"] for hit in stored.json["data"][0]["hits"]
    ]
    assert "3 of its vectors are the model's" in own.json["data"][0]["note"]
    at = open_page("try_it")
    at.selectbox(key="try_it.left").set_value(DEFAULT_BASE_MODEL)
    at.text_input(key="try_it.index").set_value(place)
    at.text_input(key="try_it.query").set_value("tea")
    at.button(key="try_it.search").click().run(timeout=120)
    assert "numbers and" in " ".join(str(each.value) for each in at.error)


@pytest.mark.long
def test_only_an_admin_searches_a_place_of_the_server(world: Store, tmp_path: Path) -> None:
    person = Actor("cleo", rights=Rights(everywhere=frozenset({"train"})))
    with pytest.raises(Refused):
        search(person, Search(index=str(tmp_path), query="tea"))
    assert search(person, Search(dataset="world", query="tea"))
    with pytest.raises(NotFound):
        search(person, Search(dataset="nowhere", query="tea"))
    with pytest.raises(BadInput, match="nothing to search"):
        search(person, Search(query="tea"))
