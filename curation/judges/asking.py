"""Asking a provider for judges: every answer is journaled before it is read, none is paid for
twice."""

import asyncio
from collections.abc import Callable, Sequence

from curation.providers.provider import Answer, Provider, Request, RowFailed, call_row
from db.run.calls import StoredCall, add_calls, find_calls
from db.store.store import Store

IN_FLIGHT = 16
Answers = tuple[dict[str, StoredCall], dict[str, str]]


def ask_all(
    store: Store,
    make: Callable[[], Provider],
    requests: Sequence[Request],
    check: Callable[[], None] | None,
) -> Answers:
    """The calls that answer these requests by key, and the reasons of those that fail.

    `make`: the provider, used where the journal has not all. Raises ProviderError if it cannot be
    used.
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
        asyncio.run(_ask(store, make, list(missing.values()), known, failed, check))
    return known, failed


async def _ask(
    store: Store,
    make: Callable[[], Provider],
    requests: Sequence[Request],
    known: dict[str, StoredCall],
    failed: dict[str, str],
    check: Callable[[], None] | None,
) -> None:
    provider, places = make(), asyncio.Semaphore(IN_FLIGHT)

    async def one(request: Request) -> None:
        async with places:
            if check is not None:
                check()
            try:
                answer = await provider.answer(request)
            except RowFailed as error:
                failed[request.key] = error.reason
            else:
                known.update(await asyncio.to_thread(_journal, store, request, answer))

    try:
        await provider.check_models(list(dict.fromkeys(each.model for each in requests)))
        async with asyncio.TaskGroup() as group:
            for request in requests:
                group.create_task(one(request))
    except ExceptionGroup as several:
        raise several.exceptions[0] from several
    finally:
        await provider.close()


def _journal(store: Store, request: Request, answer: Answer) -> dict[str, StoredCall]:
    with store.write() as session:
        kept = add_calls(session, [call_row(request, answer)])
        session.commit()
    return kept
