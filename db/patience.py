"""Waiting for a store that is away: restarted, failing over, or locked by another program.

A process that has opened the store once does not end with it: it tries again until the store is
back or its patience is over. What can be tried again is a whole transaction; whether the one that
was cut off had been committed is for the work to find out.
"""

import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy.exc import DBAPIError

from db.errors import InfError
from db.home import home
from db.tables import utc_now

log = logging.getLogger("inf.store")
T = TypeVar("T")
PATIENCE_MINUTES: Final = 30.0
FIRST_SECONDS, MAX_SECONDS = 0.2, 2.0  # between two attempts, doubling
LOG_SECONDS = 10.0
NOTE_SECONDS = 60.0  # a note whose next attempt is overdue for longer is that of a dead process
# SQLSTATE: of connections, shut down, starting, too many clients, a standby after a failover
# and of transactions that wait for each other: the one that was ended is tried again
AWAY_STATES = ("08", "57P01", "57P02", "57P03", "53300", "25006", "40P01")


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
    while True:
        try:
            result = work()
        except Exception as error:
            now = time.monotonic()
            began = began or now
            if not is_away(error) or stopped() or now - began + wait > seconds:
                raise
            since, until = _note_away(since, utc_now() + timedelta(seconds=wait))
            message = (
                f"waiting for the store since {clock_time(since)}, next attempt at "
                f"{clock_time(until)} ({_reason(error)})"
            )
            if tell is not None:
                tell(message)
            elif now - reported >= LOG_SECONDS:
                reported = now
                log.warning("%s", message)
        else:
            if began:
                with suppress(OSError):
                    _note().unlink(missing_ok=True)
                log.info("the store is back after %.0f s", time.monotonic() - began)
            return result
        time.sleep(wait)
        wait = min(2 * wait, MAX_SECONDS)


def known_absence() -> tuple[datetime, datetime] | None:
    """Since when processes of this machine wait for the store, and the next attempt of one.

    What a process that cannot reach it either can show: they note it in INF_HOME.
    """
    try:
        since, until = map(datetime.fromisoformat, json.loads(_note().read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return (since, until) if utc_now() - until < timedelta(seconds=NOTE_SECONDS) else None


def _note_away(since: datetime, until: datetime) -> tuple[datetime, datetime]:
    """Note the next attempt, and since when the first of those that wait does; both."""
    if known := known_absence():
        since = min(since, known[0])
    path = _note()
    unfinished = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps([since.isoformat(), until.isoformat()]))
        unfinished.replace(path)
    return since, until


def _note() -> Path:
    return home() / "store-away.json"


def _reason(error: Exception) -> str:
    """The driver's message in one line."""
    cause = error.orig if isinstance(error, DBAPIError) else error.__cause__ or error
    return " ".join(str(cause).split())[:300]
