"""Upgrading a store with a way back: a copy, the migrations, a check, and only then the commit.

The migrations run in one transaction on both engines, in which the schema is compared with the
models: a store that would not come out right is left as it was. The copy is for what shows later.
"""

import os
import shutil
import sqlite3
import subprocess
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from db.errors import BadInput, InfError, Refused
from db.store import schema
from db.store.schema_difference import differences_in, missing_index, schema_differences
from db.store.settings import home
from db.store.store import Store
from db.tables import Base, Job, utc_now

ALIVE = timedelta(seconds=60)  # a heartbeat younger than this is of a job that runs


def upgrade_store(
    store: Store, *, copy: bool = True, copy_to: Path | None = None
) -> dict[str, Any]:
    """Copy, migrate and check a store. Returns `before`, `revision`, `copy` and `added_indexes`.

    `copy` False is for a store of which the caller has a copy. Raises Refused for a store of a
    newer version, one whose schema is not that of its revision (with what differs and how to save
    the data), and one with running jobs. Nothing is changed then.
    """
    before = schema.current(store)
    if before is None:
        if tables := inspect(store.engine).get_table_names():
            raise Refused(
                f"the store holds tables that are not InF Studio's ({', '.join(tables[:5])}): "
                "name another in INF_DATABASE_URL, or a schema in INF_DATABASE_SCHEMA"
            )
        schema.upgrade(store)
        return _result(store, before, None, [])
    if before not in schema.known_revisions():
        raise Refused(
            f"the store is at revision {before}, which this version of InF Studio does not know: a "
            "newer version wrote it. Install that one, or go back with `inf upgrade --back COPY`"
        )
    if before == schema.head() and not schema_differences(store):
        return _result(store, before, None, [])
    _require_no_jobs(store)
    _require_form(store, before)
    copied = _copy(store, before, copy_to) if copy else None
    return _result(store, before, copied, _migrate(store, before))


def go_back(store: Store, copy: Path) -> dict[str, Any]:
    """Put the copy of an earlier upgrade back, after a copy of what is there now.

    Returns `revision`, `copy` (of what was there) and `restored`. Raises Refused, BadInput.
    """
    if not copy.is_file():
        raise BadInput(f"{copy} does not exist: name the copy that `inf upgrade` printed")
    _require_no_jobs(store)
    now = schema.current(store)
    kept = _copy(store, now or "empty", None)
    if store.is_sqlite:
        _require_sqlite_store(copy)
        store.close()
        _copy_sqlite(copy, Path(str(make_url(store.url).database)))
    else:
        _restore_postgres(store, copy)
    return {"revision": schema.current(store), "copy": str(kept), "restored": str(copy)}


def _result(
    store: Store, before: str | None, copied: Path | None, added: list[str]
) -> dict[str, Any]:
    return {
        "before": before,
        "revision": schema.current(store),
        "copy": None if copied is None else str(copied),
        "added_indexes": added,
    }


def _migrate(store: Store, before: str) -> list[str]:
    """Migrate and check in one transaction. Returns the statements of the indexes it added."""
    try:
        with schema.migrated(store) as connection:
            added = _add_indexes(connection)
            if differences := differences_in(connection):
                raise Refused(_differing(store, before, differences))
            connection.commit()
            return added
    except DBAPIError as error:
        reason = str(error.orig).splitlines()[0]
        raise InfError(
            f"the upgrade from revision {before} failed ({reason}) and was taken back: the store "
            f"is as it was. {schema.how_to_save(store)}"
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
        raise Refused(_differing(store, revision, found))


def _differing(store: Store, revision: str, differences: list[str]) -> str:
    listed = "\n".join(f"  {sentence}" for sentence in differences)
    return (
        f"the store is at revision {revision}, but its schema is not the one that this revision "
        f"writes: it was made by a development version of InF Studio, or changed by hand.\n"
        f"{listed}\n{schema.how_to_save(store)}"
    )


def _require_no_jobs(store: Store) -> None:
    if not inspect(store.engine).has_table(Job.__tablename__):
        return
    with store.read() as session:
        rows = session.execute(select(Job.id, Job.heartbeat_at).where(Job.status == "running"))
        running = [number for number, beat in rows if beat and utc_now() - beat < ALIVE]
    if running:
        raise Refused(
            f"jobs are running ({', '.join(map(str, running))}): wait for them or cancel them, and "
            "stop the servers of this store"
        )


def _copy(store: Store, revision: str, to: Path | None) -> Path:
    """A copy of the whole store as the engine writes it, complete before it has its name."""
    stamp = utc_now().strftime("%Y%m%d-%H%M%S")
    kind = "db" if store.is_sqlite else "pgdump"
    path = to or home() / "backups" / f"before-upgrade-{revision}-{stamp}.{kind}"
    if path.exists():
        raise Refused(f"{path} exists: a copy never overwrites, give another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.touch(mode=0o600)  # it holds password hashes
    try:
        if store.is_sqlite:
            _copy_sqlite(Path(str(make_url(store.url).database)), unfinished)
        else:
            tables = [f"--table={name}" for name in _tables(store)]
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
        raise InfError(f"{source} cannot be copied to {target}: {error}") from error
    finally:
        reading.close()
        writing.close()
    if answer != "ok":
        raise InfError(f"{source} is damaged, nothing was changed: {answer}")


def _require_sqlite_store(copy: Path) -> None:
    connection = sqlite3.connect(f"{copy.resolve().as_uri()}?mode=ro", uri=True)
    try:
        connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise BadInput(f"{copy} is not a copy of a store: {error}") from error
    finally:
        connection.close()


def _restore_postgres(store: Store, copy: Path) -> None:
    """Put a copy back in one transaction, instead of the tables that are there now."""
    with tempfile.TemporaryDirectory(prefix="inf-back-") as folder:
        script = Path(folder) / "back.sql"
        script.touch(mode=0o600)
        _run_postgres(store, "pg_restore", "--no-owner", "--file", str(script), str(copy))
        dropping = Path(folder) / "drop.sql"
        # by hand: pg_restore --clean fails on tables of later migrations that refer to these
        dropping.write_text("".join(f"DROP TABLE {name} CASCADE;\n" for name in _tables(store)))
        _run_postgres(
            store, "psql", "--no-psqlrc", "--quiet", "--single-transaction",
            "--set=ON_ERROR_STOP=1", f"--file={dropping}", f"--file={script}", _database(store),
        )  # fmt: skip


def _tables(store: Store) -> list[str]:
    """Our tables in a PostgreSQL store, as `"schema"."table"`; those of others are left alone."""
    ours = {*Base.metadata.tables, "alembic_version"}
    with store.engine.connect() as connection:
        place = connection.exec_driver_sql("SELECT current_schema()").scalar()
        found = inspect(connection).get_table_names()
    return [f'"{place}"."{name}"' for name in sorted(found) if name in ours]


def _database(store: Store) -> str:
    """The address as libpq takes it, without the password, which goes by the environment."""
    url = make_url(store.url).set(drivername="postgresql", password=None)
    return url.render_as_string(hide_password=False)


def _run_postgres(store: Store, program: str, *arguments: str) -> None:
    found = shutil.which(program)
    if found is None:
        raise Refused(
            f"{program} is not installed (PostgreSQL's client programs): install it, or make a "
            "copy on the server and give --no-copy"
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
        raise InfError(f"{program} failed: {done.stderr.strip()}")
