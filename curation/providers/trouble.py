"""What goes wrong with a server's calls, for the page, the terminal and the log."""

import logging
import ssl
import time
from collections import Counter, deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import aiohttp
import openai

from db.patience import clock_time
from db.run.workers import Trouble
from db.tables import utc_now

log = logging.getLogger("inf.curate")
LOG_SECONDS = 30.0  # between two lines about failures: a burst of them is one
MAX_MESSAGE = 300  # characters of a server's message
WORTH_TELLING_SECONDS = 2.0  # shorter waits pass before anyone reads of them


class TroubleLog:
    """Collects failures and waits of one provider; `state` is what a worker stores."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()  # of failures
        self._error: str | None = None
        self._error_at: datetime | None = None
        self._waiting_until: datetime | None = None
        self._waiting_since: datetime | None = None
        self._waiting_for: str | None = None
        self._retries: deque[float] = deque()
        self._logged_at = -LOG_SECONDS
        self._unlogged = 0

    def failed(self, error: Exception) -> None:
        """An attempt failed."""
        self._error, self._error_at = describe(error), utc_now()
        self.kinds[kind_of(error)] += 1
        now = time.monotonic()
        self._unlogged += 1
        if now - self._logged_at >= LOG_SECONDS:
            log.warning("%d calls failed, the last one with %s", self._unlogged, self._error)
            self._logged_at, self._unlogged = now, 0

    def retrying(self, requested_seconds: float | None) -> None:
        """The attempt is repeated, after as many seconds as the server requested, if it did."""
        self._retries.append(time.monotonic())
        if requested_seconds is None or requested_seconds < WORTH_TELLING_SECONDS:
            return
        until = utc_now() + timedelta(seconds=requested_seconds)
        if self._waiting_until is None or until > self._waiting_until + timedelta(seconds=1):
            log.warning("waiting until %s as the server requested", clock_time(until))
            self._waiting_until = until

    def away(self, reason: str, since: datetime, seconds: float) -> None:
        """The server is away; the next attempt to reach it comes in `seconds`."""
        if self._waiting_for is None:
            log.warning("waiting for the server since %s (%s)", clock_time(since), reason)
        self._waiting_for, self._waiting_since = reason, since
        self._waiting_until = utc_now() + timedelta(seconds=seconds)

    def back(self) -> None:
        """The server is waited for no more."""
        if self._waiting_since is not None:
            seconds = (utc_now() - self._waiting_since).total_seconds()
            log.info("the server was waited for, %.0f s", seconds)
        self._waiting_for = self._waiting_since = self._waiting_until = None

    def state(self) -> Trouble:
        """The newest error, retries in the last minute, and the wait if it is not over."""
        now = time.monotonic()
        while self._retries and self._retries[0] < now - 60:
            self._retries.popleft()
        until = self._waiting_until
        if until is not None and until <= utc_now() and self._waiting_for is None:
            until = None
        return Trouble(
            *(self._error, self._error_at, len(self._retries)),
            *(until, self._waiting_since, self._waiting_for),
        )


def describe(error: BaseException) -> str:
    """The kind of an error and its message, shortened.

    A connection's error is that of its first cause: the SDK reports every one as a connection
    error, and a cut one as a timeout.
    """
    if isinstance(error, openai.APIConnectionError):
        causes = list(causes_of(error))
        for kinds, what in _CAUSES:
            if found := next((each for each in causes if isinstance(each, kinds)), None):
                detail = _one_line(found)
                return f"{what} ({detail})" if detail else what
        error = causes[-1]
    message = _one_line(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def kind_of(error: BaseException) -> str:
    """What kind of failure it is, one of few: a label of figures."""
    if isinstance(error, openai.APIStatusError):
        if error.status_code == 429:
            return "throttled"
        return "server" if error.status_code >= 500 else "refused"
    if isinstance(error, openai.APIConnectionError | TimeoutError | OSError):
        causes = list(causes_of(error))
        of_kind = (kind for kinds, kind in _KINDS if any(isinstance(e, kinds) for e in causes))
        return next(of_kind, "unreachable")
    return "unreadable"


_CUT: Final = (
    *(aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionResetError),
    *(aiohttp.ClientOSError, BrokenPipeError),
)
_KINDS: Final[tuple[tuple[tuple[type[BaseException], ...], str], ...]] = (
    ((aiohttp.ClientConnectorError, ssl.SSLError, ConnectionRefusedError), "unreachable"),
    (_CUT, "cut"),
    ((TimeoutError,), "timeout"),
)
_CAUSES: Final[tuple[tuple[tuple[type[BaseException], ...], str], ...]] = (
    ((aiohttp.ClientConnectorDNSError,), "the server's name is unknown"),
    ((aiohttp.ClientConnectorCertificateError, ssl.SSLError), "no secure connection"),
    ((ConnectionRefusedError, aiohttp.ClientConnectorError), "no server there"),
    (
        (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionResetError),
        "the connection was cut by the server",
    ),
    ((aiohttp.ClientOSError, BrokenPipeError), "the connection was cut"),
    ((TimeoutError,), "no answer in time"),
)


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it was raised from, the first cause last."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:MAX_MESSAGE]
