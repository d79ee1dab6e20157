"""The only writer of a worker: everything that must be stored goes through here, in group commits.

It is a thread of its own, because a busy event loop would delay it. Answers take precedence: all
that have arrived are committed together before they are parsed; then a slice of everything else
(lookups, finished groups, claims) in a transaction of its own; then answers again. An answer
therefore waits for at most one slice, and no caller needs a commit of its own. Until its commit an
answer is a line of a file (`answer_files`), so that a kill does not lose it.

While the store is away the thread tries its transaction again (`db.patience`), and everything
that arrives waits. A connection may be lost between a commit and its acknowledgement: a transaction
that is tried again counts nothing a second time, as what the worker spent is written as it is then.
"""

import asyncio
import contextvars
import logging
import math
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from curation.providers.provider import Answer, Request, call_row
from curation.run.answer_files import NOT_KEPT, AnswerFiles
from db.patience import is_away, patiently
from db.run.calls import StoredCall, add_calls, find_calls
from db.run.group_queue import DoneGroup, finish_groups
from db.run.workers import (
    COMMIT_MS,
    ROUNDING_USD,
    Account,
    Grant,
    lease_budget,
    rejoin,
    store_account,
)
from db.store.store import Store

log = logging.getLogger("inf.curate")
SHARES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999, "most": 1.0}  # of waits
PAUSE_SECONDS = 0.01  # between two commits, so that each has several writes
UNUSED_SECONDS = 10.0  # without a reservation: then what is leased is given back
SLICE = 512  # total weight of other writes between two commits of answers


class WaitTimes:
    """Latencies from an answer received to durable on disk, or committed: a histogram in ms."""

    def __init__(self) -> None:
        self._by_ms: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Count one wait."""
        self._by_ms[math.ceil(1000 * seconds)] += 1

    def buckets(self) -> dict[str, float]:
        """How many waits were at most each of COMMIT_MS, how many there were, and their sum, ms."""
        counts: dict[str, float] = {
            str(most): sum(count for ms, count in self._by_ms.items() if ms <= most)
            for most in COMMIT_MS
        }
        total = sum(self._by_ms.values())
        return counts | {"all": total, "sum": sum(ms * n for ms, n in self._by_ms.items())}

    def percentiles(self) -> dict[str, int]:
        """The percentiles of SHARES in milliseconds, rounded up; empty without waits."""
        total = sum(self._by_ms.values())
        found: dict[str, int] = {}
        for name, share in SHARES.items() if total else ():
            left = math.ceil(share * total)
            for ms, count in sorted(self._by_ms.items()):
                left -= count
                if left <= 0:
                    found[name] = ms
                    break
        return found


@dataclass(frozen=True)
class _Lookup:
    keys: tuple[str, ...]
    max_usd: float
    future: "asyncio.Future[StoredCall | Grant]"
    weight: int = 1


@dataclass(frozen=True)
class _Finished:
    done: DoneGroup
    future: "asyncio.Future[bool]"
    weight: int = 4


@dataclass(frozen=True)
class _Free:
    usd: float
    future: "asyncio.Future[None]"
    weight: int = 1


@dataclass(frozen=True)
class _Write:
    work: Callable[[Session], Any]
    future: "asyncio.Future[Any]"
    weight: int = 16


@dataclass(frozen=True)
class _Between:
    work: Callable[[], Any]
    future: "asyncio.Future[None]"
    weight: int = SLICE


@dataclass(frozen=True)
class _Answered:
    row: dict[str, Any]
    file: int
    max_usd: float
    future: "asyncio.Future[StoredCall]"
    received: float


_Other = _Lookup | _Finished | _Free | _Write | _Between


class _TakenForDead(Exception):
    """This worker was cut off and declared dead: what it leased and did not use is others'."""


class Journal:
    """Looks up and stores calls, finishes groups, and runs other writes, in groups.

    `kept` is the latency from an answer received to its line in a file, `committed` to its
    commit. A store that is away is waited for, `patience_seconds` or until `stopped`.
    """

    def __init__(
        self,
        store: Store,
        run_id: int,
        owner: str,
        *,
        patience_seconds: float = 0.0,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store, self._run_id, self._owner = store, run_id, owner
        self._patience_seconds, self._stopped = patience_seconds, stopped
        self._account = Account()  # of this worker, as it was committed last
        self._unanswered_usd = 0.0
        self._granted_at = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self._inbox: queue.SimpleQueue[_Other | _Answered | None] = queue.SimpleQueue()
        self._answers: list[_Answered] = []
        self._others: deque[_Other] = deque()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._files = AnswerFiles(store, run_id, owner)
        self.kept, self.committed = WaitTimes(), WaitTimes()
        here = contextvars.copy_context()  # its lines name the run and the worker, too
        threading.Thread(target=here.run, args=(self._run,), name="journal", daemon=True).start()

    def find(self, keys: tuple[str, ...], max_usd: float) -> Awaitable[StoredCall | Grant]:
        """The stored answer under the first of the keys that has one.

        If there is none, `max_usd` is reserved for it.
        """
        future: asyncio.Future[StoredCall | Grant] = self._loop.create_future()
        self._inbox.put(_Lookup(keys, max_usd, future))
        return future

    def add(self, request: Request, answer: Answer, max_usd: float) -> Awaitable[StoredCall]:
        """Store an answer and its cost and free its reservation; resolved once it is committed.

        On return the answer is already a line of a file and survives a kill.
        """
        received = time.monotonic()
        row = call_row(request, answer)
        file = self._files.append(row, max_usd)
        if file != NOT_KEPT:
            self.kept.add(time.monotonic() - received)
        future: asyncio.Future[StoredCall] = self._loop.create_future()
        self._inbox.put(_Answered(row, file, max_usd, future, received))
        return future

    def bill(self, unanswered_usd: float) -> None:
        """What calls without an answer cost so far: counted with the next commit."""
        self._unanswered_usd = unanswered_usd

    def free(self, max_usd: float) -> Awaitable[Any]:
        """Free the reservation of a call that got no answer."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._inbox.put(_Free(max_usd, future))
        return future

    def finish(self, done: DoneGroup) -> Awaitable[bool]:
        """Store the outcome of a group; False if the group was no longer ours."""
        future: asyncio.Future[bool] = self._loop.create_future()
        self._inbox.put(_Finished(done, future))
        return future

    def write(self, work: Callable[[Session], Any]) -> Awaitable[Any]:
        """Run `work(session)` in one of the next transactions; its result."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._inbox.put(_Write(work, future))
        return future

    def between(self, work: Callable[[], Any]) -> Awaitable[None]:
        """Run work with transactions of its own between two commits: SQLite has one writer."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._inbox.put(_Between(work, future))
        return future

    async def close(self) -> None:
        """Write what is queued and end the thread."""
        self._inbox.put(None)
        await self._over
        self._files.close()

    def _run(self) -> None:
        """The writer's thread."""
        closing = False
        while not closing or self._answers or self._others:
            closing = self._take(wait=not self._answers and not self._others) or closing
            self._write_answers()
            if self._others:
                self._write_slice()
            if not self._others and not closing:
                time.sleep(PAUSE_SECONDS)
        self._loop.call_soon_threadsafe(self._over.set_result, None)

    def _take(self, *, wait: bool) -> bool:
        """Move arrivals into their queues; whether `close` was called."""
        closing = False
        try:
            while True:
                one = self._inbox.get(block=wait)
                wait = False
                if one is None:
                    closing = True
                elif isinstance(one, _Answered):
                    self._answers.append(one)
                else:
                    self._others.append(one)
        except queue.Empty:
            return closing

    def _write_answers(self) -> None:
        answers, self._answers = self._answers, []
        if not answers:
            return

        freed = sum(one.max_usd for one in answers)

        def commit() -> list[StoredCall]:
            account = self._settled(freed, sum(one.row["cost_usd"] for one in answers))
            with self._store.write() as session:
                kept = add_calls(session, [one.row for one in answers])
                self._keep(session, account)
                session.commit()
            self._account = account
            committed = time.monotonic()
            for one in answers:
                self.committed.add(committed - one.received)
            files = [one.file for one in answers]
            self._loop.call_soon_threadsafe(self._files.release, files)
            return [kept[one.row["key"]] for one in answers]

        self._settle(answers, commit)

    def _write_slice(self) -> None:
        """Write the oldest of everything else, up to one SLICE."""
        first = self._others[0]
        if isinstance(first, _Between):
            self._others.popleft()

            def between() -> list[None]:
                first.work()
                return [None]

            self._settle([first], between)
            return
        part: list[_Lookup | _Finished | _Free | _Write] = []
        weight = 0
        while self._others and weight < SLICE:
            one = self._others[0]
            if isinstance(one, _Between):
                break
            part.append(one)
            weight += one.weight
            self._others.popleft()
        lookups = [one for one in part if isinstance(one, _Lookup)]
        finished = [one for one in part if isinstance(one, _Finished)]
        frees = [one for one in part if isinstance(one, _Free)]
        writes = [one for one in part if isinstance(one, _Write)]
        freed = sum(one.usd for one in frees)

        def commit() -> list[Any]:
            others_usd = self._lease([one.max_usd for one in lookups if one.max_usd])
            with self._store.write() as session:
                account, found = self._look_up(session, lookups, others_usd)
                account = self._settled(freed, 0.0, account)
                self._keep(session, account, always=bool(writes))
                ended = self._finish(session, finished)
                written = [one.work(session) for one in writes]
                session.commit()
            self._account = account
            return [*found, *ended, *written, *(None for _ in frees)]

        self._settle([*lookups, *finished, *writes, *frees], commit)

    def _settle(
        self, waiting: Sequence[_Other | _Answered], work: Callable[[], Sequence[Any]]
    ) -> None:
        """Do the work and resolve the futures, in the event loop, with its results or its error."""
        futures = [one.future for one in waiting]
        try:
            results = patiently(
                lambda: self._as_worker(work), self._patience_seconds, stopped=self._stopped
            )
        except BaseException as error:
            if is_away(error):
                self._patience_seconds = 0.0  # it is over: the end of the worker waits no more
            self._loop.call_soon_threadsafe(_fail, futures, error)
        else:
            self._loop.call_soon_threadsafe(_resolve, futures, results)

    def _as_worker(self, work: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Do the work; once more where this worker was taken for dead meanwhile."""
        try:
            return work()
        except _TakenForDead:
            log.warning("was taken for dead and goes on: %s", self._owner)
            with self._store.write() as session:
                rejoin(session, self._owner, self._account)
                session.commit()
            self._account = replace(self._account, leased_usd=self._account.taken_usd)
            return work()

    def _lease(self, wanted_usd: Sequence[float]) -> float:
        """Lease what is missing to reserve these, as far as it is free; what may come back."""
        usd = sum(wanted_usd)
        if not wanted_usd or not self._account.short_by(usd):
            return 0.0
        with self._store.write() as session:
            account, others_usd = lease_budget(
                session, self._run_id, self._owner, self._account, usd, min(wanted_usd)
            )
            self._keep(session, account)
            session.commit()
        self._account = account
        return others_usd

    def _look_up(
        self, session: Session, lookups: Sequence[_Lookup], others_usd: float
    ) -> tuple[Account, list[StoredCall | Grant]]:
        """The stored answers, or whether their cost is reserved, and the account with that."""
        account = self._account
        if not lookups:
            return account, []
        stored = find_calls(session, list({key for one in lookups for key in one.keys}))
        found: list[StoredCall | Grant] = []
        for one in lookups:
            call = _first_stored(stored, one.keys)
            if call is not None:
                found.append(call)
            elif one.max_usd and account.short_by(one.max_usd):
                found.append(Grant(False, others_usd + account.reserved_usd))
            else:
                account = replace(account, reserved_usd=account.reserved_usd + one.max_usd)
                self._granted_at = time.monotonic()
                found.append(Grant(True, 0.0))
        return account, found

    def _settled(self, freed: float, cost_usd: float, account: Account | None = None) -> Account:
        """The account once reservations are freed and costs counted."""
        account = account or self._account
        reserved = max(0.0, account.reserved_usd - freed)
        settled = replace(
            account,
            spent_usd=account.spent_usd + cost_usd,
            unanswered_usd=self._unanswered_usd,
            reserved_usd=reserved if reserved > ROUNDING_USD else 0.0,
        )
        is_unused = time.monotonic() - self._granted_at > UNUSED_SECONDS  # another may wait for it
        least = min(settled.leased_usd, settled.taken_usd)
        return replace(settled, leased_usd=least) if is_unused else settled

    def _keep(self, session: Session, account: Account, *, always: bool = False) -> None:
        if (always or account != self._account) and not store_account(
            session, self._owner, account
        ):
            raise _TakenForDead

    def _finish(self, session: Session, finished: Sequence[_Finished]) -> list[bool]:
        if not finished:
            return []
        done = [one.done for one in finished]
        ours = {one.group.id for one in finish_groups(session, self._run_id, self._owner, done)}
        return [one.group.id in ours for one in done]


def _first_stored(stored: dict[str, StoredCall], keys: tuple[str, ...]) -> StoredCall | None:
    return next((stored[key] for key in keys if key in stored), None)


def _resolve(futures: "Sequence[asyncio.Future[Any]]", results: Sequence[Any]) -> None:
    for future, result in zip(futures, results, strict=True):
        if not future.done():
            future.set_result(result)


def _fail(futures: "Sequence[asyncio.Future[Any]]", error: BaseException) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
