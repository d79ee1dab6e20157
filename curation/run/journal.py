"""The only writer of a worker: everything that must be stored goes through here, in group commits.

It is a thread of its own, because a busy event loop would delay it. Answers take precedence: all
that have arrived are committed together before they are parsed; then a slice of everything else
(lookups, finished groups, claims) in a transaction of its own; then answers again. An answer
therefore waits for at most one slice, and no caller needs a commit of its own. Until its commit an
answer is a line of a file (`answer_files`), so that a kill does not lose it.

While the store is away the thread tries its transaction again (`db.patience`), and everything
that arrives waits. A connection may be lost between a commit and its acknowledgement: a transaction
that is tried again counts nothing a second time.
"""

import asyncio
import contextvars
import itertools
import math
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from curation.providers.provider import Answer, Request, call_row
from curation.run.answer_files import NOT_KEPT, AnswerFiles
from db.patience import is_away, patiently
from db.run.calls import StoredCall, add_calls, add_spending, are_stored, find_calls
from db.run.group_queue import DoneGroup, finish_groups
from db.run.workers import COMMIT_MS, Grant, change_reserved, set_aside, set_reserved
from db.store.store import Store

SHARES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999, "most": 1.0}  # of waits
PAUSE_SECONDS = 0.01  # between two commits, so that each has several writes
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
        self._reserved_usd = 0.0  # of this worker, as it was committed last
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
        file = self._files.append(row)
        if file != NOT_KEPT:
            self.kept.add(time.monotonic() - received)
        future: asyncio.Future[StoredCall] = self._loop.create_future()
        self._inbox.put(_Answered(row, file, max_usd, future, received))
        return future

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

        def commit(again: bool) -> list[StoredCall]:
            with self._store.write() as session:
                kept = self._add_answers(session, answers, freed, again=again)
                session.commit()
            self._reserved_usd -= freed
            committed = time.monotonic()
            for one in answers:
                self.committed.add(committed - one.received)
            files = [one.file for one in answers]
            self._loop.call_soon_threadsafe(self._files.release, files)
            return kept

        self._settle(answers, commit)

    def _write_slice(self) -> None:
        """Write the oldest of everything else, up to one SLICE."""
        first = self._others[0]
        if isinstance(first, _Between):
            self._others.popleft()

            def between(_again: bool) -> list[None]:
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

        def commit(again: bool) -> list[Any]:
            with self._store.write() as session:
                if again:
                    set_reserved(session, self._owner, self._reserved_usd)
                found = self._look_up(session, lookups)
                ended = self._finish(session, finished)
                written = [one.work(session) for one in writes]
                # last: what covered a cost is freed after that is counted
                change_reserved(session, self._owner, -freed)
                session.commit()
            self._reserved_usd += _granted(lookups, found) - freed
            return [*found, *ended, *written, *(None for _ in frees)]

        self._settle([*lookups, *finished, *writes, *frees], commit)

    def _settle(
        self, waiting: Sequence[_Other | _Answered], work: Callable[[bool], Sequence[Any]]
    ) -> None:
        """Do the work and resolve the futures, in the event loop, with its results or its error.

        The work is passed whether it is tried again.
        """
        futures = [one.future for one in waiting]
        tries = itertools.count()
        try:
            results = patiently(
                lambda: work(next(tries) > 0), self._patience_seconds, stopped=self._stopped
            )
        except BaseException as error:
            if is_away(error):
                self._patience_seconds = 0.0  # it is over: the end of the worker waits no more
            self._loop.call_soon_threadsafe(_fail, futures, error)
        else:
            self._loop.call_soon_threadsafe(_resolve, futures, results)

    def _look_up(self, session: Session, lookups: Sequence[_Lookup]) -> list[StoredCall | Grant]:
        if not lookups:
            return []
        stored = find_calls(session, list({key for one in lookups for key in one.keys}))
        found = [_first_stored(stored, one.keys) for one in lookups]
        missing = [one.max_usd for one, call in zip(lookups, found, strict=True) if call is None]
        if any(missing):
            grants = iter(set_aside(session, self._run_id, self._owner, missing))
        else:
            grants = iter([Grant(True, 0.0)] * len(missing))
        return [next(grants) if call is None else call for call in found]

    def _finish(self, session: Session, finished: Sequence[_Finished]) -> list[bool]:
        if not finished:
            return []
        done = [one.done for one in finished]
        ours = {one.group.id for one in finish_groups(session, self._run_id, self._owner, done)}
        return [one.group.id in ours for one in done]

    def _add_answers(
        self, session: Session, answers: Sequence[_Answered], freed: float, *, again: bool
    ) -> list[StoredCall]:
        rows = [one.row for one in answers]
        if again:
            set_reserved(session, self._owner, self._reserved_usd)
        is_counted = again and are_stored(session, rows)
        kept = add_calls(session, rows)
        change_reserved(session, self._owner, -freed)
        if not is_counted:
            add_spending(session, self._run_id, sum(row["cost_usd"] for row in rows))
        return [kept[one.row["key"]] for one in answers]


def _granted(lookups: Sequence[_Lookup], found: Sequence[StoredCall | Grant]) -> float:
    """What was reserved for lookups without a stored answer."""
    return sum(
        one.max_usd
        for one, grant in zip(lookups, found, strict=True)
        if isinstance(grant, Grant) and grant.granted
    )


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
