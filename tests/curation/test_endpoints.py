"""Several endpoints for one run: balanced, and one that fails loses nothing."""

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from curation_runs import add_dataset, run_curation, wait_for
from httpx2 import Request as HttpRequest
from httpx2 import Response
from openai_server import Server

from curation.providers import endpoints as many_endpoints
from curation.providers import openai_server as provider
from curation.providers.endpoints import Endpoint, Endpoints
from curation.recipe.recipe import FOLDER, load_recipe
from curation.servers.addresses import endpoint_urls, public_url
from db.errors import BadInput, ProviderError
from db.store.store import Store

ASKED: dict[str, Any] = {
    "dataset": "small",
    "provider": "openai",
    "settings": ["model=small"],
    "concurrency": 6,
}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(provider, "MAX_BACKOFF_SECONDS", 0.05)
    monkeypatch.setattr(many_endpoints, "LEFT_OUT_SECONDS", 0.05)
    monkeypatch.setattr(many_endpoints, "MAX_LEFT_OUT_SECONDS", 0.1)


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, Server]]:
    """Two servers, both named by OPENAI_BASE_URL."""
    with Server(latency_seconds=0.01) as one, Server(latency_seconds=0.01) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{one.url}, {other.url}/")
        yield one, other


def test_requests_are_balanced_and_none_is_sent_twice(
    sqlite_store: Store, pair: tuple[Server, Server]
) -> None:
    add_dataset(sqlite_store, pairs=10)
    assert run_curation(sqlite_store, **ASKED)["kept"] == 10
    counts = [server.answered.total() for server in pair]
    assert sum(counts) == 80 and min(counts) >= 30


def test_requests_are_balanced_from_the_first_ones_on(
    sqlite_store: Store, pair: tuple[Server, Server]
) -> None:
    """All but the first wait for its answer; they were counted for no endpoint meanwhile."""
    add_dataset(sqlite_store, pairs=12)
    for server in pair:
        server.latency_seconds = 0.3
    assert run_curation(sqlite_store, **(ASKED | {"concurrency": 12}))["kept"] == 12
    assert max(server.most_in_flight for server in pair) <= 8


@pytest.mark.long
@pytest.mark.parametrize(("status", "code"), [(503, ""), (429, "slow"), (401, "no"), (402, "")])
def test_one_of_two_dies_in_the_middle_and_comes_back_and_nothing_is_lost(
    sqlite_store: Store, pair: tuple[Server, Server], status: int, code: str
) -> None:
    add_dataset(sqlite_store, pairs=20)
    dying, other = pair
    dying.down = (20, status, code)
    back_at: list[int] = []

    def repair() -> None:
        wait_for(lambda: dying.asked.total() > 20 and other.answered.total() > 50)
        back_at.append(other.answered.total())
        dying.down = None

    thread = threading.Thread(target=repair)
    thread.start()
    result = run_curation(sqlite_store, **ASKED)
    thread.join()
    assert result["kept"] == 20 and not result["dropped"]
    assert result["calls"]["made"] == 160 == dying.answered.total() + other.answered.total()
    assert dying.answered.total() > 25, "it takes its share again"


def test_a_prompt_that_breaks_every_endpoint_costs_its_row_alone(
    sqlite_store: Store, pair: tuple[Server, Server]
) -> None:
    add_dataset(sqlite_store, pairs=8)
    with sqlite_store.read() as session:
        from sqlalchemy import select

        from db.tables import Pair

        poison = session.scalars(select(Pair.query).order_by(Pair.id)).first()
    for server in pair:
        server.poison = (poison,)
    result = run_curation(sqlite_store, **ASKED)
    assert result["kept"] == 7 and result["dropped"] == {"server_error": 1}


def test_an_endpoint_that_is_not_there_at_the_start_is_left_out(
    sqlite_store: Store,
    pair: tuple[Server, Server],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    add_dataset(sqlite_store, pairs=3)
    nobody = "http://127.0.0.1:9/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", f"{nobody},{pair[0].url}")
    with caplog.at_level(logging.WARNING, "inf.curate"):
        assert run_curation(sqlite_store, **ASKED)["kept"] == 3
    assert "http://127.0.0.1:9/v1 is left out" in caplog.text
    monkeypatch.setenv("OPENAI_BASE_URL", f"{nobody},http://127.0.0.1:10/v1")
    with pytest.raises(ProviderError, match=r":9/v1, .*:10/v1: .*connections test"):
        run_curation(sqlite_store, **(ASKED | {"settings": ["model=judge"]}))


def test_a_recipe_names_endpoints_and_an_override_may_not(
    sqlite_store: Store,
    pair: tuple[Server, Server],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    add_dataset(sqlite_store, pairs=2)
    monkeypatch.delenv("OPENAI_BASE_URL")
    named = ", ".join(f'"{server.url}"' for server in pair)
    recipe = tmp_path / "mine.toml"
    built_in = (FOLDER / "msmarco.toml").read_text().partition("[stages")
    recipe.write_text(f"{built_in[0]}endpoints = [{named}]\n" + "".join(built_in[1:]))
    assert run_curation(sqlite_store, **ASKED, recipe=str(recipe))["kept"] == 2
    assert all(server.answered.total() for server in pair)
    with pytest.raises(BadInput, match="recipe file or by OPENAI_BASE_URL"):
        load_recipe("msmarco", ['endpoints=["http://elsewhere/v1"]'])
    recipe.write_text(recipe.read_text().replace(f"[{named}]", "3"))
    with pytest.raises(BadInput, match="list of addresses"):
        load_recipe(str(recipe))


def test_a_recipe_without_endpoints_keeps_its_hash() -> None:
    body = load_recipe("msmarco").body()
    assert "endpoints" not in body and "server_group" not in body


def test_a_server_that_comes_back_as_another_model_stops_the_run(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=6)
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        server.other_model = (20, "tiny-chat")
        with pytest.raises(ProviderError, match="answered 'small' as 'tiny-chat' after 'small'"):
            run_curation(sqlite_store, **ASKED)


@pytest.mark.parametrize(
    "text", ["localhost:8000/v1", "ftp://host/v1", "http:///v1", "http://a/v1,no address"]
)
def test_what_is_no_address_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", text)
    with pytest.raises(BadInput, match="is no address of a server"):
        endpoint_urls()


def test_a_password_in_an_address_is_not_shown() -> None:
    assert public_url("HTTP://me:pass@Host:80/v1?key=1") == "http://host:80/v1"


def endpoints(*urls: str) -> Endpoints:
    client = openai.AsyncOpenAI(api_key="k", base_url="http://localhost/v1")
    return Endpoints([Endpoint(url, client, own_server=True) for url in urls])


def error(status: int) -> openai.APIStatusError:
    response = Response(status, request=HttpRequest("POST", "http://localhost/v1"))
    return openai.APIStatusError("no", response=response, body=None)


def test_one_request_at_a_time_tries_an_endpoint_that_was_left_out() -> None:
    both = endpoints("a", "b")
    one, other = both.all
    assert both.pass_on(one, error(401), 0.05)
    assert [both.choose().url for _ in range(3)] == ["b", "b", "b"]
    time.sleep(0.06)
    assert both.choose(["a"]).url == "b", "a request that it passed on would end the run there"
    assert [both.choose().url for _ in range(3)] == ["a", "b", "b"]
    both.answered(one)
    other.open_requests = 1
    assert both.choose() is one
    assert both.pass_on(one, error(500), None), "the other one takes it"
    assert both.choose() is one, "a first server error may be the request's own"
    both.pass_on(one, error(500), None)
    assert both.choose() is other


def test_what_is_the_fault_of_a_request_leaves_no_endpoint_out() -> None:
    both = endpoints("a", "b")
    assert not both.pass_on(both.all[0], error(400), None)
    assert not both.pass_on(both.all[0], error(422), None)
    assert not any(each.failures for each in both.all)
    single = endpoints("a")
    assert not single.pass_on(single.all[0], error(503), None)
