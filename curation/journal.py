"""The one writer of a worker: whatever must be stored goes through here, committed in groups.

Everything that waits is written in one transaction; the next one starts as soon as that is
committed and at least `PAUSE_SECONDS` after the last. So an answer is durable within about 50 ms of
its arrival and before anybody parses it, and no caller waits for a commit of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from curation.providers import Answer, Request
from db.calls import StoredCall, add_calls, find_calls
from db.group_queue import DoneGroup, finish_groups
from db.run_workers import Grant, change_reserved, set_aside
from db.store import Store
from db.tables import Run, utc_now

PAUSE_SECONDS = 0.02


@dataclass
class _Batch:
    lookups: list[tuple[str, float, "asyncio.Future[StoredCall | Grant]"]] = field(
        default_factory=list
    )
    answers: list[tuple[Request, Answer, float, "asyncio.Future[StoredCall]"]] = field(
        default_factory=list
    )
    finished: list[tuple[DoneGroup, "asyncio.Future[bool]"]] = field(default_factory=list)
    others: list[tuple[Callable[[Session], Any], "asyncio.Future[Any]"]] = field(
        default_factory=list
    )

    def futures(self) -> "list[asyncio.Future[Any]]":
        return [
            *(future for _, _, future in self.lookups),
            *(future for _, _, _, future in self.answers),
            *(future for _, future in self.finished),
            *(future for _, future in self.others),
        ]


class Journal:
    """Looks up and stores calls, finishes groups, and runs other writes, in groups."""

    def __init__(self, store: Store, run_id: int, owner: str) -> None:
        self._store, self._run_id, self._owner = store, run_id, owner
        self._batch = _Batch()
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._closing = False
        self._task = asyncio.create_task(self._run())

    def find(self, key: str, most_usd: float) -> Awaitable[StoredCall | Grant]:
        """The stored answer under a key; where there is none, `most_usd` is set aside for it."""
        future: asyncio.Future[StoredCall | Grant] = asyncio.get_running_loop().create_future()
        self._batch.lookups.append((key, most_usd, future))
        self._wake.set()
        return future

    def add(self, request: Request, answer: Answer, most_usd: float) -> Awaitable[StoredCall]:
        """Store an answer and its cost, free what was set aside; done when it is committed."""
        future: asyncio.Future[StoredCall] = asyncio.get_running_loop().create_future()
        self._batch.answers.append((request, answer, most_usd, future))
        self._wake.set()
        return future

    def free(self, most_usd: float) -> Awaitable[Any]:
        """Free what was set aside for a call that got no answer."""
        return self.write(lambda session: change_reserved(session, self._owner, -most_usd))

    def finish(self, done: DoneGroup) -> Awaitable[bool]:
        """Store how a group ended; False where it was no longer ours."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._batch.finished.append((done, future))
        self._wake.set()
        return future

    def write(self, work: Callable[[Session], Any]) -> Awaitable[Any]:
        """Run `work(session)` in the next transaction; its result."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._batch.others.append((work, future))
        self._wake.set()
        return future

    def between(self, work: Callable[[], None]) -> Awaitable[None]:
        """Run work that writes by itself between two commits: one writer, one connection."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Write what waits and end."""
        self._closing = True
        self._wake.set()
        await self._task
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch, self._batch = self._batch, _Batch()
            if batch.futures():
                try:
                    results = await loop.run_in_executor(self._thread, self._commit, batch)
                except BaseException as error:
                    for future in batch.futures():
                        if not future.done():
                            future.set_exception(error)
                else:
                    for future, result in zip(batch.futures(), results, strict=True):
                        if not future.done():
                            future.set_result(result)
            if self._closing and not self._batch.futures():
                return
            await asyncio.sleep(PAUSE_SECONDS)
            if self._closing:
                self._wake.set()

    def _commit(self, batch: _Batch) -> list[Any]:
        """Write a batch in one transaction. Runs in the writer's thread."""
        with self._store.write() as session:
            results: list[Any] = []
            results += self._look_up(session, batch)
            results += self._add_answers(session, batch)
            done = [one for one, _ in batch.finished]
            finished = {
                one.group.id
                for one in (finish_groups(session, self._run_id, self._owner, done) if done else ())
            }
            results += [one.group.id in finished for one, _ in batch.finished]
            results += [work(session) for work, _ in batch.others]
            session.commit()
        return results

    def _look_up(self, session: Session, batch: _Batch) -> Sequence[StoredCall | Grant]:
        found = find_calls(session, list({key for key, _, _ in batch.lookups}))
        missing = [usd for key, usd, _ in batch.lookups if key not in found]
        if any(missing):
            grants = iter(set_aside(session, self._run_id, self._owner, missing))
        else:
            grants = iter([Grant(True, 0.0)] * len(missing))
        return [found[key] if key in found else next(grants) for key, _, _ in batch.lookups]

    def _add_answers(self, session: Session, batch: _Batch) -> Sequence[StoredCall]:
        if not batch.answers:
            return []
        now = utc_now()
        kept = add_calls(
            session,
            [
                {
                    "key": request.key,
                    "task": request.task,
                    "provider": request.provider,
                    "model": request.model,
                    "prompt_sha256": request.prompt.sha256,
                    "request": request.journal(),
                    "answer": answer.text,
                    "finish_reason": answer.finish_reason,
                    "input_tokens": answer.input_tokens,
                    "output_tokens": answer.output_tokens,
                    "reasoning_tokens": answer.reasoning_tokens,
                    "cost_usd": answer.cost_usd,
                    "attempts": answer.attempts,
                    "latency_seconds": answer.latency_seconds,
                    "created_at": now,
                }
                for request, answer, _, _ in batch.answers
            ],
        )
        change_reserved(session, self._owner, -sum(usd for _, _, usd, _ in batch.answers))
        spent = sum(answer.cost_usd for _, answer, _, _ in batch.answers)
        if spent:
            session.execute(
                update(Run).where(Run.id == self._run_id).values(spent_usd=Run.spent_usd + spent)
            )
        return [kept[request.key] for request, _, _, _ in batch.answers]
