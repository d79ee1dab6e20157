"""Limits of a run over all of its workers: leased in slices, never exceeded, never left unused."""

import asyncio
import random
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from curation_runs import add_dataset, start_worker, wait_for
from openai_server import Server
from sqlalchemy import select, update
from waiting import SimulatedTime, until

from curation.providers.gate import Gate
from curation.run.answer_files import folder_of
from curation.run.starting import resume_run, start_run
from db.clock import store_now
from db.machine import new_owner
from db.run.runs import funnel, get_run, set_concurrency
from db.run.workers import (
    Account,
    Share,
    add_worker,
    end_workers,
    lease_budget,
    lease_share,
    rejoin,
    store_account,
)
from db.store.store import Store
from db.tables import Group, RunWorker

PRICES = '["small"]\ninput = 1.0\noutput = 10.0\n'
MOST_USD = 0.004  # of a call
PAIRS = 200
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def run_of(store: Store, **settings: object) -> int:
    add_dataset(store)
    with store.write() as session:
        run_id = start_run(session, dataset="small", provider="openai", limit=1, **settings).id
        session.commit()
    return run_id


def held(store: Store, run_id: int) -> tuple[int, float]:
    """The calls in flight and the part of the limits per minute that living workers hold."""
    with store.read() as session:
        rows = session.execute(
            select(RunWorker.leased_calls, RunWorker.leased_part).where(
                RunWorker.run_id == run_id, RunWorker.ended_at.is_(None)
            )
        ).all()
    return sum(calls or 0 for calls, _ in rows), sum(part for _, part in rows)


@pytest.mark.parametrize("seed", range(3))
def test_shares_are_never_more_than_the_run_has_and_all_of_it_in_the_end(
    store: Store, seed: int
) -> None:
    """Workers join, answer, die, and are taken for dead, in any order."""
    run_id, chance, total = run_of(store, concurrency=13), random.Random(seed), 13
    living: dict[str, Share] = {}
    dead: list[str] = []
    for step in range(120):
        with store.write() as session:
            what = chance.choice(["join", "beat", "beat", "beat", "idle", "end", "change", "back"])
            if what == "join" and len(living) < 20:
                add_worker(session, run_id, f"worker {step}")
                living[f"worker {step}"] = Share(0, 0.0)
            elif what == "end" and living:
                dead.append(chance.choice(list(living)))
                end_workers(session, [dead[-1]])
                living.pop(dead[-1])
            elif what == "back" and dead:
                owner = dead.pop()
                rejoin(session, owner, Account())
                living[owner] = Share(0, 0.0)
            elif what == "change" and step > 60 and total == 13:
                total = 21
                set_concurrency(session, run_id, total)
            elif living:
                owner = chance.choice(list(living))
                busy, is_idle = chance.randint(0, living[owner].calls), what == "idle"
                living[owner] = lease_share(
                    session, run_id, owner, in_flight=busy * (not is_idle), is_idle=is_idle
                )
            session.commit()
        calls, part = held(store, run_id)
        assert calls <= total and part <= 1 + 1e-9
        assert sum(each.calls for each in living.values()) <= total
    if not living:
        pytest.skip("all have ended")
    for _ in range(3):  # who wants some is seen, who holds too much lets go, the others take it
        for owner in living:
            with store.write() as session:
                living[owner] = lease_share(session, run_id, owner, in_flight=0)
                session.commit()
    assert sum(each.calls for each in living.values()) == total
    assert sum(each.part for each in living.values()) == pytest.approx(1.0)
    assert max(each.calls for each in living.values()) - min(
        each.calls for each in living.values()
    ) in (0, 1), "whole slots, equal shares"


def test_a_worker_with_a_number_of_its_own_takes_none_of_the_others(store: Store) -> None:
    run_id = run_of(store, concurrency=8)
    with store.write() as session:
        for owner in ("own", "one", "two"):
            add_worker(session, run_id, owner)
        for _ in range(2):
            own = lease_share(session, run_id, "own", in_flight=0, own_calls=5)
            one = lease_share(session, run_id, "one", in_flight=0)
            two = lease_share(session, run_id, "two", in_flight=0)
        assert (own.calls, one.calls, two.calls) == (5, 4, 4)
        assert own.part == pytest.approx(1 / 3), "the limits per minute are the server's"


@pytest.mark.parametrize("seed", range(3))
def test_a_budget_is_neither_exceeded_nor_refused_while_some_is_left(
    store: Store, seed: int
) -> None:
    """Workers spend at random and die at random: what was in flight then counts as spent."""
    budget, chance = 0.5, random.Random(seed)
    run_id = run_of(store, budget_usd=budget)
    accounts: dict[str, Account] = {}
    gone, is_over = 0.0, False
    for step in range(4000):
        with store.write() as session:
            if len(accounts) < 4:
                add_worker(session, run_id, f"worker {step}")
                accounts[f"worker {step}"] = Account()
            owner = chance.choice(list(accounts))
            account = accounts[owner]
            if chance.random() < 0.02:
                end_workers(session, [owner])
                gone += accounts.pop(owner).taken_usd
                session.commit()
                continue
            usd, others_usd = chance.uniform(0.0005, MOST_USD), 0.0
            if account.reserved_usd and chance.random() < 0.6:  # an answer, for less than its most
                cost = account.reserved_usd * chance.uniform(0.2, 1.0)
                account = replace(account, spent_usd=account.spent_usd + cost, reserved_usd=0.0)
            elif account.short_by(usd):
                account, others_usd = lease_budget(session, run_id, owner, account, 3 * usd, usd)
                is_over = bool(account.short_by(usd)) and others_usd + account.reserved_usd <= 1e-9
            if not account.short_by(usd):
                account = replace(account, reserved_usd=account.reserved_usd + usd)
            accounts[owner] = account
            assert store_account(session, owner, account)
            session.commit()
        taken = gone + sum(each.taken_usd for each in accounts.values())
        slack = sum(max(0.0, each.leased_usd - each.taken_usd) for each in accounts.values())
        assert taken + slack <= budget + 1e-6
        if is_over:
            assert budget - taken < MOST_USD <= 0.02 * budget, "refused while more was left"
            break
    assert is_over
    with store.read() as session:
        assert get_run(session, run_id).spent_usd == pytest.approx(
            gone + sum(each.spent_usd for each in accounts.values())
        )


def test_parts_of_a_limit_per_minute_make_up_the_whole() -> None:
    """Four gates with a quarter each start as many calls as one; a fifth without a part none."""

    async def starts(parts: list[float], seconds: float) -> int:
        gates, count = [Gate(50, per_minute=60 * 200) for _ in parts], 0
        for gate, part in zip(gates, parts, strict=True):
            gate.set_part(0.0)
            gate.set_part(part)

        async def call(gate: Gate) -> None:
            nonlocal count
            while True:
                async with gate.slot():
                    count += 1

        tasks = [asyncio.create_task(call(gate)) for gate in gates]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return count

    assert asyncio.run(starts([0.0], 0.3)) == 0
    assert 0.5 * 400 <= asyncio.run(starts([0.25] * 4 + [0.0], 2.0)) <= 400


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 8])
def test_a_worker_without_groups_leaves_its_share_to_the_others_within_seconds(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """In simulated time: all but one have no groups between 30 and 60 s, and each renews its share
    once a second."""
    store, limit = sqlite_store, 30_000  # tokens a minute, of calls of 20
    run_id = run_of(store, concurrency=16)
    starts: list[float] = []
    calls: list[int] = []

    async def work(number: int) -> None:
        owner, gate = f"worker {number}", Gate(16, tokens_per_minute=limit)
        with store.write() as session:
            add_worker(session, run_id, owner)
            session.commit()

        def is_idle() -> bool:
            return number > 0 and 30 <= clock() - SimulatedTime.now < 60

        async def call() -> None:
            while True:
                if is_idle():
                    await asyncio.sleep(0.5)
                    continue
                async with gate.slot(lambda: 20.0) as started:
                    starts.append(started - SimulatedTime.now)
                    await asyncio.sleep(0.5)

        callers = [asyncio.create_task(call()) for _ in range(16)]
        while clock() - SimulatedTime.now < 90:
            with store.write() as session:
                share = lease_share(
                    session, run_id, owner, in_flight=gate.in_flight, is_idle=is_idle()
                )
                session.commit()
            gate.set_ceiling(share.calls)
            gate.set_part(share.part)
            total, parts = held(store, run_id)
            assert total <= 16 and parts <= 1 + 1e-9
            calls.append(share.calls)
            await asyncio.sleep(1.0)
        for each in callers:
            each.cancel()
        await asyncio.gather(*callers, return_exceptions=True)

    async def all_work() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(work(number))

    with asyncio.Runner(loop_factory=SimulatedTime) as runner:
        clock = runner.get_loop().time
        monkeypatch.setattr(time, "monotonic", clock)
        runner.run(all_work())
    monkeypatch.undo()

    def most(seconds: float) -> float:
        starts.sort()
        return max(sum(at <= each < at + seconds for each in starts) for at in starts)

    assert most(60) <= 1.02 * limit / 20, "and never more together"
    for begin, end in ((5, 30), (34, 60), (65, 90)):
        found = sum(begin <= each < end for each in starts)
        assert found > 0.97 * (end - begin) * limit / 60 / 20, (begin, end, found)
    assert max(calls) == 16, "its calls in flight, too"


@pytest.mark.long
def test_a_worker_that_waits_for_groups_of_others_holds_nothing_and_takes_those_that_come_back(
    store: Store, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(store, pairs=4)
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with store.write() as session:
            asked = {"dataset": "small", "provider": "openai", "settings": ["model=small"]}
            run_id = start_run(session, **asked, requests_per_minute=6000).id
            add_worker(session, run_id, "another")
            lease_share(session, run_id, "another", in_flight=0)
            taken = update(Group).where(Group.run_id == run_id)
            session.execute(taken.values(state="leased", lease_owner="another", lease_until=LATER))
            session.commit()

        def part_of_the_other() -> float:
            with store.write() as session:  # it lives, however long this takes
                alive = update(RunWorker).where(RunWorker.owner == "another")
                session.execute(alive.values(heartbeat_at=store_now(session)))
                part = lease_share(session, run_id, "another", in_flight=0).part
                session.commit()
                return part

        worker = start_worker(store, run_id, base_url=server.url)
        try:
            until(lambda: part_of_the_other() < 1.0, seconds=60)  # it has begun
            until(lambda: part_of_the_other() == 1.0, seconds=120)
            with store.write() as session:
                end_workers(session, ["another"])
                session.execute(taken.values(state="waiting", lease_owner=None, lease_until=None))
                session.commit()
            worker.join(120)
            assert worker.exitcode == 0
        finally:
            worker.kill()
            worker.join()
    with store.read() as session:
        assert get_run(session, run_id).status == "done"


def dead_owner() -> str:
    """The owner name of a process of this machine that has ended."""
    code = f"from {new_owner.__module__} import new_owner; print(new_owner())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    return done.stdout.strip()


@pytest.mark.long
def test_what_a_dead_worker_leased_is_not_waited_for(
    store: Store, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies with all of the budget and of the calls, while the other has groups in work."""
    own_home.mkdir(exist_ok=True)
    (own_home / "prices.toml").write_text(PRICES)
    add_dataset(store)
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        server.hold_after = 5
        with store.write() as session:
            asked = {"dataset": "small", "provider": "openai", "settings": ["model=small"]}
            run_id = start_run(session, **asked, concurrency=4, budget_usd=1.0).id
            session.commit()
        worker = start_worker(store, run_id, base_url=server.url)
        try:
            wait_for(lambda: server.answered.total() >= 5)
            with store.write() as session:
                session.add(
                    RunWorker(run_id=run_id, owner=dead_owner(), leased_usd=0.97, leased_part=1.0)
                )
                session.commit()
            began = time.monotonic()
            server.hold_after = None
            worker.join(60)
            assert worker.exitcode == 0 and time.monotonic() - began < 45
        finally:
            worker.kill()
            worker.join()
    with store.read() as session:
        assert get_run(session, run_id).status == "done"


@pytest.mark.long
def test_a_server_never_bills_more_than_the_budget_of_a_run_whose_workers_are_killed(
    postgres_store: Store, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three workers, eight kills, every second with the loss of the machine's files.

    What the server gave an answer to is its bill, each at most the maximum of its call. The run
    ends at its budget, and goes on to the end with a larger one.
    """
    store, chance = postgres_store, random.Random(3)
    kills, lost_files, in_flight = 8, 4, 6
    own_home.mkdir(exist_ok=True)
    (own_home / "prices.toml").write_text(PRICES)
    add_dataset(store, pairs=PAIRS)
    with Server(latency_seconds=0.02, usage=(450, 190)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        usd = (450 * 1.0 + 190 * 10.0) / 1e6  # a call in flight may cost from 0.0025 to 0.042
        budget = 3.6
        with store.write() as session:
            asked = {"dataset": "small", "provider": "openai", "settings": ["model=small"]}
            run = start_run(session, **asked, concurrency=in_flight, budget_usd=budget)
            run_id = run.id
            session.commit()

        def start() -> Any:
            return start_worker(store, run_id, base_url=server.url)

        workers = [start() for _ in range(3)]
        for number in range(kills):
            goal = 40 * (number + 1)
            wait_for(lambda goal=goal: server.answered.total() >= goal)
            at = chance.randrange(3)
            # which files are its own: only one worker is left to have some
            for each in workers if number < lost_files else [workers[at]]:
                each.kill()
                each.join()
            if number < lost_files:
                shutil.rmtree(folder_of(store), ignore_errors=True)
            workers = [each if each.is_alive() else start() for each in workers]
        for worker in workers:
            worker.join(180)
            assert worker.exitcode == 0
        billed, asked_again = (
            server.answered.total(),
            server.answered.total() - len(server.answered),
        )
        with store.read() as session:
            run = get_run(session, run_id)
            lost_usd = sum(session.scalars(select(RunWorker.unanswered_usd)))
            assert run.status == "paused" and "budget" in str(run.error)
        assert billed * usd <= run.spent_usd + 1e-9 <= budget + 2e-9
        assert run.spent_usd > 0.98 * budget, "and none of it is left unused"
        assert 0 < asked_again <= 3 * kills * in_flight
        assert 0 < lost_usd < 0.5 * budget, "what may have been billed is told apart"
        with store.write() as session:
            resume_run(session, run_id, budget_usd=10.0)
            session.commit()
        last = start()
        last.join(180)
        assert len(server.answered) == PAIRS * 8
    with store.read() as session:
        assert get_run(session, run_id).status == "done"
        assert funnel(session, run_id).finished == PAIRS
