"""How much a token may ask for: requests in a minute, at a time, and streams. In this process."""

import hashlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from app.access.identity import TokenHolder
from app.operations.doors import repeats
from db.errors import InfError

T = TypeVar("T")
THREADS = 16
NO_STORE = {"Cache-Control": "no-store"}
PER_MINUTE = 600
AT_A_TIME = 8
KEPT = 1000  # tokens that are remembered


class TooMany(InfError):
    """A token asks for more than its share; `seconds`: when to ask again."""

    def __init__(self, what: str, seconds: int) -> None:
        super().__init__(f"too many {what} with this token", "wait", code="too_many_requests")
        self.seconds = seconds


class Limits:
    """Counts by token; safe from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._left: OrderedDict[int, tuple[float, float]] = OrderedDict()  # requests, since when
        self._open: Counter[tuple[str, int]] = Counter()

    def count(self, token_id: int) -> None:
        """Count a request. Raises TooMany beyond PER_MINUTE; they come back evenly."""
        now, rate = self._clock(), PER_MINUTE / 60
        with self._lock:
            left, since = self._left.pop(token_id, (float(PER_MINUTE), now))
            left = min(PER_MINUTE, left + (now - since) * rate)
            self._left[token_id] = (max(0.0, left - 1), now)
            while len(self._left) > KEPT:
                self._left.popitem(last=False)
        if left < 1:
            raise TooMany("requests", 1 + int((1 - left) / rate))

    @contextmanager
    def one_of(self, kind: str, token_id: int, most: int) -> Iterator[None]:
        """Hold one of the token's places for this kind. Raises TooMany where none is free."""
        key = (kind, token_id)
        with self._lock:
            if self._open[key] >= most:
                raise TooMany(kind, 1)
            self._open[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[key] -= 1
                if not self._open[key]:
                    del self._open[key]


class Shared:
    """What all requests share: the limits, and the threads that operations run in."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._threads: anyio.CapacityLimiter | None = None

    async def once(
        self,
        request: Request,
        holder: TokenHolder,
        about: str,
        work: Callable[[], Awaitable[Response]],
    ) -> Response:
        """The answer to a POST, which is done once where it has an `Idempotency-Key`.

        about: what is asked, so that another request with the key is refused. Raises InfError.
        """
        key = request.headers.get("idempotency-key")
        if request.method != "POST" or key is None:
            return await work()
        sha256 = hashlib.sha256(f"{request.url.path}\n{about}".encode()).hexdigest()
        before = await self.in_thread(lambda: repeats.begin(holder, key, sha256))
        if before is not None:
            headers = NO_STORE | {"Idempotency-Replayed": "true"}
            return Response(before.body, before.status or 200, headers, "application/json")
        status, text = 500, ""
        try:
            response = await work()
            status, text = response.status_code, bytes(response.body).decode()
            return response
        finally:
            with anyio.CancelScope(shield=True):
                await self.in_thread(lambda: repeats.finish(holder, key, status, text))

    async def in_thread(self, work: Callable[[], T]) -> T:
        """The result of an operation, in one of the threads of routes."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(THREADS)
        return await to_thread.run_sync(work, limiter=self._threads)
