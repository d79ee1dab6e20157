"""`inf upgrade`: a copy, the migrations, a check, the way back; `inf db copy`: counts compared."""

import gzip
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from conftest import Ran, count_rows
from earlier_stores import fill_from
from postgres_cluster import Cluster
from records_world import make_run

from db.errors import InfError, Refused
from db.jobs import jobs
from db.store import copying, schema, upgrading
from db.store.copying import copy_store
from db.store.store import Store, open_store
from db.store.upgrading import go_back, upgrade_store, without_unknown_settings
from db.tables import Account, AccountSession, Job, utc_now

DATA = Path(__file__).resolve().parent.parent / "data"
BEFORE_HEAD = sorted(schema.known_revisions())[:-1]
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
    """Rows by table, of the tables that exist, but for the audit log, which an upgrade adds to."""
    names = set(sa.inspect(store.engine).get_table_names())
    names -= {"alembic_version", "audit", "event"}
    return {name: count_rows(store, name) for name in sorted(names)}


def assert_all_there(store: Store, before: dict[str, int]) -> None:
    """No row of before is missing. A triplet is a passage of a group, and others' texts, now."""
    kept = dict(before)
    triplets = kept.pop("triplet", None)
    assert rows_of(store).items() >= kept.items()
    if triplets is not None:
        passages = sa.text("SELECT count(*) FROM group_text WHERE passage_id IS NOT NULL")
        with store.read() as session:
            assert session.scalar(passages) == triplets


@pytest.mark.parametrize("revision", BEFORE_HEAD)
def test_a_store_with_data_of_every_revision_upgrades_and_goes_back(
    filled: Store, revision: str
) -> None:
    schema.upgrade(filled, revision)
    before = rows_of(filled)
    result = upgrade_store(filled)
    schema.require_current(filled)
    assert_all_there(filled, before)
    assert before["group"] > 0
    went = go_back(filled, Path(result["copy"]))
    assert schema.current(filled) == revision
    assert rows_of(filled) == before
    go_back(filled, Path(went["copy"]))  # and the upgraded one was kept, too
    schema.require_current(filled)


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
    assert_all_there(store, before)
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
    assert "export each run as JSONL" in message
    assert "`datasets import NAME groups=FILE`" in message
    assert list(connection.iterdump()) == before
    connection.close()


def test_there_are_three_early_forms() -> None:
    assert len(EARLY) == 3


def test_a_missing_index_is_repaired(sqlite_store: Store) -> None:
    with sqlite_store.engine.begin() as connection:
        connection.exec_driver_sql("DROP INDEX ix_job_status")
    with pytest.raises(schema.StoreBehind, match="`store upgrade`"):
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
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "train", {})
        session.flush()
        jobs.claim_job(session, job.id)
        session.commit()
    schema.downgrade(sqlite_store, "-1")
    with pytest.raises(Refused, match="jobs are running"):
        upgrade_store(sqlite_store)
    with sqlite_store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(schema.StoreBehind, match=r"newer than .*9999"):
        upgrade_store(sqlite_store)
    other = open_store(f"sqlite:///{tmp_path / 'other.db'}")
    with other.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE customer (id INTEGER)")
    with pytest.raises(Refused, match=r"not InF Studio.s"):
        upgrade_store(other)
    other.close()


def test_a_script_of_newer_client_programs_sets_only_what_the_server_knows() -> None:
    script = [
        b"SET statement_timeout = 0;\n",
        b"SET transaction_timeout = 0;\n",
        b"SELECT pg_catalog.set_config('search_path', '', false);\n",
        b"COPY public.passage (id, text) FROM stdin;\n",
        b"SET transaction_timeout = 0;\n",
    ]
    kept = list(without_unknown_settings(script, {"statement_timeout"}))
    assert kept == [script[0], *script[2:]], "and a text that looks like a setting stays"


def test_the_copy_holds_all_that_was_written_before_the_migration(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process cannot write between the copy and the migrations."""
    copied = upgrading._copy

    def copy_then_write(*arguments: Any) -> Path:
        path = copied(*arguments)
        other = sqlite3.connect(str(filled.engine.url.database), timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("INSERT INTO embedding DEFAULT VALUES")
        other.close()
        return path

    monkeypatch.setattr(upgrading, "_copy", copy_then_write)
    before = rows_of(filled)
    result = upgrade_store(filled)
    schema.require_current(filled)
    assert_all_there(filled, before)
    assert Path(result["copy"]).is_file()


def test_a_copy_goes_to_a_new_file_and_nothing_else(
    filled: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    before = schema.current(filled)
    for place, told in (
        (tmp_path, f"{tmp_path} is a folder: name a new file as --copy-to"),
        (tmp_path / "mine.txt", "mine.txt exists: a copy never overwrites: name a new file"),
        (tmp_path / "mine.txt" / "a.db", "mine.txt is a file, not a folder: name a new file"),
    ):
        refused = inf("store", "upgrade", "--copy-to", place)
        assert refused.code == 1 and told in refused.err, refused.err
    assert schema.current(filled) == before and [*tmp_path.glob("*mine*")]
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_an_upgrade_that_another_writer_blocks_says_to_stop_it(filled: Store) -> None:
    with filled.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=50")
    other = sqlite3.connect(str(filled.engine.url.database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(InfError, match=r"locked.*stop the servers and jobs") as raised:
        upgrade_store(filled)
    assert "No migration can fix this" not in str(raised.value)
    other.close()
    assert schema.current(filled) == "0001"


def test_a_copy_that_is_put_back_starts_no_job_and_signs_nobody_in(sqlite_store: Store) -> None:
    with sqlite_store.write() as session:
        account = Account(name="ada", role="admin", password_hash="-")
        session.add(account)
        session.flush()
        times = {"seen_at": utc_now(), "expires_at": utc_now()}
        session.add(AccountSession(token_sha256="a", account_id=account.id, **times))
        queued = jobs.enqueue_job(session, "train", {}).id
        running = jobs.enqueue_job(session, "train", {})
        session.flush()
        running.status = "running"
        session.commit()
    copy = upgrading._copy(sqlite_store, schema.head(), None)
    go_back(sqlite_store, copy)
    with sqlite_store.read() as session:
        found = {job.id: (job.status, job.error) for job in session.scalars(sa.select(Job))}
        assert session.scalars(sa.select(AccountSession)).one().ended_at is not None
    assert found[queued] == (
        "cancelled",
        "was queued when the copy was made; resume continues it",
    )
    assert found[running.id][0] == "lost"


def test_the_way_back_is_for_the_version_that_wrote_the_store(sqlite_store: Store) -> None:
    copy = upgrading._copy(sqlite_store, schema.head(), None)
    with sqlite_store.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE newer (x INTEGER)")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(schema.StoreBehind, match=r"9999.*back=COPY` of that version"):
        go_back(sqlite_store, copy)
    assert schema.current(sqlite_store) == "9999"


@pytest.mark.postgres
def test_on_postgresql_the_way_back_takes_a_script_of_newer_programs_but_no_view_of_others(
    postgres_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = upgrading._copy(postgres_store, schema.head(), None)
    programs = tmp_path / "bin"
    programs.mkdir()
    newer = programs / "pg_restore"  # as of version 17: its script sets what older servers lack
    newer.write_text(
        f'#!/bin/sh\n{shutil.which("pg_restore")} "$@" || exit 1\n'
        "sed -i '/^SET lock_timeout/a SET transaction_timeout_of_18 = 0;' \"$4\"\n"
    )
    newer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    make_run(postgres_store)
    with postgres_store.engine.begin() as connection:
        connection.exec_driver_sql('CREATE VIEW report AS SELECT id FROM "group"')
    with pytest.raises(Refused, match="view report depends on table"):
        go_back(postgres_store, copy)
    assert count_rows(postgres_store, "group") == 7
    with postgres_store.engine.begin() as connection:
        connection.exec_driver_sql("DROP VIEW report")
    postgres_store.close()
    went = go_back(postgres_store, copy)
    assert count_rows(postgres_store, "group") == 0
    postgres_store.close()
    go_back(postgres_store, Path(went["copy"]))
    assert count_rows(postgres_store, "group") == 7


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


def test_a_store_with_running_jobs_is_not_copied(sqlite_store: Store, tmp_path: Path) -> None:
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "train", {})
        session.flush()
        jobs.claim_job(session, job.id)
        session.commit()
    target = open_store(f"sqlite:///{tmp_path / 'target.db'}")
    with pytest.raises(Refused, match=rf"jobs are running \({job.id}\)"):
        copy_store(sqlite_store, target)
    assert schema.current(target) is None
    target.close()


@pytest.mark.postgres
def test_a_store_is_copied_from_one_schema_into_another_of_the_same_database(
    postgres_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(postgres_store)
    monkeypatch.setenv("INF_DATABASE_SCHEMA", "studio")
    onto_itself = inf("db", "copy", postgres_store.url)
    assert (onto_itself.code, "--from-schema" in onto_itself.err) == (1, True)
    assert inf("db", "copy", postgres_store.url, "--from-schema", "a b").code == 1
    done = inf("db", "copy", postgres_store.url, "--from-schema", "public", "--json")
    assert (done.code, done.json["tables"]["group"]) == (0, 7), done.out + done.err
    copied = open_store(postgres_store.url)
    with copied.read() as session:
        assert session.scalar(sa.text('SELECT count(*) FROM studio."group"')) == 7
    copied.close()


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
