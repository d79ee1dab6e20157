"""The gate's width and the money set aside, by hand."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from curation_runs import add_dataset
from sqlalchemy import select, text, update
from waiting import SimulatedTime

from curation.providers.gate import Gate
from curation.providers.provider import Stopped
from curation.recipe.prices import load_prices
from curation.run.starting import start_run
from db.errors import BadInput
from db.run.runs import get_run
from db.run.workers import (
    WORKER_DIED,
    Account,
    Figures,
    add_worker,
    beat_worker,
    end_workers,
    lease_budget,
    leave,
    rejoin,
    store_account,
    worker_totals,
)
from db.store import schema
from db.store.store import Store
from db.tables import Run, RunWorker


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


def test_a_limit_of_tokens_holds_back_for_as_long_as_they_are_worth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In simulated time: on a busy machine the first starts late, the second no later for it."""

    async def starts(tokens: list[float]) -> list[float]:
        gate = Gate(8, per_minute=60 * 1000, tokens_per_minute=60 * 10_000)

        async def one(size: float) -> float:
            async with gate.slot(lambda: size) as started:
                return started

        return [await one(size) for size in tokens]

    with asyncio.Runner(loop_factory=SimulatedTime) as runner, monkeypatch.context() as patched:
        patched.setattr(time, "monotonic", runner.get_loop().time)
        first, second, third, fourth = runner.run(starts([1000, 200, 1, 1]))
    assert second - first >= 0.098, "1,000 of 10,000 tokens a second"
    assert third - second >= 0.018
    assert fourth >= third, "few tokens: only the limit of requests is left"


def test_starts_that_a_busy_loop_delays_hold_back_no_later_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each waiter wakes 20 ms too late: in a minute as many tokens start as the limit has."""
    clock = [100.0]
    monkeypatch.setattr("curation.providers.gate.time.monotonic", lambda: clock[0])

    async def pause_too_long(gate: Gate, seconds: float) -> None:
        clock[0] += seconds + 0.02

    monkeypatch.setattr(Gate, "pause", pause_too_long)

    async def scene() -> list[float]:
        gate = Gate(8, tokens_per_minute=60 * 10_000)
        starts = []
        for _ in range(600):
            async with gate.slot(lambda: 1000) as started:
                starts.append(started)
            if len(starts) == 300:
                clock[0] += 30  # nobody asks for half a minute: nothing is made up for
        return starts

    starts = asyncio.run(scene())
    assert starts[299] - starts[0] == pytest.approx(29.9, rel=0.01)
    assert starts[599] - starts[300] == pytest.approx(29.9, rel=0.01)


def test_who_comes_overtakes_nobody_who_waits() -> None:
    """A caller that went on at once had every slot, and one that waited none for minutes."""
    order: list[str] = []

    async def calls(gate: Gate, name: str) -> None:
        for _ in range(20):
            async with gate.slot():
                order.append(name)
                await asyncio.sleep(0)

    async def run() -> None:
        gate = Gate(1)
        await asyncio.gather(*(calls(gate, name) for name in "abc"))
        assert gate.in_flight == 0

    asyncio.run(run())
    assert order == list("abc") * 20


def test_a_call_that_is_cancelled_while_it_waits_leaves_no_slot_behind() -> None:
    async def hold(gate: Gate, free: asyncio.Event) -> None:
        async with gate.slot():
            await free.wait()

    async def run() -> None:
        gate, free = Gate(1), asyncio.Event()
        first, waits, given, last = (asyncio.create_task(hold(gate, free)) for _ in range(4))
        await asyncio.sleep(0)
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        given.cancel()  # in the round in which it got the slot
        await asyncio.gather(given, return_exceptions=True)
        assert gate.in_flight == 1 and not last.done()
        free.set()
        await last
        assert gate.in_flight == 0

    asyncio.run(run())


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


def budget_of(store: Store, usd: float | None, *owners: str) -> int:
    """A run with a budget, or none, and these workers."""
    add_dataset(store)
    with store.write() as session:
        run_id = start_run(session, dataset="small", provider="openai", budget_usd=usd, limit=1).id
        for owner in owners:
            add_worker(session, run_id, owner)
        session.commit()
    return run_id


def lease(
    store: Store, run_id: int, owner: str, account: Account, usd: float, least: float = 0.0
) -> tuple[Account, float]:
    with store.write() as session:
        account, others_usd = lease_budget(session, run_id, owner, account, usd, least or usd)
        assert store_account(session, owner, account)
        session.commit()
    return account, others_usd


def keep(store: Store, owner: str, account: Account) -> None:
    with store.write() as session:
        assert store_account(session, owner, account)
        session.commit()


def spent(store: Store, run_id: int) -> float:
    with store.read() as session:
        return get_run(session, run_id).spent_usd


def test_slices_of_all_workers_together_are_never_more_than_the_budget(store: Store) -> None:
    run_id = budget_of(store, 1.0, "one", "two")
    one, _ = lease(store, run_id, "one", Account(), 0.6)
    assert one.leased_usd == pytest.approx(0.6) and not one.short_by(0.6)
    keep(store, "one", one := replace(one, reserved_usd=0.6))
    two, others_usd = lease(store, run_id, "two", Account(), 0.5, 0.1)
    assert two.leased_usd == pytest.approx(0.4) and others_usd == pytest.approx(0.6)
    two = replace(two, spent_usd=0.3, leased_usd=0.3)
    one = replace(one, spent_usd=0.1, reserved_usd=0.0)  # the call cost less than its maximum
    keep(store, "one", one)
    keep(store, "two", two)
    assert spent(store, run_id) == pytest.approx(0.4)
    keep(store, "one", one := replace(one, leased_usd=0.1))
    two, others_usd = lease(store, run_id, "two", two, 0.7, 0.1)
    assert two.leased_usd - two.taken_usd == pytest.approx(0.6) and others_usd == pytest.approx(0.0)


def test_what_a_dead_worker_had_reserved_counts_as_spent(store: Store) -> None:
    """The server may have billed its calls in flight: nobody else may spend that."""
    run_id = budget_of(store, 1.0, "one", "two")
    one, _ = lease(store, run_id, "one", Account(), 0.5)
    keep(store, "one", replace(one, spent_usd=0.1, reserved_usd=0.3))
    with store.write() as session:
        end_workers(session, ["one"])
        session.commit()
    assert spent(store, run_id) == pytest.approx(0.4)
    two, others_usd = lease(store, run_id, "two", Account(), 0.7, 0.1)
    assert two.leased_usd == pytest.approx(0.6) and others_usd == pytest.approx(0.0)


def test_calls_in_flight_of_a_dead_worker_are_counted_without_a_budget(store: Store) -> None:
    run_id = budget_of(store, None, "dead", "alive", "leaves")
    counts = {"width": 8.0, "made": 90, "reused": 0, "failures": 3, "throttled": 0}
    with store.write() as session:
        for owner in ("dead", "alive", "leaves"):
            figures = Figures(errors={"cut": 3})
            beat_worker(session, owner, in_flight=7, **counts, figures=figures)
        assert worker_totals(session, run_id).died_in_flight == 0
        leave(session, run_id, "leaves")
        end_workers(session, ["dead"])
        end_workers(session, ["dead"])  # by a second worker: it counts once
        session.commit()
    with store.read() as session:
        totals = worker_totals(session, run_id)
        assert (totals.died_in_flight, totals.in_flight, totals.unanswered_usd) == (7, 7, 0.0)
        (errors,) = session.scalars(select(RunWorker.errors).where(RunWorker.owner == "dead"))
        assert errors == {"cut": 3, WORKER_DIED: 7}
    with store.write() as session:  # it was cut off, and lives: its next heartbeat has its own
        rejoin(session, "dead", Account())
        beat_worker(session, "dead", in_flight=7, **counts, figures=Figures(errors={"cut": 3}))
        session.commit()
        assert worker_totals(session, run_id).died_in_flight == 0


def test_a_worker_that_was_taken_for_dead_holds_what_it_spent_and_reserved(store: Store) -> None:
    run_id = budget_of(store, 1.0, "one", "two")
    one, _ = lease(store, run_id, "one", Account(), 0.5)
    keep(store, "one", one := replace(one, spent_usd=0.1, reserved_usd=0.3))
    with store.write() as session:
        end_workers(session, ["one"])
        assert not store_account(session, "one", replace(one, reserved_usd=0.4))
        session.commit()
    assert lease(store, run_id, "two", Account(), 0.7, 0.1)[0].leased_usd == pytest.approx(0.6)
    with store.write() as session:
        rejoin(session, "one", one)
        session.commit()
    assert spent(store, run_id) == pytest.approx(0.1)
    one = replace(one, leased_usd=one.taken_usd)
    leased, _ = lease(store, run_id, "one", one, 0.1)
    assert leased.leased_usd - leased.taken_usd == pytest.approx(0.0)


def test_what_a_run_spent_is_the_same_after_an_upgrade(store: Store) -> None:
    """Before 0041 the run's own row had all of it."""
    run_id = budget_of(store, 1.0, "one", "two")
    keep(store, "one", Account(spent_usd=0.25, unanswered_usd=0.05))
    keep(store, "two", Account(spent_usd=0.4))
    with store.write() as session:
        end_workers(session, ["one", "two"])
        session.execute(update(Run).values(other_usd=0.1))
        session.commit()
    schema.downgrade(store, "0040")
    with store.engine.connect() as connection:
        before = connection.exec_driver_sql("SELECT spent_usd FROM run").scalar()
    assert before == pytest.approx(0.8)
    schema.upgrade(store)
    assert spent(store, run_id) == pytest.approx(0.8)


def test_an_answer_that_is_lost_and_still_reserved_leases_nothing_beyond_the_budget(
    store: Store,
) -> None:
    """It counts twice until its reservation is freed; what was leased for that paid a call more."""
    run_id = budget_of(store, 1.0, "one")
    account, _ = lease(store, run_id, "one", Account(), 0.9)
    account, _ = lease(
        store, run_id, "one", replace(account, unanswered_usd=0.9, reserved_usd=0.6), 0.3
    )
    freed = replace(account, reserved_usd=0.0)
    assert freed.short_by(0.1) == 0.0 < freed.short_by(0.3)
    assert lease(store, run_id, "one", freed, 0.3)[0].short_by(0.3)


def test_a_worker_waits_for_no_commit_of_another(postgres_store: Store) -> None:
    """The lock on the run's row that all workers updated was 8.6 s of waiting in one run."""
    run_id = budget_of(postgres_store, 1.0, "one", "two")
    one, _ = lease(postgres_store, run_id, "one", Account(), 0.1)
    with postgres_store.write() as held, postgres_store.write() as other:
        store_account(held, "one", replace(one, spent_usd=0.01))  # not committed yet
        held.flush()
        other.execute(text("SET LOCAL lock_timeout = '1s'"))
        two, _ = lease_budget(other, run_id, "two", Account(), 0.1, 0.1)
        store_account(other, "two", two)
        other.commit()
        assert two.leased_usd >= 0.1
        held.commit()


@pytest.mark.long
def test_leases_at_the_same_moment_keep_the_budget_and_wait_for_nobody(
    postgres_store: Store,
) -> None:
    """Ten workers lease, reserve and spend what they get at once, until no more can come back."""
    owners = [f"worker {number}" for number in range(10)]
    run_id = budget_of(postgres_store, 1.0, *owners)

    def spend(owner: str) -> float:
        account, others_usd = Account(), 1.0
        while others_usd > 1e-9:
            account, others_usd = lease(postgres_store, run_id, owner, account, 0.013)
            if not account.short_by(0.013):
                account, others_usd = replace(account, spent_usd=account.spent_usd + 0.013), 1.0
        return account.spent_usd

    with ThreadPoolExecutor(len(owners)) as pool:
        spent = sum(pool.map(spend, owners))
    assert 1.0 - 0.013 < spent <= 1.0 + 1e-6


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
