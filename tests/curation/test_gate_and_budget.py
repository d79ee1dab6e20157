"""The gate's width and the money set aside, by hand."""

import asyncio
import time
from pathlib import Path

import pytest
from curation_runs import add_dataset

from curation.providers.gate import Gate
from curation.providers.provider import Stopped
from curation.recipe.prices import load_prices
from curation.run.starting import start_run
from db.errors import BadInput
from db.run.workers import Grant, add_worker, change_reserved, end_workers, set_aside
from db.store.store import Store


def test_one_cut_per_burst_and_a_slow_recovery() -> None:
    async def scene() -> None:
        gate = Gate(16)
        starts = []
        for _ in range(16):
            async with gate.slot() as started:
                starts.append(started)
        gate.in_flight = 16
        gate.throttled(starts[0], None)
        assert gate.width == 8
        for started in starts:  # the rest of the burst was sent before the cut
            gate.throttled(started, None)
        assert gate.width == 8 and gate.cuts == 1
        gate.in_flight = 0
        for _ in range(16):
            gate.worked()
        assert 11.5 < gate.width < 13, "quickly back to just below where the cut came"
        for _ in range(16):
            gate.worked()
        assert gate.width < 13.5, "and slowly beyond"
        gate.set_ceiling(4)
        assert gate.width == 4
        gate.set_ceiling(16)
        assert gate.width == 16

    asyncio.run(scene())


def test_retry_after_holds_everybody_back() -> None:
    async def scene() -> float:
        gate = Gate(4)
        gate.throttled(time.monotonic(), 0.2)
        began = time.monotonic()
        async with gate.slot():
            return time.monotonic() - began

    assert asyncio.run(scene()) > 0.15


def test_starts_are_spaced_where_the_rate_is_limited() -> None:
    async def scene() -> float:
        gate = Gate(8, per_minute=60 * 50)
        began = time.monotonic()

        async def call() -> None:
            async with gate.slot():
                await asyncio.sleep(0)

        await asyncio.gather(*(call() for _ in range(11)))
        return time.monotonic() - began

    assert asyncio.run(scene()) > 0.18


def test_a_limit_of_tokens_holds_back_for_as_long_as_they_are_worth() -> None:
    async def starts(tokens: list[float]) -> list[float]:
        gate = Gate(8, per_minute=60 * 1000, tokens_per_minute=60 * 10_000)

        async def one(size: float) -> float:
            async with gate.slot(lambda: size) as started:
                return started

        return [await one(size) for size in tokens]

    first, second, third, fourth = asyncio.run(starts([1000, 200, 1, 1]))
    assert second - first >= 0.098, "1,000 of 10,000 tokens a second"
    assert third - second >= 0.018
    assert fourth >= third, "few tokens: only the limit of requests is left"


def test_a_closed_gate_lets_nobody_in_and_wakes_who_waits() -> None:
    async def scene() -> None:
        gate = Gate(1)
        async with gate.slot():
            waiting = asyncio.create_task(gate.pause(30))
            other = asyncio.create_task(enter(gate))
            await asyncio.sleep(0.01)
            gate.close()
            for task in (waiting, other):
                with pytest.raises(Stopped):
                    await asyncio.wait_for(task, 30)

    async def enter(gate: Gate) -> None:
        async with gate.slot():
            raise AssertionError("the gate is closed")

    asyncio.run(scene())


def test_money_is_set_aside_for_all_workers_together(store: Store) -> None:
    add_dataset(store)
    with store.write() as session:
        run_id = start_run(session, dataset="small", provider="openai", budget_usd=1.0, limit=1).id
        for owner in ("one", "two"):
            add_worker(session, run_id, owner)
        assert set_aside(session, run_id, "one", [0.6]) == [Grant(True, 0.0)]
        assert set_aside(session, run_id, "two", [0.3, 0.2, 0.1]) == [
            Grant(True, pytest.approx(0.6)),
            Grant(False, pytest.approx(0.9)),
            Grant(True, pytest.approx(0.9)),
        ]
        change_reserved(session, "one", -0.6)
        assert set_aside(session, run_id, "two", [0.6])[0].granted
        end_workers(session, ["two"])
        assert set_aside(session, run_id, "one", [1.0, 0.1]) == [
            Grant(True, 0.0),
            Grant(False, 1.0),
        ]


def test_prices_of_ones_own_come_first(own_home: Path) -> None:
    assert load_prices()["gpt-4o-mini"].usd(1e6, 1e6) == pytest.approx(0.75)
    own_home.mkdir(parents=True, exist_ok=True)
    (own_home / "prices.toml").write_text('["gpt-4o-mini"]\ninput = 1\noutput = 2\n')
    assert load_prices()["gpt-4o-mini"].usd(1e6, 1e6) == 3.0


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('["x"]\ninput = 1\n', "price of 'x'"),
        ('["x"]\ninput = -1\noutput = 1\n', "0 or more"),
        ('["x"]\ninput = 1\noutput = nan\n', "0 or more"),
        ('["x"]\ninput = "1"\noutput = 1\n', "a number of USD"),
        ("x = 1\n", "price of 'x'"),
        ("[x\n", "no TOML"),
    ],
)
def test_a_price_table_that_is_wrong_is_told_with_its_model_and_what_to_write(
    own_home: Path, table: str, words: str
) -> None:
    own_home.mkdir(parents=True, exist_ok=True)
    (own_home / "prices.toml").write_text(table)
    with pytest.raises(BadInput, match=words):
        load_prices()
