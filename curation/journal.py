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
from db.store import Store
from db.tables import Run, utc_now

PAUSE_SECONDS = 0.01


@dataclass
class _Batch:
    lookups: dict[str, list["asyncio.Future[StoredCall | None]"]] = field(default_factory=dict)
    answers: list[tuple[Request, Answer, "asyncio.Future[StoredCall]"]] = field(
        default_factory=list
    )
    finished: list[tuple[DoneGroup, "asyncio.Future[bool]"]] = field(default_factory=list)
    others: list[tuple[Callable[[Session], Any], "asyncio.Future[Any]"]] = field(
        default_factory=list
    )

    def futures(self) -> "list[asyncio.Future[Any]]":
        return [
            *(one for waiting in self.lookups.values() for one in waiting),
            *(future for _, _, future in self.answers),
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

    def find(self, key: str) -> Awaitable[StoredCall | None]:
        """The stored answer under a key, None where there is none."""
        future: asyncio.Future[StoredCall | None] = asyncio.get_running_loop().create_future()
        self._batch.lookups.setdefault(key, []).append(future)
        self._wake.set()
        return future

    def add(self, request: Request, answer: Answer) -> Awaitable[StoredCall]:
        """Store an answer and its cost; done when it is committed."""
        future: asyncio.Future[StoredCall] = asyncio.get_running_loop().create_future()
        self._batch.answers.append((request, answer, future))
        self._wake.set()
        return future

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
            found = find_calls(session, list(batch.lookups))
            for key, waiting in batch.lookups.items():
                results += [found.get(key)] * len(waiting)
            results += self._add_answers(session, batch)
            finished = {
                one.group.id
                for one in finish_groups(
                    session, self._run_id, self._owner, [one for one, _ in batch.finished]
                )
            }
            results += [one.group.id in finished for one, _ in batch.finished]
            results += [work(session) for work, _ in batch.others]
            session.commit()
        return results

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
                for request, answer, _ in batch.answers
            ],
        )
        spent = sum(answer.cost_usd for _, answer, _ in batch.answers)
        if spent:
            session.execute(
                update(Run).where(Run.id == self._run_id).values(spent_usd=Run.spent_usd + spent)
            )
        return [kept[request.key] for request, _, _ in batch.answers]
