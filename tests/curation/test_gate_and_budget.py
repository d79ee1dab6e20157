"""The gate's width and the budget's reservations, by hand."""

import asyncio
import time

import pytest

from curation.budget import Budget
from curation.gate import Gate
from curation.prices import load_prices
from curation.providers import Stopped
from db.errors import BadInput


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
        assert 8.5 < gate.width < 9.5
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

    assert 0.15 < asyncio.run(scene()) < 1.0


def test_starts_are_spaced_where_the_rate_is_limited() -> None:
    async def scene() -> float:
        gate = Gate(8, per_minute=60 * 50)
        began = time.monotonic()

        async def call() -> None:
            async with gate.slot():
                await asyncio.sleep(0)

        await asyncio.gather(*(call() for _ in range(11)))
        return time.monotonic() - began

    assert 0.18 < asyncio.run(scene()) < 0.6


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
                    await asyncio.wait_for(task, 1)

    async def enter(gate: Gate) -> None:
        async with gate.slot():
            raise AssertionError("the gate is closed")

    asyncio.run(scene())


def test_a_call_that_does_not_fit_waits_for_what_is_set_aside() -> None:
    async def scene() -> None:
        budget = Budget(1.0, 0.2)
        assert await budget.reserve(0.6)
        waiting = asyncio.create_task(budget.reserve(0.5))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(0.6, 0.1)
        assert await waiting
        budget.settle(0.5, 0.5)
        assert budget.spent_usd == pytest.approx(0.8)
        assert not await budget.reserve(0.3)
        assert await Budget(None, 5.0).reserve(100.0)

    asyncio.run(scene())


def test_prices_of_ones_own_come_first(own_home: object, tmp_path: object) -> None:
    from pathlib import Path

    assert isinstance(own_home, Path)
    assert load_prices()["gpt-4o-mini"].usd(1e6, 1e6) == pytest.approx(0.75)
    own_home.mkdir(parents=True, exist_ok=True)
    (own_home / "prices.toml").write_text('["gpt-4o-mini"]\ninput = 1\noutput = 2\n')
    assert load_prices()["gpt-4o-mini"].usd(1e6, 1e6) == 3.0
    (own_home / "prices.toml").write_text('["x"]\ninput = 1\n')
    with pytest.raises(BadInput, match="price table"):
        load_prices()
