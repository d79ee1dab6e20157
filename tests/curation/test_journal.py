"""The writer of a worker: what is committed when, and what becomes of those who wait."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from curation_runs import add_dataset, stored_calls

from curation.providers.provider import Answer, Request
from curation.recipe.prompt import FOLDER, read_prompt
from curation.recipe.tasks import tasks_of
from curation.run.journal import SLICE, Journal, WaitTimes
from curation.run.starting import start_run
from db.run.calls import StoredCall
from db.run.workers import Grant, add_worker
from db.shape import INF_IR
from db.store.store import Store

TASKS = tasks_of(INF_IR)


def request(number: int) -> Request:
    """One of many calls."""
    return Request(
        task="instruction_positive",
        gives="Instruction",
        provider="openai",
        model="small",
        parameters={},
        prompt=read_prompt(
            "instruction_positive", TASKS["instruction_positive"], "instruction_positive.md", FOLDER
        ),
        inputs={"document": f"document {number}", "query_positive": "query"},
    )


def with_journal(store: Store, scene: Callable[[Journal], Awaitable[Any]]) -> Any:
    """What a scene with the journal of a new run gives; the journal is closed after it."""
    add_dataset(store, pairs=1)
    with store.write() as session:
        run_id = start_run(session, dataset="small", provider="openai", settings=["model=small"]).id
        add_worker(session, run_id, "us")
        session.commit()

    async def play() -> Any:
        journal = Journal(store, run_id, "us")
        try:
            return await scene(journal)
        finally:
            await journal.close()

    return asyncio.run(play())


async def held(journal: Journal) -> threading.Event:
    """The journal's thread at work until the event is set."""
    began, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        assert go_on.wait(60)

    journal.between(hold)
    await asyncio.to_thread(began.wait, 60)
    return go_on


def test_answers_are_committed_before_everything_that_waited_longer(store: Store) -> None:
    async def scene(journal: Journal) -> tuple[int, list[StoredCall]]:
        go_on = await held(journal)
        others = [journal.find((f"key {number}",), 0.0) for number in range(3 * SLICE)]
        seen = journal.write(lambda session: stored_calls(store))
        answers = [journal.add(request(number), Answer("yes"), 0.0) for number in range(5)]
        go_on.set()
        kept = await asyncio.gather(*answers)
        assert await asyncio.gather(*others) == [Grant(True, 0.0)] * len(others)
        return await seen, kept

    seen, kept = with_journal(store, scene)
    assert seen == 5, "they were durable when the last of the rest was written"
    assert [one.key for one in kept] == [request(number).key for number in range(5)]


def test_one_failing_transaction_is_told_to_who_waits_for_it_and_the_next_goes_on(
    store: Store,
) -> None:
    def fail(_session: object) -> None:
        raise RuntimeError("no room")

    async def scene(journal: Journal) -> None:
        with pytest.raises(RuntimeError, match="no room"):
            await journal.write(fail)
        assert (await journal.add(request(0), Answer("yes"), 0.0)).answer == "yes"
        found = await journal.find(request(0).keys, 0.0)
        assert isinstance(found, StoredCall)

    with_journal(store, scene)
    assert stored_calls(store) == 1


def test_what_waits_when_the_journal_is_closed_is_written_before_it_ends(store: Store) -> None:
    order: list[str] = []

    async def scene(journal: Journal) -> threading.Event:
        go_on = await held(journal)
        for number in range(200):
            journal.add(request(number), Answer("yes"), 0.0)
            journal.write(lambda session, number=number: order.append(f"write {number}"))
        journal.between(lambda: order.append("between"))
        journal.write(lambda session: order.append("last"))
        go_on.set()
        return go_on

    with_journal(store, scene)
    assert stored_calls(store) == 200
    assert order == [*(f"write {number}" for number in range(200)), "between", "last"]


def test_somebody_who_waits_no_longer_holds_nobody_up(store: Store) -> None:
    async def scene(journal: Journal) -> None:
        go_on = await held(journal)
        waiting = asyncio.ensure_future(journal.add(request(0), Answer("yes"), 0.0))
        waiting.cancel()
        go_on.set()
        assert (await journal.add(request(1), Answer("yes"), 0.0)).answer == "yes"

    with_journal(store, scene)
    assert stored_calls(store) == 2, "a paid answer is stored also where nobody waits for it"


def test_the_journal_tells_how_long_answers_waited(store: Store) -> None:
    async def scene(journal: Journal) -> dict[str, int]:
        await asyncio.gather(
            *(journal.add(request(number), Answer("yes"), 0.0) for number in range(20))
        )
        return journal.committed.percentiles()

    told = with_journal(store, scene)
    assert list(told) == ["p50", "p99", "p99_9", "most"]
    assert 0 < told["p50"] <= told["p99"] <= told["p99_9"] <= told["most"]


def test_commit_times_are_the_milliseconds_within_which_a_share_was_committed() -> None:
    times = WaitTimes()
    assert times.percentiles() == {}
    for ms in range(1, 1001):
        times.add(ms / 1000 - 0.0004)
    times.add(5.0)
    # of 1,001 the 501st, the 991st, the 1,000th and the last
    assert times.percentiles() == {"p50": 501, "p99": 991, "p99_9": 1000, "most": 5000}
