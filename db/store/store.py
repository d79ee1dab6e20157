"""Opening the store. One engine per address; sessions for reading and for writing.

Note: on SQLite a writing session takes the write lock at its first statement (`BEGIN IMMEDIATE`). A
deferred transaction that reads and then writes fails at once with "database is locked" if another
writer came between, whatever the busy timeout.

On PostgreSQL nothing is set for a session: with PgBouncer in transaction mode each transaction may
get another server connection. Settings are local to each transaction, and no statement is
prepared by name.

A transaction that writes begins with a look at the store's revision, under a lock for which an
upgrade waits: a process that was started before an upgrade writes nothing after it.
"""

import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from db.errors import BadInput, InfError, StoreBehind
from db.home import database_url, home
from db.patience import clock_time, known_absence
from db.store.revision import READ_REVISION, VERSION_TABLE, head
from db.store.scope import INFO, current_scope
from db.store.settings import database_schema
from db.tables import utc_now

BUSY_TIMEOUT_SECONDS = 30
# a database host that vanished is an error after half a minute, of which a third is an attempt to
# connect again; by the kernel's own times, after hours (tests/vanished_host.py)
NOTICED = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 20_000,  # milliseconds; of idle connections too
}
# and of us if we vanish: the server would keep the locks of a transaction for hours
NOTICES = (
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 4; "
    "SET tcp_user_timeout = 20000"  # where an answer was on its way
)
DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR_SHORT_READ)
REPLACED = (
    "the store cannot be read ({}): its file was replaced under this process, or is damaged. "
    "Nothing was stored"
)
ENGINES = 32  # addresses whose connections are kept open
CONNECTIONS = 15  # to PostgreSQL, per address and process; more would be opened anew every time
# The lock conflicts with that of an upgrade (`db.store.schema.changing`), and with nothing else.
CHECK = f"; LOCK TABLE {VERSION_TABLE} IN ROW EXCLUSIVE MODE; {READ_REVISION}"
CACHE_KIB = 1000  # per connection; the rest stays in the system's page cache, shared by all


class Store:
    """An opened store. `read()` and `write()` give sessions; neither commits by itself.

    In a page of the app they see what the user may see (`db.store.scope`).
    """

    def __init__(self, url: str | None = None, *, schema: str | None = None) -> None:
        self.url = url or database_url()
        self.schema = database_schema() if schema is None else schema
        self.engine = _engine(self.url, self.schema)
        self._writer = self.engine.execution_options(inf_write=True, inf_revision=head())

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that is rolled back at the end."""
        with Session(self.engine, expire_on_commit=False, info=_info()) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session whose transaction may write; what is not committed is rolled back.

        Raises StoreBehind where the store is not, or no longer, of the revision that we write.
        """
        with Session(self._writer, expire_on_commit=False, info=_info()) as session:
            yield session

    def require_own_revision(self) -> None:
        """Raise StoreBehind where the store is not, or no longer, of the revision that we write."""
        with self.engine.connect() as connection:
            found = connection.exec_driver_sql(READ_REVISION).scalar()
        _require_own(head(), found)

    def close(self) -> None:
        """Close every pooled connection (tests; before a file is moved)."""
        self.engine.dispose()


def _info() -> dict[Any, Any]:
    return {INFO: current_scope()}


def open_store(url: str | None = None, *, schema: str | None = None) -> Store:
    """The store at `url` in `schema` (PostgreSQL), by default those the environment names."""
    return Store(url, schema=schema)


_engines: dict[tuple[str, str], Engine] = {}  # the one used longest ago comes first
_engines_lock = threading.Lock()


def _engine(url: str, schema: str) -> Engine:
    """The engine of an address; of too many, the one used longest ago closes its connections."""
    with _engines_lock:
        engine = _engines.pop((url, schema), None) or _make_engine(url, schema)
        _engines[url, schema] = engine
        if len(_engines) > ENGINES:
            _engines.pop(next(iter(_engines))).dispose()
    return engine


def _make_engine(url: str, schema: str) -> Engine:
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        engine = create_engine(
            url,
            hide_parameters=True,  # names, notes and hashes are not for the log
            pool_pre_ping=True,
            pool_size=CONNECTIONS,
            max_overflow=0,
            pool_use_lifo=True,
            # autocommit: psycopg sends no BEGIN of its own, `_begin_postgres` does
            connect_args={"prepare_threshold": None, "autocommit": True} | NOTICED,
        )
        event.listen(engine, "handle_error", partial(_translate_connection_error, parsed))
        event.listen(engine, "connect", _let_server_notice)
        event.listen(engine, "begin", partial(_begin_postgres, settings=_local_settings(schema)))
        event.listen(engine, "after_cursor_execute", _check_as_it_begins)
        return engine
    if not parsed.database or parsed.database == ":memory:":
        raise BadInput(
            "sqlite needs a file", "set INF_DATABASE_URL=sqlite:///PATH", code="sqlite_needs_file"
        )
    path = Path(parsed.database)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.parent.absolute() == home().absolute():
            _keep_private(path.parent)
    except OSError as error:
        raise BadInput(
            f"the store cannot be created at {parsed.database}: {error.strerror or error}",
            "set INF_HOME or INF_DATABASE_URL",
            code="store_not_creatable",
        ) from error
    engine = create_engine(
        url,
        hide_parameters=True,
        pool_use_lifo=True,
        connect_args={"timeout": BUSY_TIMEOUT_SECONDS, "cached_statements": 32},
    )
    event.listen(engine, "handle_error", partial(_translate_connection_error, parsed))
    if not parsed.database.startswith("file:"):
        event.listen(engine, "do_connect", partial(_private_file, path))
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _private_file(path: Path, *_connecting: Any) -> None:
    """Before a connection: the store is its owner's alone, as `secrets.toml` is.

    SQLite gives the files of its log (`-wal`, `-shm`) the mode of the store's. Where nothing can be
    written here SQLite reports it, with the store's address.
    """
    with suppress(OSError):
        path.touch(mode=0o600)
        for file in (path, *(Path(f"{path}{ending}") for ending in ("-wal", "-shm"))):
            if file.exists():
                _keep_private(file)


def _keep_private(path: Path) -> None:
    """Take away from others what they may do with a file or folder of ours."""
    if sys.platform == "win32":  # no modes there: the profile's folder is the person's
        return
    found = path.stat()
    if found.st_mode & 0o077 and found.st_uid == os.geteuid():
        path.chmod(found.st_mode & 0o700)


def _configure_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # SQLAlchemy's begin event sends BEGIN, see below
    cursor = connection.cursor()
    try:
        cursor.execute("PRAGMA journal_mode=WAL")
    except sqlite3.DatabaseError as error:
        if "not a database" not in str(error):
            raise
        raise BadInput(
            "INF_DATABASE_URL names a file that is not a SQLite store",
            "name another",
            code="store_file_invalid",
        ) from error
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_SECONDS * 1000}")
    cursor.close()


def _translate_connection_error(url: URL, context: ExceptionContext) -> None:
    """Translate a failed first connection, and a store that nobody may write, into an InfError.

    It names the store and the remedy.
    """
    code = getattr(context.original_exception, "sqlite_errorcode", 0)
    if code & 0xFF == sqlite3.SQLITE_READONLY:
        raise InfError(
            f"the store {url.database} cannot be written: it, or its file system, is read-only",
            "set INF_HOME or INF_DATABASE_URL",
            code="store_read_only",
        ) from context.original_exception
    if code in DAMAGED:
        raise InfError(
            REPLACED.format(context.original_exception),
            "put the store back and restart this process",
            code="store_replaced",
        ) from context.original_exception
    is_first = context.connection is None and not context.is_pre_ping  # else it is opened anew
    if is_first and isinstance(context.sqlalchemy_exception, OperationalError):
        # not the context's engine: there is none where a pooled connection is opened anew
        place = url.render_as_string(hide_password=True)
        if not code and _refuses_sign_in(context.original_exception):
            raise InfError(
                f"the store {place} refuses the sign-in ({context.original_exception})",
                "check the role, the password and the database that INF_DATABASE_URL names",
                code="store_refuses_sign_in",
            ) from context.original_exception
        known = known_absence(url)
        moments = (known.since, known.until) if known else (utc_now(), utc_now())
        since, until = map(clock_time, moments)
        away = f" since {since}, next attempt at {until}" if known else ""
        raise InfError(
            f"the store {place} cannot be reached{away} ({context.original_exception})",
            "start it, or set INF_DATABASE_URL",
            code="store_unreachable",
            since=since,
            until=until,
        ) from context.original_exception


def _refuses_sign_in(error: BaseException) -> bool:
    from db.store.sign_in import is_refused  # a process of SQLite does not load psycopg

    return is_refused(error)


def _let_server_notice(connection: Any, _: object) -> None:
    """Have the server end the session of a client that vanished, and free its locks."""
    connection.execute(NOTICES)


def _local_settings(schema: str) -> str:
    """The settings of each transaction on PostgreSQL."""
    # JIT compilation takes PostgreSQL longer than any of our queries runs
    settings = ["SET LOCAL jit = off"]
    if schema:
        settings.append(f'SET LOCAL search_path = "{schema}"')
    return "; ".join(settings)


def _begin_postgres(connection: Connection, settings: str) -> None:
    """Begin with the settings, in one round trip; with another isolation level psycopg begins."""
    options = connection.get_execution_options()
    if options.get("isolation_level") == "AUTOCOMMIT":
        return
    driver: Any = connection.connection.dbapi_connection
    begins_itself = not driver.autocommit
    statements = settings if begins_itself else f"BEGIN; {settings}"
    connection.exec_driver_sql(statements + (CHECK if "inf_revision" in options else ""))


def _check_as_it_begins(
    connection: Connection, cursor: Any, statement: str, *_more: object
) -> None:
    """Read the revision from the last answer of `_begin_postgres`: no round trip of its own."""
    if statement.endswith(CHECK):
        while cursor.nextset():
            continue
        _require_own_of(connection, cursor.fetchone())


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("inf_write", False) else "BEGIN")
    if "inf_revision" in options:
        driver: Any = connection.connection.dbapi_connection
        # by the driver: SQLAlchemy would add 60 µs to these 5, with the store locked
        try:
            row = driver.execute(READ_REVISION).fetchone()
        except sqlite3.Error as error:
            driver.rollback()
            raise InfError(
                REPLACED.format(error),
                "put the store back and restart this process",
                code="store_replaced",
            ) from error
        _require_own_of(connection, row)


def _require_own_of(connection: Connection, row: tuple[str] | None) -> None:
    """Raise StoreBehind, the transaction rolled back, unless the store is of our revision."""
    try:
        _require_own(connection.get_execution_options()["inf_revision"], row and row[0])
    except StoreBehind:
        driver: Any = connection.connection.dbapi_connection
        driver.rollback()
        raise


def _require_own(ours: str, found: str | None) -> None:
    if found == ours:
        return
    raise StoreBehind(
        f"the store is at revision {found or 'none'}, and this process writes {ours}: it was "
        "upgraded, or put back, meanwhile. Nothing was stored",
        "restart this process with the version of InF Studio that the store is of",
        code="store_moved",
    )
