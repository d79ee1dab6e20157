"""`/health`: whether this server can do its work, for load balancers, containers and monitoring.

200 and `{"status": "ok"}`, or 503 and the names of what fails: `store` (it does not answer, or
nothing can be written there), `schema` (the store moved to another revision: restart this process),
`disk` (no space is left for the store's file or INF_HOME). Anyone may ask: reasons stand in the log
alone, and however many ask, one check is made in FRESH_SECONDS.
"""

import asyncio
import logging
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from db.errors import InfError, StoreBehind
from db.home import home
from db.store.revision import VERSION_TABLE
from db.store.scope import unscoped
from db.store.store import BUSY_TIMEOUT_SECONDS, Store, open_store

log = logging.getLogger("inf.app")
FRESH_SECONDS = 5.0
LIMIT_SECONDS = 4.0  # less than the timeout of the container's check
MIN_FREE_BYTES = 100 * 1024**2
PROBE_BYTES = 64 * 1024
# writes nothing, and fails where nothing can be written: on a standby, without the right
WRITING = f"UPDATE {VERSION_TABLE} SET version_num = version_num WHERE 1 = 0"
BUSY_MILLISECONDS = 200  # how long the check waits for a writer of SQLite; one is proof enough
Failing = dict[str, str]


def find_failing() -> Failing:
    """What fails, by name, with the reason; empty if all is well."""
    failing: Failing = {}
    folders = [home()]
    try:
        store = open_store()
        folders += [path.parent for path in [_file_of(store)] if path is not None]
        store.require_own_revision()  # a read: on SQLite it waits for no writer (WAL)
        _require_writable(store)
    except StoreBehind as error:
        failing["schema"] = str(error)
    except (InfError, SQLAlchemyError, sqlite3.Error) as error:
        failing["store"] = next(iter(str(error).splitlines()), type(error).__name__)
    for folder in folders:
        if reason := _disk_problem(folder):
            failing["disk"] = reason
    return failing


def _require_writable(store: Store) -> None:
    """Raise where nothing can be written; a store that another process writes just now can be."""
    if not store.is_sqlite:
        with unscoped(), store.write() as session:
            session.execute(text(WRITING))
        return
    connection = store.engine.raw_connection()
    try:
        driver: Any = connection.driver_connection
        driver.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
        try:
            driver.execute("BEGIN IMMEDIATE")
            driver.execute(WRITING)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        finally:
            if driver.in_transaction:
                driver.rollback()
            driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_SECONDS * 1000}")
    finally:
        connection.close()


def _file_of(store: Store) -> Path | None:
    return Path(str(make_url(store.url).database)) if store.is_sqlite else None


def _disk_problem(folder: Path) -> str:
    """Why nothing more can be written in a folder; "" if something can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if free < MIN_FREE_BYTES:
            return f"{free // 1024**2:,} MB are free at {folder}"
        with tempfile.TemporaryFile(dir=folder) as probe:  # a quota, a read-only file system
            probe.write(b"x" * PROBE_BYTES)
    except OSError as error:
        return f"{folder} cannot be written: {error.strerror or error}"
    return ""


class HealthCheck:
    """The last check and its result; one that takes too long is a store that does not answer."""

    def __init__(self) -> None:
        self._running: asyncio.Task[Failing] | None = None
        self._ended = 0.0
        self._logged: Failing = {}

    async def failing(self) -> Failing:
        """What fails, as of at most FRESH_SECONDS ago."""
        is_old = self._running is None or (
            self._running.done() and time.monotonic() - self._ended > FRESH_SECONDS
        )
        if is_old:
            self._running = asyncio.create_task(run_in_threadpool(find_failing))
            self._running.add_done_callback(self._note_end)
        assert self._running is not None
        await asyncio.wait([self._running], timeout=LIMIT_SECONDS)
        if not self._running.done():
            return self._log({"store": f"no answer within {LIMIT_SECONDS:g} s"})
        return self._log(self._running.result())

    def _note_end(self, _task: object) -> None:
        self._ended = time.monotonic()

    def _log(self, failing: Failing) -> Failing:
        """Log what began or ceased to fail since the last answer."""
        for name, reason in failing.items():
            if name not in self._logged:
                log.error("health: %s: %s", name, reason)
        for name in self._logged.keys() - failing.keys():
            log.warning("health: %s works again", name)
        self._logged = failing
        return failing


_check = HealthCheck()


async def health(request: Request) -> Response:
    """Answer whether this server can do its work; see the module."""
    failing = sorted(await _check.failing())
    body = {"status": "failing", "failing": failing} if failing else {"status": "ok"}
    return JSONResponse(body, 503 if failing else 200, headers={"Cache-Control": "no-store"})


HEALTH_ROUTE = Route("/health", health)
