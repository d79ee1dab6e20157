"""PostgreSQL as teams run it: PgBouncer, a schema of its own, TLS, few rights."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import require
from pgbouncer import missing_pgbouncer, pgbouncer, write_certificate
from postgres_cluster import Cluster
from records_world import make_run
from sqlalchemy import func, select, text
from sqlalchemy.engine import make_url

from db.errors import BadInput, InfError, Refused
from db.store import schema
from db.store.backup import restore_backup, write_backup
from db.store.store import Store, open_store
from db.store.upgrading import go_back, upgrade_store
from db.tables import Group, Job

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def bouncer(postgres_cluster: Cluster) -> Iterator[tuple[int, Path]]:
    reason = missing_pgbouncer()
    if reason:
        require("pgbouncer", reason)
    with pgbouncer(postgres_cluster) as found:
        yield found


@pytest.fixture
def through(
    postgres_cluster: Cluster, bouncer: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The address of an empty database behind PgBouncer, which INF_DATABASE_URL names."""
    direct = postgres_cluster.create()
    url = f"postgresql+psycopg://inf@127.0.0.1:{bouncer[0]}/{make_url(direct).database}"
    monkeypatch.setenv("INF_DATABASE_URL", url)
    yield url
    postgres_cluster.drop(direct)


def test_through_pgbouncer_a_store_is_made_filled_backed_up_and_restored(
    through: str, tmp_path: Path
) -> None:
    store = open_store(through)
    schema.upgrade(store)
    schema.require_current(store)
    make_run(store)
    written = write_backup(store, tmp_path / "inf.backup")
    restored = restore_backup(store, tmp_path / "inf.backup", replace=True)
    assert restored["content_sha256"] == written["content_sha256"]
    store.close()


def test_two_clients_of_one_server_connection_meet_no_statement_of_the_other(through: str) -> None:
    # psycopg prepares a statement at its sixth execution, under a name that every client counts up
    # from zero: two of them collide on the server connection that they share
    schema.upgrade(open_store(through))
    clients = [Store(f"{through}?application_name={name}") for name in ("a", "b")]
    for client in clients:
        with client.write() as session:
            for _ in range(8):
                assert session.scalar(select(func.count()).select_from(Job)) == 0
            session.commit()  # a rollback would make psycopg forget what it prepared
    for client in clients:
        client.close()


def test_settings_do_not_outlive_the_transaction(
    through: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_DATABASE_SCHEMA", "studio")
    ours = open_store(through)
    schema.upgrade(ours)
    with ours.read() as session:
        assert session.scalar(text("SHOW search_path")) == "studio"
        assert session.scalar(text("SHOW jit")) == "off"
    monkeypatch.delenv("INF_DATABASE_SCHEMA")
    import psycopg

    plain = through.replace("+psycopg", "")
    with psycopg.connect(plain, prepare_threshold=None) as other:  # the same server connection
        assert other.execute("SHOW search_path").fetchone() == ('"$user", public',)
        assert other.execute("SHOW jit").fetchone() == ("on",)
    ours.close()


def test_a_copy_and_the_way_back_through_pgbouncer_are_refused_and_leave_no_setting(
    through: str, postgres_cluster: Cluster, tmp_path: Path
) -> None:
    import psycopg

    store = open_store(through)
    schema.upgrade(store)
    make_run(store)
    direct = open_store(postgres_cluster.url(str(make_url(through).database)))
    schema.downgrade(direct, "-1")
    copy = tmp_path / "copy.pgdump"
    upgrade_store(direct, copy_to=copy)
    with pytest.raises(Refused, match=r"pooler.*server's own address"):
        go_back(store, copy)
    schema.downgrade(store, "-1")
    with pytest.raises(Refused, match=r"pooler.*`no_copy=`"):
        upgrade_store(store)
    upgrade_store(store, copy=False)
    with psycopg.connect(through.replace("+psycopg", ""), prepare_threshold=None) as other:
        assert other.execute("SHOW search_path").fetchone() == ('"$user", public',)
        assert other.execute('SELECT count(*) FROM "group"').fetchone() == (7,)
    go_back(direct, copy)
    with psycopg.connect(through.replace("+psycopg", ""), prepare_threshold=None) as other:
        assert other.execute('SELECT count(*) FROM "group"').fetchone() == (7,)
    store.close()
    direct.close()


def tables_of(url: str, name: str) -> int:
    import psycopg

    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        found = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = %s", (name,))
        row = found.fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("how", ["variable", "search path of the role", "options in the address"])
def test_a_schema_of_ones_own_holds_all_tables_and_public_none(
    how: str, postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_cluster.create()
    used = url
    import psycopg

    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        if how == "variable":
            monkeypatch.setenv("INF_DATABASE_SCHEMA", "studio")
        else:
            connection.execute("CREATE SCHEMA studio")
        if how == "search path of the role":
            connection.execute(
                f'ALTER ROLE inf IN DATABASE "{make_url(url).database}" SET search_path = studio'
            )
        if how == "options in the address":
            used = f"{url}&options=-csearch_path%3Dstudio"
    store = open_store(used)
    schema.upgrade(store)
    schema.upgrade(store)
    schema.require_current(store)
    make_run(store)
    assert tables_of(url, "public") == 0
    assert tables_of(url, "studio") > 20
    store.close()
    postgres_cluster.drop(url)


@pytest.mark.parametrize("name", ["Studio", 'a"; DROP TABLE job; --', "1a", "a b", "ü"])
def test_a_schema_whose_name_would_need_quoting_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_DATABASE_SCHEMA", name)
    with pytest.raises(BadInput, match="INF_DATABASE_SCHEMA"):
        open_store("postgresql+psycopg://nowhere/x")


def test_tls_is_checked_by_the_authority_that_the_address_names(
    through: str, bouncer: tuple[int, Path], tmp_path: Path
) -> None:
    _, authority = bouncer
    checked = open_store(f"{through}?sslmode=verify-full&sslrootcert={authority}")
    schema.upgrade(checked)
    with checked.engine.connect() as connection:
        raw: Any = connection.connection.driver_connection
        assert raw.pgconn.ssl_in_use
    checked.close()

    stranger = write_certificate(tmp_path)
    refused = open_store(f"{through}?sslmode=verify-full&sslrootcert={stranger}")
    with pytest.raises(InfError, match=r"cannot be reached.*certificate"):
        schema.current(refused)
    refused.close()


def test_the_least_rights_of_the_documentation_are_enough_to_work_and_not_to_upgrade(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path("docs/running/postgresql.md").read_text()
    statements = page.split("```sql\n")[1].split("```")[0]
    with postgres_store.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        for statement in statements.split(";"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    url = make_url(postgres_store.url).set(username="studio_app")
    store = open_store(url.render_as_string(hide_password=False))
    schema.require_current(store)
    make_run(store)
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(Group)) == 7
    schema.downgrade(postgres_store, "-1")
    with pytest.raises(Refused, match=r"role studio_app may not change the schema.*store upgrade"):
        schema.upgrade(store)
    store.close()
    with postgres_store.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql("DROP OWNED BY studio_app")
        connection.exec_driver_sql("DROP ROLE studio_app")
