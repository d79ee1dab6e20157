"""What was paid for is stored and counted, whatever its bytes are and whoever wrote it."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from curation_runs import add_dataset, run_curation
from openai_server import Server
from sqlalchemy import select

from curation.providers.models import is_own_name
from curation.recipe.completion import how_it_ended, read_body
from curation.recipe.prices import Price, save_price
from db.errors import BadInput, ProviderError
from db.run.group_detail import get_group
from db.run.runs import get_run
from db.store.store import Store
from db.tables import Call, Run

ASKED: dict[str, Any] = {
    "dataset": "small",
    "provider": "openai",
    "settings": ["model=small", "output=text", "max_output_tokens=200"],
    "concurrency": 4,
    "budget_usd": 10.0,
}
EACH = (1000 * 1.0 + 100 * 2.0) / 1e6  # of an answer with the server's usage
AT_MOST = 200 * 2.0 / 1e6  # of its output


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("curation.run.engine.check_leakage", lambda *_: {})
    save_price("small", Price(1.0, 2.0))
    for name, seconds in (("BACKOFF_SECONDS", 0.01), ("MAX_BACKOFF_SECONDS", 0.05)):
        monkeypatch.setattr(f"curation.providers.openai_server.{name}", seconds)
    with Server(usage=(1000, 100)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def first_answer(server: Server, change: Any) -> list[bytes]:
    """Let the first answer of all be these bytes; what was sent."""
    sent: list[bytes] = []

    async def reply(_: Any, body: Any, prompt: str, __: int) -> web.Response | None:
        if sent or prompt == "Reply with OK.":
            return None
        sent.append(change(server.completion(body, prompt, None)))
        server.answered[prompt] += 1
        return web.Response(body=sent[0], content_type="application/json")

    server.reply = reply
    return sent


def kept(store: Store) -> list[Call]:
    """The stored calls that no ordinary key has: unusable ones."""
    with store.read() as session:
        return list(session.scalars(select(Call).where(Call.finish_reason == "unreadable")))


def as_json(good: dict[str, Any]) -> str:
    message = good["choices"][0]["message"] | {"reasoning_content": "d\u00e9j\u00e0 vu"}
    choice = good["choices"][0] | {"message": message}
    return json.dumps(good | {"choices": [choice]}, ensure_ascii=False)


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_a_body_in_any_encoding_is_read_and_paid_once(
    sqlite_store: Store, server: Server, charset: str
) -> None:
    add_dataset(sqlite_store, pairs=1)
    assert first_answer(server, lambda good: as_json(good).encode(charset)) is not None
    result = run_curation(sqlite_store, **ASKED)
    assert result["kept"] == 1 and server.answered.total() == 8
    assert result["spent_usd"] == pytest.approx(8 * EACH) and not kept(sqlite_store)


@pytest.mark.parametrize(
    ("change", "counted", "text"),
    [
        (lambda _: b"\xff\xfe\x00\xd8\x00", None, None),
        (lambda _: b"\x00\x01\x02 no text", None, None),
        (lambda good: json.dumps(good).encode()[:-10], EACH, "{"),
        (lambda _: b"Instruction: read about towers", None, "Instruction: read about towers"),
        (lambda _: b"[" * 200_000, None, "[["),
        (lambda _: b'data: {"choices": [{"delta": {"tool_calls": [3]}}]}\n\n', None, "data:"),
    ],
    ids=["half a character", "binary", "cut, with its usage", "text", "nested", "broken stream"],
)
def test_a_body_that_nothing_reads_is_kept_and_counted_until_its_usage_is_known(
    sqlite_store: Store, server: Server, change: Any, counted: float | None, text: str | None
) -> None:
    add_dataset(sqlite_store, pairs=1)
    sent = first_answer(server, change)
    result = run_curation(sqlite_store, **ASKED)
    assert result["status"] == "done" and result["kept"] == 1
    # the usage of the next answer to the same prompt stands for that of the unreadable one
    assert result["spent_usd"] == pytest.approx(9 * EACH, rel=1e-6)
    (call,) = kept(sqlite_store)
    assert call.cost_usd == pytest.approx(counted or 0.0)
    if text is None:
        assert base64.b64decode(call.answer.partition(",")[2]) == sent[0]
    else:
        assert call.answer.startswith(text) and call.answer.encode() == sent[0]


def test_an_unreadable_answer_counts_at_its_maximum_where_no_other_follows(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=1)

    async def reply(*_: Any) -> web.Response:
        return web.Response(body=b"\xfe\xfe\xfe", content_type="application/json")

    server.reply = reply
    with pytest.raises(ProviderError):
        run_curation(sqlite_store, **ASKED)
    (call,) = kept(sqlite_store)  # the same bytes for the same prompt are one row
    with sqlite_store.read() as session:
        spent = get_run(session, session.scalars(select(Run.id)).one()).spent_usd
    assert spent > 6 * AT_MOST and base64.b64decode(call.answer.partition(",")[2]) == b"\xfe" * 3


def test_an_answer_of_another_model_is_refused_before_the_second_call_and_kept(
    sqlite_store: Store, server: Server
) -> None:
    """A router is refused at its first answer; a run that takes any model uses that one."""
    add_dataset(sqlite_store, pairs=6)
    server.other_model = (0, "tiny-chat")
    with pytest.raises(ProviderError, match=r"answered 'small' as 'tiny-chat'") as refused:
        run_curation(sqlite_store, **ASKED)
    assert refused.value.code == "served_model_changed"
    for remedy in ("set=model=tiny-chat", "set=answers_as=one", "set=answers_as=any"):
        assert remedy in str(refused.value)
    assert server.answered.total() == 1, "before the second call"
    with sqlite_store.read() as session:
        (call,) = session.scalars(select(Call))
        assert call.request["answered_as"] == "tiny-chat" and call.cost_usd == pytest.approx(EACH)
        spent = get_run(session, session.scalars(select(Run.id)).one()).spent_usd
        assert spent == pytest.approx(EACH)
    settings = [*ASKED["settings"], "answers_as=any"]
    result = run_curation(sqlite_store, **(ASKED | {"settings": settings}))
    assert result["kept"] == 6 and result["calls"] == {"made": 47, "reused": 1}
    assert server.answered.total() == 48, "nothing is paid twice"


def test_behind_a_router_each_answer_has_the_name_of_its_model(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=2)
    names = ["tower-1", "tower-2", "small"]

    async def reply(_: Any, body: Any, prompt: str, __: int) -> web.Response:
        server.answered[prompt] += 1
        model = names[server.answered.total() % 3]
        return web.json_response(server.completion(body, prompt, None) | {"model": model})

    server.reply = reply
    settings = [*ASKED["settings"], "answers_as=any"]
    result = run_curation(sqlite_store, **(ASKED | {"settings": settings}))
    assert result["kept"] == 2
    with sqlite_store.read() as session:
        of_calls = [call.request.get("answered_as") for call in session.scalars(select(Call))]
        models = session.scalars(select(Run.models)).one()
        shown = get_group(session, 1).calls
    assert {call.answered_as for call in shown} == {"tower-1", "tower-2", None}
    assert any(" small as tower-1 at http" in call.title for call in shown)
    assert set(of_calls) == {"tower-1", "tower-2", None} and of_calls.count(None) == 5
    of_run = {name for of in models.values() for name in of["answered_as"].split(", ")}
    assert of_run == {"tower-1", "tower-2"}


def test_an_alias_may_be_another_name_and_no_second_one(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=2)
    server.models, server.other_model = ("our-alias", "small"), (0, "tower-1-2026-01-31")
    settings = ["model=our-alias", "output=text", "answers_as=one"]
    wanted = ASKED | {"settings": settings, "budget_usd": None}
    assert run_curation(sqlite_store, **wanted)["kept"] == 2
    server.other_model = (20, "tiny-chat")
    with pytest.raises(ProviderError, match=r"'tiny-chat'.*load .* again and resume"):
        run_curation(sqlite_store, **wanted, fresh=True)
    before = server.answered.total()
    server.other_model = None
    with sqlite_store.read() as session:
        run_id = max(session.scalars(select(Run.id)))
        stored = len(list(session.scalars(select(Call)))) - 16
    result = run_curation(sqlite_store, run_id)
    assert result["kept"] == 2 and server.answered.total() - before <= 16 - stored + 1


def test_the_only_model_of_a_server_may_answer_by_its_file_and_by_no_second_name(
    sqlite_store: Store, server: Server
) -> None:
    """As a small local server does; one whose list has several may have taken another model."""
    add_dataset(sqlite_store, pairs=2)
    server.models, server.other_model = ("small",), (0, "/weights/tower.gguf")
    assert run_curation(sqlite_store, **ASKED)["kept"] == 2
    server.other_model = (20, "tiny-chat")
    with pytest.raises(ProviderError, match=r"as 'tiny-chat' after 'small'"):
        run_curation(sqlite_store, **ASKED, fresh=True)


@pytest.mark.parametrize(
    ("models", "first", "settings"),
    [(("small",), None, []), (("small", "judge"), (0, "tower-1"), ["answers_as=one"])],
    ids=["the only model", "an alias"],
)
def test_a_resumed_run_knows_by_which_name_its_model_answered(
    sqlite_store: Store,
    server: Server,
    models: tuple[str, ...],
    first: tuple[int, str] | None,
    settings: list[str],
) -> None:
    add_dataset(sqlite_store, pairs=4)
    server.models, server.other_model, server.quota = models, first, 10
    settings = [*ASKED["settings"], *settings]
    with pytest.raises(ProviderError, match="quota"):
        run_curation(sqlite_store, **(ASKED | {"settings": settings}))
    server.quota, server.other_model = None, (0, "tiny-chat")
    with sqlite_store.read() as session:
        run_id = session.scalars(select(Run.id)).one()
    before = first[1] if first else "small"
    with pytest.raises(ProviderError, match=f"as 'tiny-chat' after '{before}'") as refused:
        run_curation(sqlite_store, run_id)
    assert "set=model=tiny-chat`, which pays" in str(refused.value)
    server.other_model = first
    assert run_curation(sqlite_store, run_id)["kept"] == 4


def test_an_unknown_way_to_be_named_is_refused(sqlite_store: Store) -> None:
    add_dataset(sqlite_store, pairs=1)
    with pytest.raises(BadInput, match="answers_as = 'all'"):
        run_curation(sqlite_store, **(ASKED | {"settings": ["model=small", "answers_as=all"]}))


@pytest.mark.parametrize(
    ("wanted", "reported", "is_own"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o", "azure/gpt-4o", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13", False),
        ("deepseek-v2", "deepseek-v3", False),
        ("gpt-4o-2024-08-06", "gpt-4o", True),
        ("gpt-4", "gpt-4-0613", True),
        ("gpt-4", "gpt-4.1", False),
        ("gpt-4", "gpt-4-1", False),
        ("mistral-small-latest", "mistral-small-2503", True),
        ("claude-3-5-sonnet-20241022", "us.anthropic.claude-3-5-sonnet-20241022-v2:0", True),
        ("claude-3", "claude-3-5", False),
        ("deepseek/deepseek-chat:free", "deepseek-chat-v3", True),
        ("Qwen/Qwen3-8B", "qwen3-8b", True),
        ("qwen3-8b", "/models/Qwen3-8B-Q4_K_M.gguf", True),
        ("qwen3-8b", "C:\\models\\Qwen3-8B.gguf", True),
        ("qwen3-8b", "qwen3-80b", False),
        ("gemini-2.5-pro", "models/gemini-2.5-pro-preview-05-06", True),
        ("gemini-2.5-pro", "gemini-2.5-flash", False),
        ("llama3.1", "llama3.2", False),
        ("auto", "openai/gpt-4o", False),
        ("qwen2.5:7b", "qwen2.5:7b", True),
        ("qwen2.5:7b", "qwen2.5:0.5b", False),
        ("qwen2.5", "qwen2.5:latest", True),
        ("qwen2.5:7b", "library/qwen2.5-7B-Q4_K_M.gguf", True),
        ("deepseek-r1:1.5b", "deepseek-r1:70b", False),
        ("deepseek-r1", "deepseek-r1:1.5b", False),
        ("mixtral:8x7b", "mixtral:8x22b", False),
        ("phi3:mini", "phi3:medium", False),
        ("gemma3:27b-it-q4_K_M", "gemma3:27b-it", True),
        ("ft:gpt-4o-mini:org::one", "ft:gpt-4o-mini:org::other", False),
        ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet-20240620", True),
        ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet-20241022", False),
        ("claude-sonnet-4-0", "claude-sonnet-4-20250514", True),
        ("claude-sonnet-4-0", "claude-sonnet-4-5-20250929", False),
        ("claude-opus-4-0", "claude-sonnet-4-20250514", False),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet-20250219", True),
        ("gemini-flash-latest", "gemini-2.5-flash-preview-09-2025", True),
        ("gemini-flash-latest", "gemini-2.5-flash", True),
        ("gemini-flash-latest", "gemini-2.5-flash-lite", False),
        ("gemini-flash-latest", "gemini-2.5-pro", False),
        ("gemini-2.5-flash-latest", "gemini-2.0-flash", False),
    ],
)
def test_a_version_or_provider_is_the_same_model(wanted: str, reported: str, is_own: bool) -> None:
    assert is_own_name(wanted, reported) is is_own


def test_a_server_that_ran_out_of_resources_is_tried_again_and_its_answer_kept(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=1)

    def change(good: dict[str, Any]) -> bytes:
        choice = good["choices"][0] | {"finish_reason": "insufficient_system_resource"}
        return json.dumps(good | {"choices": [choice]}).encode()

    first_answer(server, change)
    result = run_curation(sqlite_store, **ASKED)
    assert result["kept"] == 1 and result["spent_usd"] == pytest.approx(9 * EACH)
    with sqlite_store.read() as session:
        reasons = [call.finish_reason for call in session.scalars(select(Call))]
    assert sorted(set(reasons)) == ["insufficient_system_resource", "stop"] and len(reasons) == 9


def test_reasons_of_a_server_without_resources() -> None:
    for reason in ("insufficient_system_resource", "InsufficientSystemResources", "overloaded"):
        assert how_it_ended(reason) == "exhausted"
    for reason in ("end_of_turn", "<|im_end|>", "STOP_REASON_END_TURN", "<|eot_id|>"):
        assert how_it_ended(reason) == "complete"
    assert how_it_ended("MAX_TOKENS") == how_it_ended("model_length") == "cut_off"


@pytest.mark.parametrize("sign", ["\u2028", "\u0085", "\x0b"])
def test_what_ends_no_line_of_a_stream_is_text(sign: str) -> None:
    choice = {"message": {"content": f"one{sign}two"}, "finish_reason": "stop"}
    body = json.dumps({"choices": [choice]}, ensure_ascii=False)
    for sent in (f"data: {body}\r\n\r\ndata: [DONE]\n\n", f": PROCESSING\r\n\n{body}"):
        assert read_body(sent.encode())["choices"] == [choice]
