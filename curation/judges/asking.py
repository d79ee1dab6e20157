"""Asking a provider for judges: every answer is journaled before it is read, none is paid for
twice."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from curation.providers.provider import Answer, Keeps, Provider, Request, RowFailed, call_row
from db.run.calls import StoredCall, add_calls, find_calls
from db.store.store import Store

IN_FLIGHT = 16
OUT_OF_BUDGET = "out_of_budget"
Answers = tuple[dict[str, StoredCall], dict[str, str]]


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
    budget: Budget | None = None,
) -> Answers:
    """The calls that answer these requests by key, and the reasons of those that fail.

    `make`: the provider, used where the journal has not all. What `budget` does not cover is not
    sent. Raises ProviderError if the provider cannot be used.
    """
    with store.read() as session:
        stored = find_calls(session, [key for request in requests for key in request.keys])
    known = {
        request.key: stored[key]
        for request in requests
        for key in reversed(request.keys)
        if key in stored
    }
    missing = {request.key: request for request in requests if request.key not in known}
    failed: dict[str, str] = {}
    if missing:
        asyncio.run(_ask(store, make, list(missing.values()), known, failed, check, budget))
    return known, failed


async def _ask(
    store: Store,
    make: Callable[[], Provider],
    requests: Sequence[Request],
    known: dict[str, StoredCall],
    failed: dict[str, str],
    check: Callable[[], None] | None,
    budget: Budget | None,
) -> None:
    provider, places = make(), asyncio.Semaphore(IN_FLIGHT)
    sent: dict[str, float] = {}  # what each call costs, at most until it is answered
    aside_usd = 0.0  # what answers cost that are not used

    def keep(request: Request, answer: Answer) -> None:
        nonlocal aside_usd
        aside_usd += answer.cost_usd
        _journal(store, request, answer)

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
                known.update(await asyncio.to_thread(_journal, store, request, answer))

    async def send(some: Sequence[Request]) -> None:
        async with asyncio.TaskGroup() as group:
            for request in some:
                group.create_task(one(request))

    try:
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
            await asyncio.to_thread(budget.keep, budget.spent_usd + highest)
            try:
                await send(some)
            finally:
                unanswered = provider.state().unanswered_usd
                budget.spent_usd = before + sum(sent.values()) + aside_usd + unanswered
                await asyncio.to_thread(budget.keep, budget.spent_usd)
    except ExceptionGroup as several:
        raise several.exceptions[0] from several
    finally:
        await provider.close()


def _journal(store: Store, request: Request, answer: Answer) -> dict[str, StoredCall]:
    with store.write() as session:
        kept = add_calls(session, [call_row(request, answer)])
        session.commit()
    return kept
