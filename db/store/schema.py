"""The store's schema: upgrading it, and reporting whether it is behind or differs.

Alembic is loaded where it migrates: every command asks whether the store is current.
"""

import importlib.metadata
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import ProgrammingError

from db.errors import Refused, StoreBehind
from db.store.revision import READ_REVISION, VERSION_TABLE, head, migrations, revisions_before
from db.store.schema_difference import FORMER_TABLES, missing_index, schema_differences
from db.store.settings import database_schema
from db.store.store import Store
from db.tables import Base

if TYPE_CHECKING:
    from alembic.config import Config

INSUFFICIENT_PRIVILEGE = "42501"


def upgrade(store: Store, revision: str = "head") -> None:
    """Create the tables or bring them up to `revision`."""
    if current(store) == (head() if revision == "head" else revision):
        return  # without waiting for those who write
    require_not_newer(store)
    with changing(store) as connection:
        migrate(connection, revision)
        connection.commit()


@contextmanager
def changing(store: Store) -> Iterator[Connection]:
    """A transaction in which only this process writes; rolled back unless the caller commits.

    On SQLite it takes the write lock, on PostgreSQL it locks the tables that are there.
    """
    with _allowed(store), store.engine.execution_options(inf_write=True).connect() as connection:
        connection.begin()  # else Alembic begins a transaction of its own, and commits it
        if tables := [] if store.is_sqlite else our_tables(connection):
            # others may read: pg_dump makes the copy of an upgrade meanwhile
            connection.exec_driver_sql(
                f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE"
            )
        yield connection


def our_tables(connection: Connection) -> list[str]:
    """Our tables in a PostgreSQL store, as `"schema"."table"`; those of others are left alone.

    First the one that every writer locks first: whoever locks all of them in this order waits for
    writers, and they for it, but neither for the other.
    """
    ours = {*Base.metadata.tables, *FORMER_TABLES, VERSION_TABLE}
    place = connection.exec_driver_sql("SELECT current_schema()").scalar()
    found = sorted(
        inspect(connection).get_table_names(), key=lambda one: (one != VERSION_TABLE, one)
    )
    return [f'"{place}"."{name}"' for name in found if name in ours]


def migrate(connection: Connection, revision: str = "head") -> None:
    """Run the migrations up to `revision` in the transaction of `connection`."""
    from alembic import command

    _create_schema(connection)
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
    note_version(connection, our_version())


def our_version() -> str:
    """The version of this installation of InF Studio."""
    return importlib.metadata.version("inf-studio")


def note_version(connection: Connection, version: str) -> None:
    """Keep in the store which version migrated it, where a version of any age can read it.

    That is no table: an older version must read it whatever the schema has become. SQLite's header
    has a number for it (1.12.3 is 1012003), PostgreSQL a comment on Alembic's table.
    """
    if connection.dialect.name == "sqlite":
        parts = [int(part) for part in re.findall(r"\d+", version)[:3]]
        number = sum(part * step for part, step in zip(parts, (1_000_000, 1000, 1), strict=False))
        connection.exec_driver_sql(f"PRAGMA user_version = {number}")
    else:
        text = version.replace("'", "")
        connection.exec_driver_sql(f"COMMENT ON TABLE {VERSION_TABLE} IS 'InF Studio {text}'")


def version_of(store: Store) -> str:
    """The version that migrated the store; "" where it was not kept."""
    with store.engine.connect() as connection:
        if store.is_sqlite:
            number = int(connection.exec_driver_sql("PRAGMA user_version").scalar() or 0)
            parts = (number // 1_000_000, number // 1000 % 1000, number % 1000)
            return ".".join(map(str, parts)) if number else ""
        query = f"SELECT obj_description('{VERSION_TABLE}'::regclass, 'pg_class')"
        return str(connection.exec_driver_sql(query).scalar() or "").removeprefix("InF Studio ")


def downgrade(store: Store, revision: str) -> None:
    """Revert migrations down to `revision` ("base": all). Data in dropped tables is lost."""
    from alembic import command

    with _allowed(store), store.engine.connect() as connection:
        config = _config()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
        connection.commit()


def current(store: Store) -> str | None:
    """The revision the store is at; None for a store without tables."""
    with store.engine.connect() as connection:
        if not inspect(connection).has_table(VERSION_TABLE):
            return None
        found = connection.exec_driver_sql(READ_REVISION).scalar()
        return None if found is None else str(found)


def is_empty(store: Store) -> bool:
    """Whether the store has no table at all: neither ours nor another program's."""
    return current(store) is None and not inspect(store.engine).get_table_names()


def require_not_newer(store: Store) -> None:
    """Raise StoreBehind for a store that a newer version migrated, with the version it needs."""
    at = current(store)
    if at is None or at in known_revisions():
        return
    needed, ours = version_of(store), our_version()
    if needed and needed != ours:
        what = f"the store needs InF Studio {needed} or newer, and this is {ours}"
    else:
        what = f"the store needs a version of InF Studio newer than {ours}, which this is"
    raise StoreBehind(
        f"{what} (the store is at revision {at}, this version knows revisions up to {head()}). "
        "Nothing was changed",
        "Install that version, as with `pip install -U inf-studio`, or "
        "put back the copy that its upgrade made: `store upgrade back=COPY` of that version",
        code="store_revision_unknown",
    )


def require_current(store: Store) -> None:
    """Raise StoreBehind unless the store's schema is the one this version writes.

    Compares the revision and the real tables: see `db.store.schema_difference`.
    """
    at = current(store)
    if at == head():
        differences = schema_differences(store)
        if differences:
            raise StoreBehind(*_differing(store, at, differences), code="schema_differs")
        return
    if is_empty(store):
        raise StoreBehind(
            "the store is empty", "create its tables with `store upgrade`", code="store_empty"
        )
    require_not_newer(store)
    raise StoreBehind(
        f"the store is at revision {at}, this version of InF Studio needs {head()}",
        "run `store upgrade`",
        code="store_revision_behind",
    )


def _differing(store: Store, at: str, differences: list[str]) -> tuple[str, str]:
    """The message on a schema that differs, and the remedy."""
    listed = "\n".join(f"  {sentence}" for sentence in differences)
    if all(missing_index(sentence) for sentence in differences):
        remedy = "Its data is complete: `store upgrade` adds them."
    else:
        remedy = how_to_save(store)
    return (
        f"the store is at revision {at}, but its schema is not the one that this revision writes "
        f"({len(differences)} {'difference' if len(differences) == 1 else 'differences'}): it was "
        f"made by a development version of InF Studio, or changed by hand.\n{listed}",
        remedy,
    )


@contextmanager
def _allowed(store: Store) -> Iterator[None]:
    """Translate PostgreSQL's refusal for lack of rights, with the remedy."""
    try:
        yield
    except ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) != INSUFFICIENT_PRIVILEGE:
            raise
        message = str(error.orig).splitlines()[0]
        raise Refused(
            f"the role {store.engine.url.username} may not change the schema ({message})",
            "run `store upgrade` as the role that owns the tables (docs/running/postgresql.md)",
            code="schema_right_missing",
        ) from error


def _create_schema(connection: Connection) -> None:
    """Create the schema that INF_DATABASE_SCHEMA names, unless it exists (PostgreSQL)."""
    name = database_schema()
    if connection.dialect.name != "postgresql" or not name:
        return
    # not IF NOT EXISTS: that needs the right to create schemas even where there is nothing to do
    if name not in inspect(connection).get_schema_names():
        connection.exec_driver_sql(f'CREATE SCHEMA "{name}"')


def how_to_save(store: Store) -> str:
    """The way to keep the data of a store that no migration can fix."""
    copied = "copy its file" if store.is_sqlite else "make a copy with pg_dump"
    return (
        f"No migration can fix this, and nothing was changed. Keep the store as it is ({copied}). "
        "To save its data: with the version that made it, export each run as JSONL; "
        "then name a new store in INF_DATABASE_URL, run `store upgrade`, and read the files of "
        "`data/` with `datasets import NAME groups=FILE`."
    )


def known_revisions() -> set[str]:
    """The revisions that this version has migrations for."""
    return set(revisions_before())


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations()).replace("%", "%%"))
    return config
