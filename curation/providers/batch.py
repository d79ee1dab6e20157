"""Batch mode: answers at half the price, within a day, through OpenAI's Batch API.

Waiting calls are collected until no new one comes, written to a file per model, submitted, and
polled until the server is done; their groups continue with the next calls. What is sent is recorded
in the store first (db/run/batches.py): a process that takes over a run waits for the batches it
finds and submits nothing twice. What failed in a batch is sent again.
"""

import asyncio
import json
import logging
import os
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from curation.providers.batch_api import BatchApi
from curation.providers.batch_files import (
    AnswerLine,
    RemoteBatch,
    body_in,
    key_in,
    read_answer_line,
    request_line,
    split_into_files,
)
from curation.providers.failures import is_lost
from curation.providers.openai_server import OpenAIProvider
from curation.providers.provider import Answer, ProviderState, Request, RowFailed, Stopped
from curation.recipe.completion import NotACompletion
from db.errors import BadInput, ProviderError
from db.patience import patiently
from db.run import batches
from db.run.runs import get_run
from db.store.store import Store
from db.tables import Batch

log = logging.getLogger("inf.curate")
T = TypeVar("T")

POLL_SECONDS = 30.0
MAX_QUIET_SECONDS = 5.0
MAX_ATTEMPTS = 4
OVER = ("completed", "failed", "expired", "cancelled")
QUEUE_IS_FULL = "token_limit_exceeded"


class BatchProvider:
    """The server's answers through batches: later, at half the price."""

    name = "openai"
    offline = False
    groups_per_call = 1

    def __init__(self, wire: OpenAIProvider, store: Store, run_id: int, owner: str) -> None:
        self._wire, self._store, self._run_id, self._owner = wire, store, run_id, owner
        self._api = BatchApi(wire)
        self._poll_seconds = self.budget_seconds = poll_seconds()
        self._waiting: dict[str, tuple[Request, asyncio.Future[Answer]]] = {}
        self._unplaced: set[str] = set()
        self._placed: dict[str, int] = {}
        self._tries: Counter[str] = Counter()
        # by key: what answers were counted at that cannot be read, nor their usage
        self._lost: defaultdict[str, list[float]] = defaultdict(list)
        self._arrived = asyncio.Event()
        self._last_arrival = 0.0
        self._tasks: dict[int, asyncio.Task[None]] = {}  # by batch; 0: the collecting task
        self._stopped = False
        self._failures = 0
        self.keep: Callable[[Request, Answer], object] = lambda *_: None
        wire.keep = lambda *kept: self.keep(*kept)

    @property
    def answering_names(self) -> dict[str, list[str]]:
        """As without batches."""
        return self._wire.answering_names

    def parameters(self) -> dict[str, Any]:
        """Empty: the recipe alone decides what is sent."""
        return self._wire.parameters()

    async def check_models(self, models: Sequence[str]) -> None:
        """As without batches."""
        await self._wire.check_models(models)

    def max_usd(self, request: Request) -> float:
        """The most a request may cost, at the price of a batch."""
        return self._wire.max_usd(request)

    def state(self) -> ProviderState:
        """The calls that wait for a batch, and how many were sent again."""
        waiting, of_server = len(self._waiting), self._wire.state()
        return ProviderState(
            waiting,
            float(waiting),
            self._failures,
            trouble=of_server.trouble,
            unanswered_usd=of_server.unanswered_usd,
        )

    def set_limits(self, calls: int, part: float) -> None:
        """Nothing to do: the engine limits the groups in progress."""

    def stop(self) -> None:
        """Submit no further batch; those at the server wait for the resumed run."""
        self._stopped = True
        self._fail_all(Stopped())

    async def close(self) -> None:
        """End what waits; cancel a cancelled run's batches at the server."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        if await self._in_store(_is_cancelled, self._run_id):
            await self._cancel_batches()
        await self._wire.close()

    async def answer(self, request: Request) -> Answer:
        """The answer, once its batch is done."""
        if self._stopped:
            raise Stopped
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request.key] = (request, future)
        self._place_later(request.key)
        if 0 not in self._tasks:
            self._tasks[0] = asyncio.create_task(self._guarded(self._collect()))
        try:
            return await future
        finally:
            self._waiting.pop(request.key, None)
            self._unplaced.discard(request.key)
            self._placed.pop(request.key, None)

    # ---- from waiting calls to batches

    def _place_later(self, key: str) -> None:
        self._placed.pop(key, None)
        self._unplaced.add(key)
        self._last_arrival = time.monotonic()
        self._arrived.set()

    async def _collect(self) -> None:
        """Put the waiting calls into batches whenever no new one has come for a while."""
        quiet = min(MAX_QUIET_SECONDS, self._poll_seconds / 6)
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while time.monotonic() - self._last_arrival < quiet:
                await asyncio.sleep(quiet / 4)
            keys = sorted(self._unplaced)
            self._unplaced.clear()
            known = await self._in_store(batches.find_batched, self._run_id, keys)
            self._placed.update((key, each) for key, each in known.items() if key in self._waiting)
            for batch_id in set(known.values()):
                self._follow(batch_id)
            by_model: dict[str, list[tuple[str, bytes]]] = {}
            for key in keys:
                if key in self._waiting and key not in known:
                    request = self._waiting[key][0]
                    line = request_line(key, self._api.body(request), self._api.url)
                    by_model.setdefault(request.model, []).append((key, line))
            for model, lines in by_model.items():
                if first := self._waiting.get(lines[0][0]):
                    await self._wire.check_name(first[0])
                for file in split_into_files(lines):
                    await self._submit(model, file)

    async def _submit(self, model: str, file: list[tuple[str, bytes]]) -> None:
        """Record the batch in the store, send its file, create it at the server."""
        name = f"inf-{uuid.uuid4().hex}"

        def create(session: Session) -> int:
            return batches.create_batch(
                session,
                run_id=self._run_id,
                owner=self._owner,
                name=name,
                model=model,
                keys=[key for key, _ in file],
            ).id

        batch_id = await self._in_store(create, commit=True)
        self._placed.update((key, batch_id) for key, _ in file if key in self._waiting)
        content = b"".join(line for _, line in file)
        is_to_send = partial(self._in_store, batches.is_to_send, batch_id)
        remote_id = await self._api.create(name, content, is_to_send)
        if remote_id is not None:
            await self._in_store(batches.mark_submitted, batch_id, remote_id, commit=True)
            log.info("batch %s: %d calls of %s at the server", remote_id, len(file), model)
        self._follow(batch_id)

    # ---- from batches to answers

    def _follow(self, batch_id: int) -> None:
        task = self._tasks.get(batch_id)
        if task is None or task.done():
            self._tasks[batch_id] = asyncio.create_task(self._guarded(self._wait_for(batch_id)))

    async def _wait_for(self, batch_id: int) -> None:
        """Wait until the server is done with a batch; then take its answers."""
        remote_id = await self._remote_id(batch_id)
        if remote_id is None:
            keys = await self._in_store(batches.keys_to_take, batch_id)
            await self._end(batch_id, "lost", keys, "it never reached the server")
            return
        while True:
            remote = await self._api.show(remote_id)
            if remote.status in OVER:
                break
            await asyncio.sleep(self._poll_seconds)
        await self._take(batch_id, remote)
        while self._open_keys(batch_id):  # calls that came while its answers were being read
            await self._take(batch_id, remote)

    def _open_keys(self, batch_id: int) -> list[str]:
        """The keys of a batch whose calls still wait for an answer."""
        return [
            key
            for key, each in self._placed.items()
            if each == batch_id and not self._waiting[key][1].done()
        ]

    async def _remote_id(self, batch_id: int) -> str | None:
        """The server's id of a batch; None where its process died before sending it."""
        while True:
            batch, is_abandoned = await self._in_store(_look_at, batch_id)
            if batch.remote_id is not None or batch.status == "lost":
                return batch.remote_id
            if is_abandoned:
                found = await self._api.find(batch.name)
                if found is not None:
                    await self._in_store(batches.mark_submitted, batch_id, found, commit=True)
                return found
            await asyncio.sleep(self._poll_seconds)

    async def _take(self, batch_id: int, remote: RemoteBatch) -> None:
        """Deliver the answers to the waiting calls; send the calls without one again."""
        wanted = await self._in_store(batches.keys_to_take, batch_id)
        failed = set(wanted)
        without_line, unread = set(wanted), list[bytes]()
        final: ProviderError | None = None

        def take(line: bytes) -> None:
            nonlocal final
            found = read_answer_line(line)
            if found is None:
                unread.append(line)
                return
            without_line.discard(found.key)
            try:
                if self._settle(found, remote.seconds):
                    failed.discard(found.key)
            except ProviderError as error:  # the run stops after the whole file is read
                final = error

        for file_id in remote.file_ids:
            await self._api.take_lines(file_id, take)
        without_line -= {key_in(line) for line in unread}
        for line in unread:  # without a key it belongs to one of those that have no line
            key = key_in(line) or (without_line.pop() if without_line else "")
            self._settle(AnswerLine(key, 200, {}, {}, body_in(line)), remote.seconds)
        failed |= set(self._open_keys(batch_id))
        why = "; ".join(message for _, message in remote.errors)
        codes = {code for code, _ in remote.errors}
        if remote.status == "failed" and QUEUE_IS_FULL not in codes:
            message = why or "no reason given"
            final = ProviderError(
                f"the server refused batch {remote.id}: {message}",
                "run without `batch=`, or correct what it names",
                code="server_refuses_batch",
            )
        if final is not None:
            await self._end(batch_id, remote.status, failed, why or str(final), again=False)
            raise final
        if QUEUE_IS_FULL in codes:
            log.info("the server's queue is full (%s): retrying later", why)
            await asyncio.sleep(self._poll_seconds)
        elif failed:
            self._failures += len(failed)
            for key in failed:
                self._tries[key] += 1
        await self._end(batch_id, remote.status, failed, why or None)

    async def _end(
        self,
        batch_id: int,
        status: str,
        failed: set[str],
        error: str | None,
        *,
        again: bool = True,
    ) -> None:
        """Record how a batch ended; send what failed again, or give it up."""

        def end(session: Session) -> None:
            batches.end_batch(session, batch_id, status, failed=sorted(failed), error=error)

        await self._in_store(end, commit=True)
        for key in failed if again else ():
            if key not in self._waiting:
                continue
            if self._tries[key] >= MAX_ATTEMPTS:
                message = f"no answer in {self._tries[key]} batches"
                self._fail(key, RowFailed("server_error", message))
            else:
                self._place_later(key)

    def _settle(self, line: AnswerLine, seconds: float) -> bool:
        """Deliver one line to its call; False where the call has to be sent again.

        What was not read is kept with its usage, and counts at its maximum price without it, until
        the answer is there.
        """
        if line.key not in self._waiting:
            return True  # no call waits: the answer stays at the server
        request, future = self._waiting[line.key]
        if future.done():
            return True
        try:
            if line.status == 200:
                content = json.dumps(line.body).encode() if line.unread is None else line.unread
                endpoint = self._wire.endpoints.all[0]
                answer = self._wire.accept(endpoint, request, content, seconds)
                lost = self._lost.pop(line.key, [])
                self._wire.count_lost(len(lost) * answer.cost_usd - sum(lost))
                future.set_result(answer)
                return True
            self._api.raise_for(line, request)
        except RowFailed as error:
            future.set_exception(error)
            return True
        except ValueError as error:  # no completion, or nothing of it can be used
            is_kept = isinstance(error, NotACompletion) and line.unread is not None
            has_usage = is_kept and self._wire.keep_unreadable(request, line.unread or b"", seconds)
            if is_lost(error) or (is_kept and not has_usage):
                self._lost[line.key].append(self._wire.max_usd(request))
                self._wire.count_lost(self._lost[line.key][-1])
        return False

    async def _cancel_batches(self) -> None:
        for batch in await self._in_store(batches.open_batches, self._run_id):
            if batch.remote_id is None:
                continue
            await self._api.cancel(batch.remote_id)

    # ---- tasks and transactions

    async def _guarded(self, work: Any) -> None:
        """Run a task of ours; an error in it fails every waiting call."""
        try:
            await work
        except (ProviderError, BadInput) as error:
            self._fail_all(error)
        except Exception as error:
            log.exception("batch mode stops")
            self._fail_all(error)

    def _fail(self, key: str, error: BaseException) -> None:
        future = self._waiting[key][1]
        if not future.done():
            future.set_exception(error)
            future.exception()  # marks it as retrieved: the waiting call may be gone

    def _fail_all(self, error: BaseException) -> None:
        for key in list(self._waiting):
            self._fail(key, error)

    async def _in_store(self, work: Callable[..., T], *arguments: Any, commit: bool = False) -> T:
        """Run `work(session, …)` in a thread, in its own transaction; a store that is away is
        waited for."""

        def run() -> T:
            opened = self._store.write() if commit else self._store.read()
            with opened as session:
                result = work(session, *arguments)
                if commit:
                    session.commit()
                return result

        return await asyncio.to_thread(patiently, run, self._wire.patience_seconds)


def poll_seconds() -> float:
    """Seconds between two polls of a batch: INF_BATCH_POLL_SECONDS, or half a minute."""
    given = os.environ.get("INF_BATCH_POLL_SECONDS")
    if not given:
        return POLL_SECONDS
    try:
        found = float(given)
    except ValueError:
        found = 0.0
    if not found > 0:
        raise BadInput(
            f"INF_BATCH_POLL_SECONDS={given!r}",
            "give a number of seconds above 0",
            code="environment_value_invalid",
        )
    return found


def _is_cancelled(session: Session, run_id: int) -> bool:
    return get_run(session, run_id).status == "cancelled"


def _look_at(session: Session, batch_id: int) -> tuple[Batch, bool]:
    batch = session.get_one(Batch, batch_id, populate_existing=True)
    return batch, batches.is_abandoned(session, batch)
