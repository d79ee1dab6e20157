"""What goes wrong with a server's calls, for the page, the terminal and the log."""

import logging
import time
from collections import deque
from datetime import datetime, timedelta

from db.run.workers import Trouble
from db.tables import utc_now

log = logging.getLogger("inf.curate")
LOG_SECONDS = 30.0  # between two lines about failures: a burst of them is one
MAX_MESSAGE = 300  # characters of a server's message
WORTH_TELLING_SECONDS = 2.0  # shorter waits pass before anyone reads of them


class TroubleLog:
    """Collects failures and waits of one provider; `state` is what a worker stores."""

    def __init__(self) -> None:
        self._error: str | None = None
        self._error_at: datetime | None = None
        self._waiting_until: datetime | None = None
        self._retries: deque[float] = deque()
        self._logged_at = -LOG_SECONDS
        self._unlogged = 0

    def failed(self, error: Exception) -> None:
        """An attempt failed."""
        self._error, self._error_at = describe(error), utc_now()
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

    def state(self) -> Trouble:
        """The newest error, retries in the last minute, and the wait if it is not over."""
        now = time.monotonic()
        while self._retries and self._retries[0] < now - 60:
            self._retries.popleft()
        until = self._waiting_until
        if until is not None and until <= utc_now():
            until = None
        return Trouble(self._error, self._error_at, len(self._retries), until)


def clock_time(moment: datetime) -> str:
    """A moment as people read it: the local time of this machine."""
    return moment.astimezone().strftime("%H:%M:%S")


def describe(error: Exception) -> str:
    """The kind of an error and its message, shortened."""
    message = " ".join(str(error).split())[:MAX_MESSAGE]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
