"""Asking a provider for judges: every answer is journaled before it is read, none is paid for
twice. A server or store that is away is waited for as a run waits for it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from curation.providers.provider import Answer, Keeps, Provider, Request, RowFailed, call_row
from db.run.calls import StoredCall, add_calls, find_calls
from db.store.store import Store

IN_FLIGHT = 16
WATCH_SECONDS = 0.5  # between two looks at what is waited for, and whether the work is to stop
OUT_OF_BUDGET = "out_of_budget"
Answers = tuple[dict[str, StoredCall], dict[str, str]]


@dataclass
class Patience:
    """How long a judge waits. `show`: shows what is waited for, "" once that is over.

    `with_store`: the result of work, tried again while the store is away. `was_reached`: its server
    answered this work before: then it is waited for at the start, too.
    """

    seconds: float = 0.0
    show: Callable[[str], None] = lambda _: None
    with_store: Callable[[Callable[[], Any]], Any] = lambda work: work()
    was_reached: bool = False


@dataclass
class Budget:
    """What a judge's answers may cost. `keep` stores `spent_usd`: what may become of it before
    calls are sent, what became of it after, so that a job that was killed does not spend it twice.
    """

    usd: float
    spent_usd: float
    keep: Callable[[float], None]

    def take(self, requests: Sequence[Request], provider: Provider) -> tuple[list[Request], float]:
        """The first of these requests that it certainly covers, and their highest cost."""
        taken, highest = [], 0.0
        for request in requests:
            price = provider.max_usd(request)
            if self.spent_usd + highest + price > self.usd:
                break
            taken.append(request)
            highest += price
        return taken, highest


def ask_all(
    store: Store,
    make: Callable[[], Provider],
    requests: Sequence[Request],
    check: Callable[[], None] | None,
    patience: Patience,
    budget: Budget | None = None,
) -> Answers:
    """The calls that answer these requests by key, and the reasons of those that fail.

    `make`: the provider, used where the journal has not all. What `budget` does not cover is not
    sent. Raises ProviderError if the provider cannot be used.
    """

    def find() -> dict[str, StoredCall]:
        with store.read() as session:
            return find_calls(session, [key for request in requests for key in request.keys])

    stored = patience.with_store(find)
    known = {
        request.key: stored[key]
        for request in requests
        for key in reversed(request.keys)
        if key in stored
    }
    missing = {request.key: request for request in requests if request.key not in known}
    failed: dict[str, str] = {}
    if missing:
        asyncio.run(
            _ask(store, make, list(missing.values()), known, failed, check, patience, budget)
        )
        patience.was_reached |= bool(known)
    return known, failed


async def _ask(
    store: Store,
    make: Callable[[], Provider],
    requests: Sequence[Request],
    known: dict[str, StoredCall],
    failed: dict[str, str],
    check: Callable[[], None] | None,
    patience: Patience,
    budget: Budget | None,
) -> None:
    provider, places = patience.with_store(make), asyncio.Semaphore(IN_FLIGHT)
    sent: dict[str, float] = {}  # what each call costs, at most until it is answered
    aside_usd = 0.0  # what answers cost that are not used

    def journal(request: Request, answer: Answer) -> dict[str, StoredCall]:
        kept: dict[str, StoredCall] = patience.with_store(partial(_journal, store, request, answer))
        return kept

    def keep_spent(usd: float) -> None:
        if budget is not None:
            patience.with_store(partial(budget.keep, usd))

    def keep(request: Request, answer: Answer) -> None:
        nonlocal aside_usd
        aside_usd += answer.cost_usd
        journal(request, answer)

    if isinstance(provider, Keeps):
        provider.keep = keep

    async def one(request: Request) -> None:
        async with places:
            if check is not None:
                check()
            sent[request.key] = 0.0 if budget is None else provider.max_usd(request)
            try:
                answer = await provider.answer(request)
            except RowFailed as error:
                sent[request.key] = 0.0  # an attempt without an answer is the provider's to count
                failed[request.key] = error.reason
            else:
                sent[request.key] = answer.cost_usd
                known.update(await asyncio.to_thread(journal, request, answer))

    async def send(some: Sequence[Request]) -> None:
        async with asyncio.TaskGroup() as group:
            for request in some:
                group.create_task(one(request))

    async def watch() -> None:
        shown = ""
        while True:
            if check is not None:
                check()
            waiting = provider.state().trouble.waiting()
            if waiting or shown:
                await asyncio.to_thread(patience.show, waiting)
            shown = waiting
            await asyncio.sleep(WATCH_SECONDS)

    async def work() -> None:
        await provider.check_models(list(dict.fromkeys(each.model for each in requests)))
        if budget is None:
            await send(requests)
            return
        before, waiting = budget.spent_usd, list(requests)
        while waiting:
            some, highest = budget.take(waiting, provider)
            if not some:
                failed.update((each.key, OUT_OF_BUDGET) for each in waiting)
                break
            waiting = waiting[len(some) :]
            await asyncio.to_thread(keep_spent, budget.spent_usd + highest)
            try:
                await send(some)
            finally:
                unanswered = provider.state().unanswered_usd
                budget.spent_usd = before + sum(sent.values()) + aside_usd + unanswered
                await asyncio.to_thread(keep_spent, budget.spent_usd)

    try:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch())
            await work()
            watching.cancel()
    except ExceptionGroup as several:
        first: Exception = several
        while isinstance(first, ExceptionGroup):
            first = first.exceptions[0]
        raise first from first.__cause__
    finally:
        await provider.close()


def _journal(store: Store, request: Request, answer: Answer) -> dict[str, StoredCall]:
    with store.write() as session:
        kept = add_calls(session, [call_row(request, answer)])
        session.commit()
    return kept
