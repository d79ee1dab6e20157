"""A prompt that always fails holds no place and no run; what was lost on its way is counted."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2
import openai
import pytest
from aiohttp import web
from curation_runs import add_dataset, claimed_job, run_curation, texts_of
from openai_server import Server
from sqlalchemy import select

from curation.providers import openai_server
from curation.providers.probe import Probe
from curation.recipe.prices import Price, save_price
from curation.run.engine import curate
from curation.run.starting import resume_run, start_run
from db.errors import ProviderError
from db.run.runs import get_run
from db.store.store import Store
from db.tables import Group, Pair, RunWorker

ASKED: dict[str, Any] = {
    "dataset": "small",
    "provider": "openai",
    "settings": ["model=small", "max_output_tokens=200"],
    "concurrency": 4,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    # a report of a run's end: it takes longer than the run
    monkeypatch.setattr("curation.run.engine.check_leakage", lambda *_: {})
    with Server(latency_seconds=0.005) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def queries(store: Store, count: int, *, last: bool = False) -> tuple[str, ...]:
    order = Pair.id.desc() if last else Pair.id
    with store.read() as session:
        return tuple(session.scalars(select(Pair.query).order_by(order).limit(count)))


@pytest.mark.long
@pytest.mark.parametrize("how", ["fail", "hang", "throttle"])
@pytest.mark.parametrize("last", [False, True], ids=["the first rows", "the last rows"])
def test_five_prompts_that_always_fail_hold_none_of_four_places(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch, last: bool, how: str
) -> None:
    """All times a tenth of the real ones: with these 24 of 60 groups in 280 s, before groups were
    parked. A prompt that hangs held its place for 600 s, three times."""
    monkeypatch.setattr("curation.providers.gate.HANG_SECONDS", 2.0)
    for name, seconds in (("HANG_SECONDS", 2.0), ("WATCH_SECONDS", 0.1), ("FIRST_SECONDS", 0.5)):
        monkeypatch.setattr(openai_server, name, seconds)
    monkeypatch.setattr("curation.run.engine.BEAT_SECONDS", 0.1)
    for name in (
        *("BACKOFF_SECONDS", "MAX_BACKOFF_SECONDS", "ROW_SECONDS", "SILENT_FOR_SECONDS"),
        "SLOW_FAILURE",
    ):
        seconds = getattr(openai_server, name)
        monkeypatch.setattr(openai_server, name, seconds / 10)
    add_dataset(sqlite_store, pairs=30)
    undisturbed = run_curation(sqlite_store, **ASKED)
    server.poison = queries(sqlite_store, 5, last=last)
    if how == "throttle":
        server.poison_error = (429, None)
    seen: list[str] = []

    async def note(request: web.Request, _body: object, prompt: str, _tries: int) -> None:
        poison = next((each for each in server.poison if each in prompt), "")
        seen.append(poison)
        while how == "hang" and poison and request.transport and server.poison:
            await asyncio.sleep(0.05)

    server.reply = note
    result = run_curation(sqlite_store, **ASKED, fresh=True)
    server.reply = None
    assert result["status"] == "done" and result["dropped"] == {"server_error": 5}
    assert result["kept"] == 25
    ends = [len(seen) - 1 - seen[::-1].index(each) for each in server.poison]
    others = [place for place, each in enumerate(seen) if not each]
    # the prompts that fail are tried on while the others are answered: they hold no place
    if how == "fail":
        assert sum(place < min(ends) for place in others) > len(others) / 10
    with sqlite_store.read() as session:
        details = session.scalars(
            select(Group.drop_detail).where(
                Group.run_id == result["run_id"], Group.verdict == "dropped"
            )
        ).all()
    why = "while others were answered" if how == "hang" else "this prompt breaks the server"
    assert all(why in str(each) for each in details), details
    server.poison = ()
    with sqlite_store.write() as session:
        resume_run(session, result["run_id"], retry="server_error")
        session.commit()
    again = curate(claimed_job(sqlite_store, result["run_id"])).as_json()
    assert again["status"] == "done" and again["kept"] == 30
    assert texts_of(sqlite_store, result["run_id"]) == texts_of(sqlite_store, undisturbed["run_id"])


@pytest.mark.long
def test_a_server_that_fails_now_and_then_loses_no_group(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.02)
    add_dataset(sqlite_store, pairs=30)
    undisturbed = run_curation(sqlite_store, **ASKED)
    server.faults = {"500": 0.1, "cut_before": 0.1, "truncated": 0.1}
    result = run_curation(sqlite_store, **ASKED, fresh=True)
    assert result["status"] == "done" and result["kept"] == 30
    assert texts_of(sqlite_store, result["run_id"]) == texts_of(sqlite_store, undisturbed["run_id"])


def priced_run(store: Store, **more: Any) -> int:
    save_price("small", Price(1.0, 2.0))
    with store.write() as session:
        run_id = start_run(session, **(ASKED | more)).id
        session.commit()
    return run_id


@pytest.mark.parametrize("how", ["cut_after", "truncated"])
def test_answers_whose_body_never_arrived_are_counted(
    store: Store, server: Server, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Every first body is cut: twice as many answers were given as arrived, and are paid.

    On a busy machine the first bodies of a dozen prompts are cut in a row, and that of the probe
    too: the server counts as away until the next probe, so the run needs patience.
    """
    monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.01)
    add_dataset(store, pairs=10)
    server.usage, server.faults = (1000, 100), {how: 1.0}
    run_id = priced_run(store, budget_usd=10.0)
    result = curate(claimed_job(store, run_id, patience_minutes=1)).as_json()
    given = server.answered.total()
    assert result["kept"] == 10 and 160 <= given <= 164, "a probe or two"
    exact = given * (1000 * 1.0 + 100 * 2.0) / 1e6
    # a probe that was lost has no later answer with its usage: it stays at its maximum price
    assert result["spent_usd"] == pytest.approx(exact, abs=2 * 0.0013)
    with store.read() as session:
        assert session.scalars(select(RunWorker.leased_usd)).all() == [pytest.approx(0.0)]


@pytest.mark.parametrize("budget_usd", [0.006, 0.02])
def test_a_budget_holds_where_no_body_ever_arrives(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch, budget_usd: float
) -> None:
    """Each lost answer counts at its maximum price, so that the run pauses before it is spent."""
    monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr("curation.providers.openai_server.MAX_BACKOFF_SECONDS", 0.02)
    add_dataset(sqlite_store, pairs=20)
    probes = 0

    async def cut(request: web.Request, body: Any, prompt: str, tries: int) -> None:
        nonlocal probes
        if prompt == "Reply with OK.":
            probes += 1
            return
        server.answered[prompt] += 1
        assert request.transport is not None
        request.transport.abort()

    server.reply = cut
    run_id = priced_run(sqlite_store, budget_usd=budget_usd)
    result = curate(claimed_job(sqlite_store, run_id, patience_minutes=1)).as_json()
    assert result["paused"] and "budget" in result["reason"]
    with sqlite_store.read() as session:
        spent = get_run(session, run_id).spent_usd
    assert budget_usd - 0.005 < spent <= budget_usd


def test_a_refused_connection_and_a_status_cost_nothing(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.01)
    add_dataset(sqlite_store, pairs=6)
    server.usage, server.faults = (1000, 100), {"500": 0.5, "429": 0.3}
    result = curate(claimed_job(sqlite_store, priced_run(sqlite_store, budget_usd=10.0))).as_json()
    assert result["spent_usd"] == pytest.approx(48 * 1200e-6, abs=2e-4)


@pytest.mark.parametrize("how", ["body", "cancelled", "unreadable", "refused"])
def test_a_probe_whose_answer_is_lost_counts_as_any_lost_answer(how: str) -> None:
    price, most = Price(1.0, 2.0), (500, 16)

    async def send() -> tuple[int, int]:
        if how == "body":
            raise openai.APIConnectionError(request=httpx2.Request("POST", "http://model"))
        if how == "cancelled":
            await asyncio.sleep(60)
        if how == "unreadable":
            raise ValueError("the answer cannot be read")
        sent = httpx2.Request("POST", "http://model")
        response = httpx2.Response(503, request=sent)
        raise openai.APIStatusError("no", response=response, body=None)

    async def ask() -> float:
        probe = Probe()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await probe.failure("small", [send], price, most=most, anew=True)
        return probe.spent_usd

    assert asyncio.run(ask()) == pytest.approx(0.0 if how == "refused" else price.usd(*most))


def test_the_probes_of_a_run_that_are_lost_are_of_its_budget(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All bodies are cut after some answers, those of the probes too."""
    monkeypatch.setattr("curation.providers.openai_server.BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr("curation.providers.openai_server.PROBE_EVERY_SECONDS", (0.05, 0.1))
    add_dataset(sqlite_store, pairs=6)
    probes = 0

    async def cut(request: web.Request, body: Any, prompt: str, tries: int) -> web.Response | None:
        nonlocal probes
        if server.answered.total() < 20:
            return None
        probes += prompt == "Reply with OK."
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    server.reply = cut
    provider: list[openai_server.OpenAIProvider] = []
    made = openai_server.OpenAIProvider.of_server

    def keep(*given: Any, **named: Any) -> openai_server.OpenAIProvider:
        provider.append(made(*given, **named))
        return provider[0]

    monkeypatch.setattr(openai_server.OpenAIProvider, "of_server", keep)
    run_id = priced_run(sqlite_store, budget_usd=10.0)
    with pytest.raises(ProviderError):
        curate(claimed_job(sqlite_store, run_id, patience_minutes=1 / 60))
    price = Price(1.0, 2.0)
    assert probes > 3
    spent = provider[0]._probe.spent_usd
    assert spent == pytest.approx(probes * price.usd(16, 16), rel=0.3)
