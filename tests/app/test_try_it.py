"""The model server and its client: started on demand, guarded by a token, gone when idle."""

import json
import time
from collections.abc import Iterator

import httpx
import pytest
from app_pages import open_page, words
from study_world import make_world

from app.models.try_it import client as model_client
from app.models.try_it.client import search_with
from app.models.try_it.ranks import moves
from db.errors import BadInput
from db.store.settings import home
from db.store.store import Store
from trainer.model.tiny import PREFIX

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
    return json.loads((home() / "model-server.json").read_text())


@pytest.mark.long
def test_the_server_starts_on_demand_answers_its_token_only_and_ends_when_idle(
    world: Store,
) -> None:
    found = search_with(world, MODEL, "world", instruction="Find it.", query="tea", results=3)
    assert len(found.hits) == 3 and found.passages == 6
    assert found.hits[0].score >= found.hits[1].score >= found.hits[2].score
    said = state()
    assert (home() / "model-server.json").stat().st_mode & 0o077 == 0
    url = f"http://127.0.0.1:{said['port']}"
    assert httpx.get(f"{url}/health").status_code == 401
    assert httpx.post(f"{url}/search", json={}, headers={"Authorization": "Bearer x"}).is_error
    for model, dataset, query, words_of_it in (
        (MODEL, "nowhere", "tea", "no dataset"),
        (MODEL, "world", "  ", "no query"),
        ("/no/such/model", "world", "tea", "/no/such/model"),
    ):
        with pytest.raises(BadInput, match=words_of_it):
            search_with(world, model, dataset, instruction="", query=query)
    assert state()["pid"] == said["pid"]  # one server for all
    deadline = time.monotonic() + 60
    while model_client._started[0].poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not (home() / "model-server.json").exists()


def test_arrows_say_how_a_ranking_moved() -> None:
    assert moves(["a", "b", "c", "d"], ["b", "c", "a", "d"]) == ["▲2", "▼1", "▼1", ""]
    assert moves(["a"], ["b"]) == ["new"]
    assert moves(["a"], None) == [""]


def test_the_page_says_in_words_what_is_missing(world: Store) -> None:
    at = open_page("try_it")
    assert "Change the instruction" in words(at)
