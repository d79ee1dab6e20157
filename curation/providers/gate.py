"""How many calls may be in flight, and when the next may start: adapts to the server's responses.

A burst of 429s halves the width once, not once per response: only a call that was sent after the
last cut, and a second later, may cut again. Every answer widens it a little, up to the ceiling:
quickly back to just below where the cut came, slowly beyond that (as TCP's CUBIC does).
`Retry-After` delays every call. 5xx and cut connections do not narrow it.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from curation.providers.provider import Stopped

RECOVERY = 3.0  # calls per round trip, up to the knee
PROBING = 0.15  # beyond it
KNEE = 0.8  # of the width at which the server answered 429
POLL_SECONDS = 0.1  # without a part of a limit
LOOK_SECONDS = 1.0  # at most, of a wait: the part may grow meanwhile
CUT_SECONDS = 1.0  # between two cuts: a used-up limit stays so for a while
OVERSLEPT_SECONDS = 0.1  # how late a start may come without holding back those after it
HANG_SECONDS = 20.0  # no call hangs before
MIN_ANSWERS, MAX_ANSWERS = 5, 500  # the newest ones say how long an answer takes
MIN_UNLIMITED = 100  # of those, where an answer may have any number of tokens
SLOWER = 2  # than the mean pace: the pace of the slower answers, of a slower endpoint
LONGER, MUCH_LONGER = 4, 10  # than the slow ones of those


class Latencies:
    """How long the answers of one stage took, and how long another may take.

    `newest_start`: of the requests that were answered, when the newest was sent.
    `no_probe_before`: after a probe that failed.
    """

    def __init__(self) -> None:
        self._answers: deque[tuple[float, int]] = deque(maxlen=MAX_ANSWERS)
        self.newest_start = self.no_probe_before = -math.inf

    def add(self, started: float, seconds: float, tokens: int) -> None:
        """Count an answer of `tokens` to a request sent at `started`."""
        self.newest_start = max(self.newest_start, started)
        self._answers.append((seconds, tokens))

    def allowed(self, max_tokens: int | None) -> float:
        """Seconds that no answer of at most `max_tokens` needs; infinite until that is known.

        As long as that many take at half the pace of the others, and at least LONGER than their
        99th percentile: a model that thinks up to its limit is not cut, whatever the others took.
        Without a limit MUCH_LONGER than that, of more answers. A call that was cut is none of them:
        its age is no time of an answer, and would let each that hangs hold its place four times as
        long as the one before.
        """
        if len(self._answers) < (MIN_ANSWERS if max_tokens else MIN_UNLIMITED):
            return math.inf
        slow = self.slow()
        if not max_tokens:
            return max(HANG_SECONDS, MUCH_LONGER * slow)
        seconds = sum(each for each, _ in self._answers)
        tokens = sum(each for _, each in self._answers)
        pace = seconds / max(1, tokens)
        return max(HANG_SECONDS, SLOWER * pace * max_tokens, LONGER * slow)

    def slow(self) -> float:
        """The 99th percentile of the answers' seconds; 0 without one."""
        seconds = sorted(each for each, _ in self._answers)
        return seconds[math.ceil(0.99 * len(seconds)) - 1] if seconds else 0.0

    def longest(self) -> float:
        """Seconds of the slowest answer, 0 without one."""
        return max((seconds for seconds, _ in self._answers), default=0.0)


class Gate:
    """Slots for calls; `ceiling` may be changed while calls are in flight.

    A limit of requests or tokens per minute spaces the starts evenly: a call that may take many
    tokens delays the next one by as much as they take of the limit. Several workers each have a
    part of a limit, which may change at any time and be nothing: what a call took of the whole
    limit (`_owed`, in its seconds) is waited for at the part of now.
    """

    def __init__(
        self,
        ceiling: int,
        *,
        per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        self.ceiling = ceiling
        self.width = float(ceiling)
        self.in_flight = self.lent = 0
        self.cuts = self.throttles = 0
        self._last_cut = -CUT_SECONDS
        self._knee = 0.0
        self._not_before = 0.0
        self._call_seconds = 60.0 / per_minute if per_minute else 0.0
        self._token_seconds = 60.0 / tokens_per_minute if tokens_per_minute else 0.0
        self._part = 1.0
        self._next_start = self._owed = 0.0
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._closed = asyncio.Event()

    @asynccontextmanager
    async def slot(self, tokens: Callable[[], float] | None = None) -> AsyncIterator[float]:
        """A slot, and the moment it was given; `tokens`: how many the call may take.

        Raises Stopped once the gate is closed.
        """
        worth = tokens() * self._token_seconds if tokens and self._token_seconds else 0.0
        await self._enter(max(self._call_seconds, worth))
        started = time.monotonic()
        try:
            yield started
        finally:
            self.in_flight -= 1
            self._admit_waiting()

    async def pause(self, seconds: float) -> None:
        """Wait without a slot before another attempt. Raises Stopped once the gate is closed."""
        try:
            await asyncio.wait_for(self._closed.wait(), seconds)
        except TimeoutError:
            return
        raise Stopped

    def worked(self) -> None:
        """Widen a little after an answer."""
        if self.width < self.ceiling:
            gain = RECOVERY if self.width < self._knee else PROBING
            self.width = min(float(self.ceiling), self.width + gain / max(self.width, 1.0))
            self._admit_waiting()

    def throttled(self, started: float, retry_after: float | None) -> None:
        """Narrow after a 429 to a call sent at `started`."""
        now = time.monotonic()
        self.throttles += 1
        if started >= self._last_cut and now - self._last_cut >= CUT_SECONDS:
            reached = min(self.width, float(self.in_flight))
            self.width, self._knee = min(max(1.0, reached / 2), self.ceiling), KNEE * reached
            self._last_cut = now
            self.cuts += 1
        if retry_after:
            self._not_before = max(self._not_before, now + retry_after)

    def set_ceiling(self, ceiling: int) -> None:
        """Change the maximum width while calls are in flight."""
        if ceiling != self.ceiling:
            self.width = float(ceiling) if self.width >= self.ceiling else self.width
            self.ceiling = ceiling
            self.width = min(self.width, float(ceiling))
            self._admit_waiting()

    def lend(self, places: int) -> None:
        """Admit `places` calls more than the width."""
        if places != self.lent:
            self.lent = places
            self._admit_waiting()

    def set_part(self, part: float) -> None:
        """Change the part of the limits per minute; the first call of a new part waits its turn."""
        if part == self._part:
            return
        now = time.monotonic()
        if self._part:
            self._owed = max(0.0, self._next_start - now) * self._part
        else:
            self._owed = max(self._owed, self._call_seconds)
        if part and self._owed:
            self._next_start = now + self._owed / part
        self._part = part

    def check(self) -> None:
        """Raise Stopped once the gate is closed."""
        if self._closed.is_set():
            raise Stopped

    def close(self) -> None:
        """Admit no further call."""
        self._closed.set()
        self._admit_waiting()

    async def _enter(self, spacing: float) -> None:
        """Wait for a slot behind all that wait already: who comes would overtake them for ever."""
        self.check()
        if not self._waiting and self.in_flight < int(self.width) + self.lent:
            self.in_flight += 1
        else:
            future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                if not await future:
                    raise Stopped
            except asyncio.CancelledError:
                if future in self._waiting:
                    self._waiting.remove(future)
                elif not future.cancelled():
                    self.in_flight -= future.result()
                    self._admit_waiting()
                raise
        try:
            self.check()
            await self._wait_for_start_time(spacing)
        except BaseException:
            self.in_flight -= 1
            self._admit_waiting()
            raise

    async def _wait_for_start_time(self, spacing: float) -> None:
        late = self._call_seconds
        while True:
            if spacing and not self._part:
                await self.pause(POLL_SECONDS)
                continue
            now = time.monotonic()
            wait = max(self._not_before - now, self._next_start - now)
            if wait <= 0:
                part = self._part or 1.0
                self._next_start = max(self._next_start, now - late / part) + spacing / part
                return
            await self.pause(min(wait, LOOK_SECONDS))
            # a busy loop wakes it after its moment
            late = max(late, OVERSLEPT_SECONDS * self._part)

    def _admit_waiting(self) -> None:
        """Give free slots to those that wait; once the gate is closed, none to all of them."""
        is_open = not self._closed.is_set()
        while self._waiting and (not is_open or self.in_flight < int(self.width) + self.lent):
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(is_open)
                self.in_flight += is_open
