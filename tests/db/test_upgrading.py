"""`inf upgrade`: a copy, the migrations, a check, the way back; `inf db copy`: counts compared."""

import gzip
import json
import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from conftest import Ran, count_rows
from postgres_cluster import Cluster
from records_world import make_run
from sqlalchemy.dialects.postgresql import JSONB

from db.errors import InfError, Refused
from db.jobs import jobs
from db.store import copying, schema, upgrading
from db.store.copying import copy_store
from db.store.store import Store, open_store
from db.store.upgrading import go_back, upgrade_store

DATA = Path(__file__).resolve().parent.parent / "data"
LATER = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009")
EARLY = sorted(path.name.split(".")[0] for path in (DATA / "early_stores").iterdir())


@pytest.fixture
def filled(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store of a small demo at revision 0001 as frozen."""
    own_home.mkdir(parents=True, exist_ok=True)
    path = own_home / "previous.db"
    path.write_bytes(gzip.decompress((DATA / "previous_store" / "store.db.gz").read_bytes()))
    monkeypatch.setenv("INF_DATABASE_URL", f"sqlite:///{path}")
    return open_store()


def rows_of(store: Store) -> dict[str, int]:
    """Rows by table, of the tables that exist."""
    names = set(sa.inspect(store.engine).get_table_names()) - {"alembic_version", "audit"}
    return {name: count_rows(store, name) for name in sorted(names)}


def test_no_migration_is_missing_here() -> None:
    assert {*LATER, schema.head()} == schema.known_revisions()


@pytest.mark.parametrize("revision", LATER)
def test_a_store_with_data_of_every_revision_upgrades_and_goes_back(
    filled: Store, revision: str
) -> None:
    schema.upgrade(filled, revision)
    before = rows_of(filled)
    result = upgrade_store(filled)
    schema.require_current(filled)
    assert rows_of(filled).items() >= before.items()
    assert before["group"] > 0
    went = go_back(filled, Path(result["copy"]))
    assert schema.current(filled) == revision
    assert rows_of(filled) == before
    go_back(filled, Path(went["copy"]))  # and the upgraded one was kept, too
    schema.require_current(filled)


def fill_from(source: Store, target: Store) -> None:
    """Copy the rows of a SQLite store into the tables of a PostgreSQL one at the same revision."""
    models = sa.MetaData()
    models.reflect(target.engine)
    with source.engine.connect() as reading, target.engine.begin() as writing:
        for table in models.sorted_tables:
            if table.name == "alembic_version":
                continue
            rows = reading.exec_driver_sql(f'SELECT * FROM "{table.name}"').mappings()
            made = [{name: as_of(table.c[name], row[name]) for name in row} for row in rows]
            for start in range(0, len(made), 500):
                writing.execute(table.insert(), made[start : start + 500])


def as_of(column: sa.Column[Any], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(column.type, JSONB):
        return json.loads(value)
    if isinstance(column.type, sa.DateTime):
        return datetime.fromisoformat(f"{value}+00:00")
    return bool(value) if isinstance(column.type, sa.Boolean) else value


@pytest.mark.postgres
def test_on_postgresql_a_store_of_0001_upgrades_and_goes_back(
    filled: Store, postgres_cluster: Cluster
) -> None:
    url = postgres_cluster.create()
    store = open_store(url)
    schema.upgrade(store, "0001")
    fill_from(filled, store)
    before = rows_of(store)
    assert before == rows_of(filled)
    result = upgrade_store(store)
    schema.require_current(store)
    assert rows_of(store).items() >= before.items()
    store.close()
    assert go_back(store, Path(result["copy"]))["revision"] == "0001"
    assert rows_of(store) == before
    store.close()
    postgres_cluster.drop(url)


@pytest.mark.parametrize("commit", EARLY)
def test_a_store_of_an_early_form_of_0001_is_refused_with_what_differs_and_left_alone(
    commit: str, tmp_path: Path
) -> None:
    path = tmp_path / "early.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        gzip.decompress((DATA / "early_stores" / f"{commit}.sql.gz").read_bytes()).decode()
    )
    before = list(connection.iterdump())
    store = open_store(f"sqlite:///{path}")
    with pytest.raises(Refused) as refused:
        upgrade_store(store)
    store.close()
    message = str(refused.value)
    assert "development version" in message
    assert " is missing" in message
    assert "inf export --format jsonl" in message and "inf import --groups" in message
    assert list(connection.iterdump()) == before
    connection.close()


def test_there_are_three_early_forms() -> None:
    assert len(EARLY) == 3


def test_a_missing_index_is_repaired(sqlite_store: Store) -> None:
    with sqlite_store.engine.begin() as connection:
        connection.exec_driver_sql("DROP INDEX ix_job_status")
    with pytest.raises(schema.StoreBehind, match="inf upgrade"):
        schema.require_current(sqlite_store)
    assert "ix_job_status" in upgrade_store(sqlite_store)["added_indexes"][0]
    schema.require_current(sqlite_store)


def test_a_migration_that_breaks_leaves_the_store_as_it_was(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows_of(filled)
    broken = "CREATE TABLE half (x INTEGER); INSERT INTO nowhere VALUES (1)"

    def break_off(connection: sa.Connection) -> list[str]:
        for statement in broken.split("; "):
            connection.exec_driver_sql(statement)
        return []

    monkeypatch.setattr(upgrading, "_add_indexes", break_off)
    with pytest.raises(InfError, match=r"failed .*nowhere.* taken back"):
        upgrade_store(filled)
    assert schema.current(filled) == "0001"
    assert rows_of(filled) == before


def test_a_store_of_a_newer_version_or_with_running_jobs_or_of_others_is_refused(
    sqlite_store: Store, tmp_path: Path
) -> None:
    schema.downgrade(sqlite_store, "-1")
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "train", {})
        session.flush()
        jobs.claim_job(session, job.id)
        session.commit()
    with pytest.raises(Refused, match="jobs are running"):
        upgrade_store(sqlite_store)
    with sqlite_store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Refused, match="newer version"):
        upgrade_store(sqlite_store)
    other = open_store(f"sqlite:///{tmp_path / 'other.db'}")
    with other.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE customer (id INTEGER)")
    with pytest.raises(Refused, match=r"not InF Studio.s"):
        upgrade_store(other)
    other.close()


def test_the_command_upgrades_and_names_the_way_back(
    filled: Store, inf: Callable[..., Ran]
) -> None:
    done = inf("upgrade", "--json")
    assert (done.code, done.json["before"]) == (0, "0001"), done.out
    assert inf("upgrade").out == f"the store is at revision {schema.head()}: nothing to do\n"
    assert inf("upgrade", "--back", done.json["copy"], "--json").json["revision"] == "0001"
    assert inf("upgrade", "--no-copy", "--back", "x").code == 2
    assert inf("upgrade", "--back", "no-such-file").code == 1


@pytest.mark.postgres
def test_one_command_copies_a_store_to_postgresql_and_counts(
    sqlite_store: Store,
    postgres_cluster: Cluster,
    inf: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_run(sqlite_store)
    expected = rows_of(sqlite_store)
    url = postgres_cluster.create()
    file = sqlite_store.url.removeprefix("sqlite:///")
    monkeypatch.setenv("INF_DATABASE_URL", url)
    done = inf("db", "copy", file, "--json")
    assert done.code == 0, done.out
    assert {name: rows for name, rows in done.json["tables"].items() if rows} == {
        name: rows for name, rows in expected.items() if rows
    }
    again = inf("db", "copy", file)
    assert (again.code, "not empty" in again.err) == (1, True)
    assert inf("db", "copy", url).code == 1  # onto itself
    postgres_cluster.drop(url)


def test_a_copy_whose_counts_differ_is_no_success(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(sqlite_store)
    target = open_store(f"sqlite:///{tmp_path / 'target.db'}")
    counted = copying._rows
    monkeypatch.setattr(copying, "_rows", lambda store: counted(store) | {"group": 6})
    with pytest.raises(InfError, match=r"group \(6, not 7\)"):
        copy_store(sqlite_store, target)
    target.close()
