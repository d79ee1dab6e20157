"""Upgrading a store with a way back: a copy, the migrations, a check, and only then the commit.

The copy and the migrations are made in one transaction on both engines, in which no other process
writes and the schema is compared with the models: a store that would not come out right is left as
it was. The copy is for what shows later.
"""

import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from db.errors import BadInput, InfError, Refused
from db.home import home
from db.store import schema
from db.store.backup import Recorder
from db.store.revision import head
from db.store.reviving import end_open_jobs, end_sign_ins, require_no_running_jobs
from db.store.schema_difference import differences_in, missing_index, schema_differences
from db.store.scope import INFO, current_scope
from db.store.store import Store
from db.tables import Event, utc_now

OTHERS_DEPEND = "2BP01"  # PostgreSQL's code
SETTINGS = "SELECT name FROM pg_settings"


def upgrade_store(
    store: Store, *, copy: bool = True, copy_to: Path | None = None, record: Recorder | None = None
) -> dict[str, Any]:
    """Copy, migrate and check a store. Returns `before`, `revision`, `copy` and `added_indexes`.

    `record` adds to the store in the transaction that changes it; it is given what is returned.
    `copy` False is for a store of which the caller has a copy. Raises StoreBehind for a store of a
    newer version, Refused for one whose schema is not that of its revision (with what differs and
    how to save the data), and one with running jobs. Nothing is changed then.
    """
    before = schema.current(store)
    if before is None:
        if tables := inspect(store.engine).get_table_names():
            raise Refused(
                f"the store holds tables that are not InF Studio's ({', '.join(tables[:5])})",
                "name another in INF_DATABASE_URL, or a schema in INF_DATABASE_SCHEMA",
                code="store_tables_foreign",
            )
        with schema.changing(store) as connection:
            schema.migrate(connection)
            result = _result(before, None, [])
            _record(connection, record, result)
            connection.commit()
        return result
    schema.require_not_newer(store)
    if before == head() and not schema_differences(store):
        return _result(before, None, [])
    _require_form(store, before)
    if copy:
        _require_no_pooler(store)
    copied: Path | None = None
    with _failing_as_upgrade(before), schema.changing(store) as connection:
        require_no_running_jobs(connection)
        if copy:  # under the lock: nothing is written between the copy and the migrations
            copied = _copy(store, before, copy_to)
        schema.migrate(connection)
        added = _add_indexes(connection)
        if differences := differences_in(connection):
            raise Refused(*_differing(store, before, differences), code="schema_differs")
        result = _result(before, copied, added)
        _record(connection, record, result)
        connection.commit()
    return result


def go_back(store: Store, copy: Path, *, record: Recorder | None = None) -> dict[str, Any]:
    """Put the copy of an earlier upgrade back, after a copy of what is there now.

    Returns `revision`, `copy` (of what was there) and `restored`. `record` adds to the copy; it is
    given what is returned. On SQLite all of it is one transaction; on PostgreSQL `psql` puts the
    tables back in a transaction of its own, before the one that ends jobs and records. Raises
    Refused, StoreBehind, BadInput.
    """
    if not copy.is_file():
        raise BadInput(
            f"{copy} does not exist",
            "name the copy that `store upgrade` printed",
            code="store_file_missing",
        )
    now = schema.current(store)
    schema.require_not_newer(store)
    _require_no_pooler(store)
    with store.engine.connect() as connection:
        require_no_running_jobs(connection)
    if store.is_sqlite:
        _require_sqlite_store(copy)
    else:
        _require_none_depends(store)
    kept = _copy(store, now or "empty", None)
    result = {"copy": str(kept), "restored": str(copy)}
    if not store.is_sqlite:
        _restore_postgres(store, copy)
        return _as_put_back(store, record, result)
    store.close()
    with tempfile.TemporaryDirectory(prefix="inf-back-") as folder:
        path = Path(folder) / "back.db"
        path.touch(mode=0o600)  # it holds password hashes
        _copy_sqlite(copy, path)
        aside = Store(f"sqlite:///{path}")
        result = _as_put_back(aside, record, result)
        aside.close()
        _copy_sqlite(path, Path(str(make_url(store.url).database)))
    return result


def _as_put_back(store: Store, record: Recorder | None, result: dict[str, Any]) -> dict[str, Any]:
    """End what was open in a store that is put back, and record that it is, where it can: in one
    of before events nothing is."""
    result = {"revision": schema.current(store)} | result
    with Session(store.engine) as session:  # of an earlier revision, where `write` writes nothing
        end_open_jobs(session, when="the copy was made")
        end_sign_ins(session)
        columns, found = Event.__table__.columns.keys(), inspect(session.connection())
        if found.has_table(Event.__tablename__) and {*columns} == {
            each["name"] for each in found.get_columns(Event.__tablename__)
        }:
            _record(session.connection(), record, result)
        session.commit()
    return result


def _record(connection: Connection, record: Recorder | None, result: dict[str, Any]) -> None:
    if record is not None:
        with Session(connection, info={INFO: current_scope()}) as session:
            record(session, result)
            session.flush()


def _result(before: str | None, copied: Path | None, added: list[str]) -> dict[str, Any]:
    return {
        "before": before,
        "revision": head(),
        "copy": None if copied is None else str(copied),
        "added_indexes": added,
    }


@contextmanager
def _failing_as_upgrade(before: str) -> Iterator[None]:
    """Translate a failure of the database, after which the transaction is rolled back."""
    try:
        yield
    except DBAPIError as error:
        reason = str(error.orig).splitlines()[0]
        remedy = (
            "Another process writes there: stop the servers and jobs of this store, and try again."
            if "locked" in reason
            else "Go on with the version that wrote it, and report this."
        )
        raise InfError(
            f"the upgrade from revision {before} failed ({reason}) and was taken back: the store "
            "is as it was",
            remedy,
            code="upgrade_failed",
        ) from error


def _add_indexes(connection: Connection) -> list[str]:
    """Create the indexes that are missing; they hold no data."""
    statements = [missing_index(sentence) for sentence in differences_in(connection)]
    if not statements or not all(statements):
        return []
    for statement in statements:
        connection.exec_driver_sql(statement)
    return statements


def _require_form(store: Store, revision: str) -> None:
    """Raise Refused if the tables are not those that the migrations up to `revision` make.

    SQLite only, where the right form costs a file; on PostgreSQL the migration's own transaction
    finds it.
    """
    if not store.is_sqlite:
        return
    with tempfile.TemporaryDirectory(prefix="inf-upgrade-") as folder:
        model = Store(f"sqlite:///{folder}/model.db")
        schema.upgrade(model, revision)
        with store.engine.connect() as real, model.engine.connect() as right:
            found = differences_in(real, model=right)
        model.close()
    if not all(" index " in sentence and " is missing" in sentence for sentence in found):
        raise Refused(*_differing(store, revision, found), code="schema_differs")


def _differing(store: Store, revision: str, differences: list[str]) -> tuple[str, str]:
    listed = "\n".join(f"  {sentence}" for sentence in differences)
    return (
        f"the store is at revision {revision}, but its schema is not the one that this revision "
        f"writes: it was made by a development version of InF Studio, or changed by hand.\n"
        f"{listed}",
        schema.how_to_save(store),
    )


def _require_no_pooler(store: Store) -> None:
    """Raise Refused where a pooler may give each transaction another server connection.

    pg_dump and psql set things (an empty search path) for a connection, not for a transaction:
    the next client of that server connection would find no tables.
    """
    if store.is_sqlite:
        return
    with store.engine.connect() as connection:
        process = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        driver: Any = connection.connection.driver_connection
    if driver.info.backend_pid != process:  # PgBouncer gives each client a number of its own
        raise Refused(
            "INF_DATABASE_URL goes through a connection pooler (PgBouncer), where the copy by "
            "pg_dump would disturb other clients",
            "name the server's own address for this command, "
            "or, to upgrade, make a copy on the server and give `no_copy=`",
            code="store_behind_pooler",
        )


def _require_none_depends(store: Store) -> None:
    """Raise Refused if a view or table of others depends on tables of a PostgreSQL store."""
    try:
        with store.engine.connect() as connection:
            if tables := schema.our_tables(connection):
                connection.exec_driver_sql(f"DROP TABLE {', '.join(tables)}")
            connection.rollback()
    except DBAPIError as error:
        reason: Any = error.orig
        if getattr(reason, "sqlstate", None) != OTHERS_DEPEND:
            raise
        raise Refused(
            f"others depend on the store's tables ({reason.diag.message_detail})",
            "drop them first, and create them again when the copy is back",
            code="store_tables_depended_on",
        ) from error


def _copy(store: Store, revision: str, to: Path | None) -> Path:
    """A copy of the whole store as the engine writes it, complete before it has its name."""
    stamp = utc_now().strftime("%Y%m%d-%H%M%S-%f")  # two copies may be made in a second
    kind = "db" if store.is_sqlite else "pgdump"
    path = to or home() / "backups" / f"before-upgrade-{revision}-{stamp}.{kind}"
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    if path.is_dir() or (there != path and not there.is_dir()):
        raise Refused(
            f"{path} is a folder" if path.is_dir() else f"{there} is a file, not a folder",
            f"name a new file as `copy_to=`, for example before.{kind} in a folder",
            code="store_copy_no_file",
        )
    if path.exists():
        raise Refused(
            f"{path} exists: a copy never overwrites",
            "name a new file as `copy_to=`",
            code="store_copy_exists",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.touch(mode=0o600)  # it holds password hashes
    try:
        if store.is_sqlite:
            _copy_sqlite(Path(str(make_url(store.url).database)), unfinished)
        else:
            with store.engine.connect() as connection:
                tables = [f"--table={name}" for name in schema.our_tables(connection)]
            _run_postgres(
                store, "pg_dump", "--format=custom", "--no-owner", "--file", str(unfinished),
                *tables, _database(store),
            )  # fmt: skip
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def _copy_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite file into another through the engine: safe with open connections."""
    reading, writing = sqlite3.connect(source), sqlite3.connect(target, timeout=30)
    try:
        reading.backup(writing)
        answer = writing.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as error:
        raise InfError(
            f"{source} cannot be copied to {target}: {error}",
            "Check space and rights there",
            code="store_copy_failed",
        ) from error
    finally:
        reading.close()
        writing.close()
    if answer != "ok":
        raise InfError(
            f"{source} is damaged, nothing was changed: {answer}",
            "restore a backup: `store restore FILE replace=yes`",
            code="store_damaged",
        )


def _require_sqlite_store(copy: Path) -> None:
    connection = sqlite3.connect(f"{copy.resolve().as_uri()}?mode=ro", uri=True)
    try:
        connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise BadInput(
            f"{copy} is not a copy of a store: {error}",
            "name the file that the upgrade made",
            code="store_copy_invalid",
        ) from error
    finally:
        connection.close()


def _restore_postgres(store: Store, copy: Path) -> None:
    """Put a copy back in one transaction, instead of the tables that are there now."""
    with store.engine.connect() as connection:
        tables = schema.our_tables(connection)
        known = {str(name) for name in connection.exec_driver_sql(SETTINGS).scalars()}
    with tempfile.TemporaryDirectory(prefix="inf-back-") as folder:
        whole, script = Path(folder) / "whole.sql", Path(folder) / "back.sql"
        for path in (whole, script):
            path.touch(mode=0o600)
        _run_postgres(store, "pg_restore", "--no-owner", "--file", str(whole), str(copy))
        with whole.open("rb") as reading, script.open("wb") as writing:
            writing.writelines(without_unknown_settings(reading, known))
        dropping = Path(folder) / "drop.sql"
        # by hand: pg_restore --clean fails on tables of later migrations that refer to these
        dropping.write_text(f"DROP TABLE {', '.join(tables)};\n" if tables else "")
        _run_postgres(
            store, "psql", "--no-psqlrc", "--quiet", "--single-transaction",
            "--set=ON_ERROR_STOP=1", f"--file={dropping}", f"--file={script}", _database(store),
        )  # fmt: skip


def without_unknown_settings(script: Iterable[bytes], known: set[str]) -> Iterator[bytes]:
    """The lines of a script of pg_restore without the SETs of what the server does not know.

    Client programs of a newer version write them: 17 sets `transaction_timeout`. Only up to the
    first rows, whose texts are left alone.
    """
    rows = False
    for line in script:
        rows = rows or line.startswith(b"COPY ")
        found = None if rows else re.match(rb"SET (\w+) = ", line)
        if found is None or found[1].decode() in known:
            yield line


def _database(store: Store) -> str:
    """The address as libpq takes it, without the password, which goes by the environment."""
    url = make_url(store.url).set(drivername="postgresql", password=None)
    return url.render_as_string(hide_password=False)


def _run_postgres(store: Store, program: str, *arguments: str) -> None:
    found = shutil.which(program)
    if found is None:
        raise Refused(
            f"{program} is not installed (PostgreSQL's client programs)",
            "install it, or make a copy on the server and give `no_copy=`",
            code="postgresql_client_missing",
        )
    password = make_url(store.url).password
    done = subprocess.run(
        [found, *arguments],
        env=os.environ | ({"PGPASSWORD": str(password)} if password else {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise InfError(
            f"{program} failed: {done.stderr.strip()}",
            "check its connection and version, and try again",
            code="postgresql_client_failed",
        )
