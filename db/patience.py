"""Waiting for a store that is away: restarted, failing over, or locked by another program.

A process that has opened the store once does not end with it: it tries again until the store is
back or its patience is over. What can be tried again is a whole transaction; whether the one that
was cut off had been committed is for the work to find out.
"""

import hashlib
import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import get_ident
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError

from db.errors import InfError
from db.home import database_url, home
from db.machine import is_dead, new_owner
from db.tables import utc_now

log = logging.getLogger("inf.store")
T = TypeVar("T")
PATIENCE_MINUTES: Final = 30.0
FIRST_SECONDS, MAX_SECONDS = 0.2, 2.0  # between two attempts, doubling
LOG_SECONDS = 10.0
NOTE_SECONDS = 60.0  # overdue for longer: of a process elsewhere that died
# SQLSTATE: of connections, shut down, starting, no room left (clients, disk, memory), a standby
# and of transactions that wait for each other: the one that was ended is tried again
AWAY_STATES = ("08", "57P01", "57P02", "57P03", "53", "25006", "40P01")


class Patiently(Protocol):
    """How a piece of work is done, with whatever patience: `patiently` and `JobHandle`'s."""

    def __call__(self, work: Callable[[], T]) -> T:
        """The result of the work."""


def is_away(error: BaseException) -> bool:
    """Whether an error means that the store is away, not that the work is at fault."""
    if isinstance(error, InfError):
        return error.code == "store_unreachable"
    if not isinstance(error, DBAPIError):
        return False
    original = error.orig
    if isinstance(original, sqlite3.Error):
        code = getattr(original, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    state = getattr(original, "sqlstate", None) or ""
    return error.connection_invalidated or state.startswith(AWAY_STATES)


def clock_time(moment: datetime) -> str:
    """A moment as people read it: the local time of this machine."""
    return moment.astimezone().strftime("%H:%M:%S")


def patience_of(config: Mapping[str, Any]) -> float:
    """How many seconds a job of this config waits: its own patience, or the default."""
    if config.get("fail_fast"):
        return 0.0
    return 60 * float(config.get("patience_minutes", PATIENCE_MINUTES))


def patiently(
    work: Callable[[], T],
    seconds: float,
    *,
    stopped: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] | None = None,
) -> T:
    """The result of the work, tried again while the store is away, for as many seconds at most.

    `tell` is called after each attempt with the reason, since when and the next attempt; without it
    that is logged, at first and every LOG_SECONDS. Raises what the last attempt raised.
    """
    began, since, reported, wait = 0.0, utc_now(), 0.0, FIRST_SECONDS
    is_back = False
    try:
        while True:
            try:
                result = work()
                is_back = True
                return result
            except Exception as error:
                if not is_away(error):
                    raise
                now = time.monotonic()
                began = began or now
                if stopped() or now - began + wait > seconds:
                    raise
                away = _note_away(since, utc_now() + timedelta(seconds=wait), _reason(error))
            since, message = away.since, f"waiting for the store {away}"
            if tell is not None:
                tell(message)
            elif now - reported >= LOG_SECONDS:
                reported = now
                log.warning("%s", message)
            time.sleep(wait)
            wait = min(2 * wait, MAX_SECONDS)
    finally:
        if began:
            _forget_away(is_back=is_back)
            log.info("waited for the store for %.0f s", time.monotonic() - began)


@dataclass(frozen=True)
class Absence:
    """Since when processes of this machine wait for a store, and the next attempt of one."""

    since: datetime
    until: datetime
    reason: str

    def __str__(self) -> str:
        return (
            f"since {clock_time(self.since)}, next attempt at {clock_time(self.until)} "
            f"({self.reason})"
        )


def known_absence(url: URL | str) -> Absence | None:
    """What the processes that wait for the store of this address noted in INF_HOME; None where none
    does, or where the one that noted it last has died.

    For a process that cannot reach it either, or that reads while others cannot write.
    """
    try:
        noted = json.loads(_note(url).read_text())
        since, until = map(datetime.fromisoformat, noted["moments"])
        owner, reason = str(noted["owner"]), str(noted["reason"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    is_over = is_dead(owner) or utc_now() - until > timedelta(seconds=NOTE_SECONDS)
    return None if is_over else Absence(since, until, reason)


def _note_away(since: datetime, until: datetime, reason: str) -> Absence:
    """Note the next attempt, and since when the first of those that wait does."""
    if known := known_absence(database_url()):
        since = min(since, known.since)
    path = _note(database_url())
    unfinished = path.with_suffix(f".{os.getpid()}-{get_ident()}")
    moments = [since.isoformat(), until.isoformat()]
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        noted = {"moments": moments, "reason": reason, "owner": _of_thread()}
        unfinished.write_text(json.dumps(noted))
        unfinished.replace(path)
    return Absence(since, until, reason)


def _forget_away(*, is_back: bool) -> None:
    """Delete the note; of a store that is not back only this thread's: others still wait."""
    path = _note(database_url())
    with suppress(OSError):
        if is_back or json.dumps(_of_thread()) in path.read_text():
            path.unlink()


def _of_thread() -> str:
    """The name of this process, as `is_dead` reads it, with that of the thread."""
    return f"{new_owner().rpartition(':')[0]}:{get_ident()}"


def _note(url: URL | str) -> Path:
    address = str(make_url(url)._replace(password=None))  # it may be in PGPASSWORD
    return home() / f"store-away-{hashlib.sha256(address.encode()).hexdigest()[:12]}.json"


def _reason(error: Exception) -> str:
    """The driver's message in one line."""
    cause = error.orig if isinstance(error, DBAPIError) else error.__cause__ or error
    return " ".join(str(cause).split())[:300]
