"""A server that fails loses no group; a row that always fails ends no run."""

from collections.abc import Iterator
from typing import Any

import openai
import psycopg
import pytest
from aiohttp import web
from curation_runs import add_dataset, claimed_job, run_curation
from httpx2 import Request as HttpRequest
from httpx2 import Response
from openai_server import Server
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from curation.providers.failures import is_lost, raise_if_final, retry_after_seconds
from curation.providers.provider import Request, RowFailed
from curation.recipe.prompt import Prompt
from curation.recipe.recipe import load_recipe
from curation.run.engine import curate
from curation.run.starting import resume_run, start_run
from db.errors import BadInput, ProviderError
from db.patience import is_away
from db.store.store import Store
from db.tables import Group, Pair

ASKED: dict[str, Any] = {
    "dataset": "small",
    "provider": "openai",
    "settings": ["model=small"],
    "concurrency": 6,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.01)
        monkeypatch.setattr("curation.providers.openai_server.MAX_BACKOFF_SECONDS", 0.05)
        yield server


@pytest.mark.parametrize(
    ("status", "code"),
    [(500, ""), (502, ""), (503, ""), (402, ""), (429, "insufficient_quota"), (401, "no")],
)
def test_an_outage_in_mid_run_drops_no_group_and_a_resume_ends_the_run(
    sqlite_store: Store, server: Server, status: int, code: str
) -> None:
    add_dataset(sqlite_store, pairs=12)
    server.down = (40, status, code)
    with sqlite_store.write() as session:
        run_id = start_run(session, **ASKED).id
        session.commit()
    with pytest.raises(ProviderError):
        curate(claimed_job(sqlite_store, run_id))
    with sqlite_store.read() as session:
        states = dict(
            session.execute(
                select(Group.state, func.count())
                .group_by(Group.state)
                .where(Group.run_id == run_id)
            ).all()
        )
        assert session.scalars(select(Group.drop_reason).distinct()).all() in ([None], [])
    assert states.get("waiting", 0) > 0 and "leased" not in states
    server.down = None
    with sqlite_store.write() as session:
        resume_run(session, run_id)
        session.commit()
    result = curate(claimed_job(sqlite_store, run_id)).as_json()
    assert result["status"] == "done" and result["kept"] == 12


def test_one_row_that_always_fails_is_dropped_and_the_run_ends(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=8)
    with sqlite_store.read() as session:
        server.poison = tuple(session.scalars(select(Pair.query).order_by(Pair.id).limit(1)))
    result = run_curation(sqlite_store, **ASKED)
    assert result["status"] == "done"
    assert result["dropped"] == {"server_error": 1} and result["kept"] == 7


@pytest.mark.parametrize(
    ("status", "param"),
    [(403, None), (404, None), (400, "messages[0].content"), (422, "messages[0].content")],
)
def test_a_refusal_of_one_prompt_costs_its_group_and_not_the_run(
    sqlite_store: Store, server: Server, status: int, param: str | None
) -> None:
    """A router that moderates: its 403 says nothing about the key, its 404 not about the model."""
    add_dataset(sqlite_store, pairs=8)
    with sqlite_store.read() as session:
        poisoned = session.scalars(select(Pair.query).order_by(Pair.id.desc()).limit(1))
        server.poison, server.poison_error = tuple(poisoned), (status, param)
    result = run_curation(sqlite_store, **(ASKED | {"concurrency": 1}))
    assert result["status"] == "done"
    assert result["dropped"] == {"request_refused": 1} and result["kept"] == 7


def test_a_server_that_takes_json_without_a_schema_is_asked_for_that(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=4)
    server.schema = "object"
    result = run_curation(sqlite_store, **ASKED)
    assert result["kept"] == 4
    forms = [body.get("response_format", {}).get("type") for body in server.bodies]
    assert forms.count("json_object") == 32 and None not in forms
    assert 0 < forms.count("json_schema") < 32, "remembered for the model"


def test_what_a_stage_says_of_its_transport_is_sent_and_is_no_part_of_the_key(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=2)
    first = run_curation(sqlite_store, **ASKED)
    settings = [
        "model=small",
        "timeout_seconds=900",
        "limit_name=max_completion_tokens",
        "headers={X-Team = 'tower'}",
    ]
    again = run_curation(sqlite_store, **(ASKED | {"settings": settings}))
    assert again["calls"]["made"] == 0 and again["kept"] == first["kept"]
    extra = ["extra_body={top_k = 7, chat_template_kwargs = {enable_thinking = false}}"]
    asked = len(server.bodies)
    run_curation(sqlite_store, **(ASKED | {"settings": settings + extra}))
    sent = server.bodies[asked:]
    assert sent and all(body["top_k"] == 7 for body in sent)
    assert all(body["chat_template_kwargs"] == {"enable_thinking": False} for body in sent)
    assert all("max_tokens" not in body and "extra_body" not in body for body in sent)


@pytest.mark.parametrize("wanted", ["max_completion_tokens", "max_tokens"])
@pytest.mark.parametrize("param", ["max_tokens", None])
def test_a_limit_goes_by_the_name_that_the_server_wants(
    sqlite_store: Store, server: Server, wanted: str, param: str | None
) -> None:
    add_dataset(sqlite_store, pairs=3)
    (other,) = {"max_tokens", "max_completion_tokens"} - {wanted}

    async def reply(_: Any, body: dict[str, Any], *__: Any) -> web.Response | None:
        if other not in body:
            return None
        message = f"Unsupported parameter: '{other}'. Use '{wanted}' instead."
        error = {"message": message, "param": param and other, "code": "unsupported_parameter"}
        return web.json_response({"error": error}, status=400)

    server.reply = reply
    result = run_curation(sqlite_store, **ASKED)
    assert result["kept"] == 3
    refused = sum(other in body for body in server.bodies)
    # the requests of the first moment, then none: the name is remembered
    assert refused <= (4 if wanted == "max_completion_tokens" else 0)


def test_a_limit_under_no_name_stops_the_run_and_says_which(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=3)

    async def reply(_: Any, body: dict[str, Any], *__: Any) -> web.Response | None:
        (named,) = {"max_tokens", "max_completion_tokens"} & set(body)
        error = {"message": "no limits here", "param": named}
        return web.json_response({"error": error}, status=400)

    server.reply = reply
    with pytest.raises(ProviderError, match=r"refuses the parameter 'max_(completion_)?tokens'"):
        run_curation(sqlite_store, **ASKED)


def test_a_wrong_limit_of_waits_is_refused_before_anything_is_sent(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=3)
    for value in ("abc", "-1", "nan", "inf"):
        monkeypatch.setenv("INF_MAX_RETRY_AFTER_SECONDS", value)
        with pytest.raises(BadInput, match=f"INF_MAX_RETRY_AFTER_SECONDS is '{value}'"):
            run_curation(sqlite_store, **ASKED)
    assert not server.bodies


@pytest.mark.parametrize(
    "setting", ["timeout_seconds=0", "headers=3", "extra_body=1", "limit_name=tokens"]
)
def test_a_transport_that_cannot_be_is_refused(setting: str) -> None:
    with pytest.raises(BadInput):
        load_recipe("msmarco", [setting])


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        ("86400", 600.0),
        ("Wed, 21 Oct 2037 07:28:00 GMT", 600.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("-5", 0.0),
    ],
)
def test_a_retry_after_is_seconds_or_a_date_and_ten_minutes_at_most(
    header: str, seconds: float | None
) -> None:
    request = HttpRequest("POST", "http://localhost/v1")
    response = Response(429, headers={"retry-after": header}, request=request)
    assert (
        retry_after_seconds(openai.RateLimitError("slow", response=response, body=None)) == seconds
    )


def a_status(status: int, message: str) -> openai.APIStatusError:
    request = HttpRequest("POST", "http://localhost/v1")
    kind = openai.RateLimitError if status == 429 else openai.InternalServerError
    return kind(message, response=Response(status, request=request), body=None)


def test_a_prompt_above_a_limit_per_minute_costs_its_row_and_pauses_nothing() -> None:
    asked = Request("validation", "openai", "small", {}, Prompt("p", ""), {}, gives="Choice")
    with pytest.raises(RowFailed) as refused:
        raise_if_final(
            a_status(429, "Request too large for small on tokens per min (TPM)"), asked, "here"
        )
    assert refused.value.reason == "too_long_for_model"
    raise_if_final(a_status(429, "Rate limit reached for small"), asked, "here")


def test_an_answer_that_a_proxy_waited_for_in_vain_may_be_billed() -> None:
    for status in (408, 504, 520, 524):
        assert is_lost(a_status(status, "a proxy's page")), status
    assert not is_lost(a_status(502, "Bad Gateway")) and not is_lost(a_status(429, "slow"))


@pytest.mark.parametrize("state", ["53100", "53200", "53300", "53400", "57P03"])
def test_a_database_without_room_is_waited_for(state: str) -> None:
    """A full disk of PostgreSQL ended fifty workers at once."""
    refused = psycopg.errors.lookup(state)("no room")
    assert is_away(DBAPIError("INSERT", {}, refused))
    assert not is_away(DBAPIError("INSERT", {}, psycopg.errors.lookup("23505")("twice")))
