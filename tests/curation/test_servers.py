"""What servers do besides answering: silence, Azure's addresses, the same content asked twice."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from curation_runs import add_dataset, run_curation, start_worker, texts_of, wait_for
from openai import AsyncOpenAI, DefaultAioHttpClient
from openai_server import Server
from sqlalchemy import func, select

from curation.providers.endpoints import Endpoint
from curation.providers.openai_server import OpenAIProvider
from curation.providers.provider import Request
from curation.recipe.prices import Price
from curation.recipe.prompt import Prompt
from curation.run.starting import start_run
from db.errors import ProviderError
from db.run.runs import get_run
from db.store.store import Store
from db.tables import Call, GroupCall, Recipe

ASKED: dict[str, Any] = {"dataset": "small", "provider": "openai", "settings": ["model=small"]}
OF_ONE_GROUP = 8


REQUEST = Request(
    task="instruction_positive",
    gives="Instruction",
    provider="openai",
    model="small",
    parameters={"max_output_tokens": 200},
    prompt=Prompt("p.txt", "Document: {document}\nQuery: {query_positive}"),
    inputs={"document": "a long word", "query_positive": "what"},
)


def provider_of(server: Server, **settings: Any) -> OpenAIProvider:
    client = AsyncOpenAI(
        base_url=server.url, api_key="k", http_client=DefaultAioHttpClient(), max_retries=0
    )
    endpoint = Endpoint(server.url, client, own_server=True)
    return OpenAIProvider([endpoint], concurrency=2, timeout_seconds=1.0, **settings)


def test_a_call_that_is_met_with_silence_is_given_up_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.01)

    async def ask(server: Server) -> Any:
        provider = provider_of(server, prices={})
        try:
            return await provider.answer(REQUEST), provider.state()
        finally:
            await provider.close()

    with Server(faults={"silence": 1.0}) as server:  # 30 s of it, on the first try
        answer, state = asyncio.run(ask(server))
    assert answer.attempts >= 2 and state.failures == answer.attempts - 1
    assert answer.text.startswith("Instruction: ")


def test_what_a_gateway_counts_beyond_the_prompt_is_reserved_for_further_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And what a lost answer counted at first is taken back as a whole."""
    monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.01)

    async def ask(server: Server) -> None:
        provider = provider_of(server, prices={"small": Price(1.0, 10.0)})
        other = replace(REQUEST, task="query_negative")
        before, of_other = provider.max_usd(REQUEST), provider.max_usd(other)
        try:
            answer = await provider.answer(REQUEST)
            again = await provider.answer(replace(REQUEST, inputs=REQUEST.inputs | {"query": "x"}))
            lost_usd = provider.state().unanswered_usd
        finally:
            await provider.close()
        assert answer.cost_usd == again.cost_usd == pytest.approx(0.0054) and before < 0.003
        assert provider.max_usd(REQUEST) == pytest.approx(answer.cost_usd)
        assert provider.max_usd(other) == of_other
        lost = answer.attempts + again.attempts - 2
        assert lost > 0 and lost_usd == pytest.approx(lost * answer.cost_usd)

    with Server(faults={"silence": 1.0}, usage=(3500, 190)) as server:
        asyncio.run(ask(server))


def test_a_deployment_of_azure_is_asked_by_its_name(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=3)
    with Server(key="secret") as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url.removesuffix("/v1"))
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "secret")
        with pytest.raises(ProviderError, match="OPENAI_API_VERSION"):
            run_curation(sqlite_store, **ASKED)
        monkeypatch.setenv("OPENAI_API_VERSION", "2025-03-01")
        assert run_curation(sqlite_store, **ASKED)["kept"] == 3
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "wrong")
        with pytest.raises(ProviderError, match="refuses the key"):
            run_curation(sqlite_store, **(ASKED | {"settings": ["model=other"]}))


@pytest.mark.long
def test_two_workers_that_are_told_the_same_at_once_keep_one_answer_of_each(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(store, name="small", pairs=6)
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run_ids = []
        with store.write() as session:
            for _ in range(2):  # of the same pairs: every call of one is also the other's
                run_ids.append(start_run(session, **ASKED).id)
            session.commit()
        server.hold_after = 0  # both have asked before either is answered
        workers = [start_worker(store, run_id, base_url=server.url) for run_id in run_ids]
        wait_for(lambda: list(server.asked.values()) == [2] * 6)
        server.hold_after = None
        for worker in workers:
            worker.join(180)
        assert [worker.exitcode for worker in workers] == [0, 0]
    assert texts_of(store, run_ids[0]) == texts_of(store, run_ids[1])
    with store.read() as session:
        assert {get_run(session, run_id).status for run_id in run_ids} == {"done"}
        assert session.scalar(select(func.count()).select_from(Call)) == 6 * OF_ONE_GROUP
        assert session.scalar(select(func.count()).select_from(GroupCall)) == 2 * 6 * OF_ONE_GROUP


@pytest.mark.long
def test_the_timeout_of_the_command_holds_in_every_stage(
    sqlite_store: Store, inf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=1)
    monkeypatch.setattr("app.cli.kit.report.work", lambda *_, **__: {"job_id": 1})
    asked = ("curate", "--dataset", "small", "--provider", "openai", "--detach")
    assert inf(*asked, "--timeout", 90).code == 0
    with sqlite_store.read() as session:
        (body,) = session.scalars(select(Recipe.body))
    assert {stage["timeout_seconds"] for stage in body["stages"].values()} == {90.0}
    assert inf(*asked, "--timeout", 0).code == 2
    assert inf("curate", "--resume", 1, "--timeout", 90).code == 2
