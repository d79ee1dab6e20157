"""A store that moved on to another revision while this process runs: nothing is written there."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from db.errors import InfError, StoreBehind
from db.events import list_events, record_event
from db.jobs import jobs
from db.jobs.runner import JobHandle, run
from db.store import revision, schema
from db.store.store import Store, open_store


def move_on(store: Store, to: str = "9999") -> None:
    """What an upgrade by a newer version leaves: its revision, and here the same tables."""
    with schema.changing(store) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :now"), {"now": to})
        connection.commit()


def write_one(store: Store, action: str) -> None:
    with store.write() as session:
        record_event(session, "me", action)
        session.commit()


def actions(store: Store) -> list[str]:
    with store.read() as session:
        return [row.name for row in list_events(session)[0]]


def test_nothing_is_written_once_the_store_is_of_another_revision(store: Store) -> None:
    write_one(store, "before")
    move_on(store)
    for _ in range(2):
        with pytest.raises(StoreBehind, match=r"revision 9999.*restart") as refused:
            write_one(store, "after")
        assert refused.value.code == "store_moved"
    assert actions(store) == ["before"]
    move_on(store, revision.head())  # it was put back
    write_one(store, "again")
    assert actions(store) == ["again", "before"]


def test_a_writer_that_waited_for_the_upgrade_is_refused_and_the_upgrade_waits_for_writers(
    store: Store,
) -> None:
    """On PostgreSQL the locks of the tables alone let the waiting writer through."""
    begun, may_commit = threading.Event(), threading.Event()
    outcome: list[str] = []

    def first_writer() -> None:
        with open_store(store.url).write() as session:
            record_event(session, "me", "first")
            session.flush()
            begun.set()
            assert may_commit.wait(20)
            outcome.append("first commits")
            session.commit()

    def upgrade() -> None:
        with schema.changing(store) as connection:
            outcome.append("upgrade begins")
            upgrading.set()
            assert waits.wait(20)
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
            connection.commit()

    def second_writer() -> None:
        try:
            write_one(open_store(store.url), "second")
            outcome.append("second committed")
        except StoreBehind:
            outcome.append("second refused")

    upgrading, waits = threading.Event(), threading.Event()
    threads = [threading.Thread(target=one) for one in (first_writer, upgrade, second_writer)]
    threads[0].start()
    assert begun.wait(20)
    threads[1].start()
    assert not upgrading.wait(0.3)
    may_commit.set()
    assert upgrading.wait(20)
    threads[2].start()
    threads[2].join(0.3)
    assert threads[2].is_alive()
    waits.set()
    for thread in threads:
        thread.join(40)
    assert outcome == ["first commits", "upgrade begins", "second refused"]
    assert actions(store) == ["first"]


def test_a_process_keeps_the_revision_of_the_files_that_it_began_with(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer version may be installed over a running server: its migrations are not ours."""
    revision.head.cache_clear()
    ours = open_store(sqlite_store.url)
    newer = {**revision.revisions_before(), "9999": revision.head()}
    monkeypatch.setattr(revision, "revisions_before", lambda: newer)
    move_on(sqlite_store)
    with pytest.raises(StoreBehind):
        write_one(ours, "after")


def test_a_job_whose_store_moved_on_stops_and_reports_why(
    sqlite_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with sqlite_store.write() as session:
        job = jobs.claim_job(session, jobs.enqueue_job(session, "curate", {}).id)
        assert job is not None
        session.commit()
    handle = JobHandle(sqlite_store, job.id, job.attempt)
    steps: list[int] = []

    def work(handle: JobHandle) -> dict[str, object]:
        for step in range(100):
            handle.check()
            steps.append(step)
            if step == 3:
                move_on(sqlite_store)
                handle.report(3, 3)
        return {}

    assert run(handle, work) == 1
    assert steps == [0, 1, 2, 3]
    assert "9999" in caplog.text and "Traceback" not in caplog.text


def other_database(folder: Path) -> bytes:
    with closing(sqlite3.connect(folder / "other.db")) as connection:
        connection.execute("CREATE TABLE other (id INTEGER)")
        connection.commit()
    return (folder / "other.db").read_bytes()


CONTENTS = {
    "empty": lambda _: b"",
    "broken": lambda _: b"SQLite format 3\x00" + bytes(4080),
    "another": other_database,
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_file_that_was_replaced_under_a_server_is_one_of_our_errors(
    sqlite_store: Store, tmp_path: Path, kind: str
) -> None:
    """The revision is read by the driver as a write begins: its error came through raw."""
    with sqlite_store.write() as session:
        session.execute(text("SELECT 1"))  # a pooled connection, and our revision
    path = Path(str(make_url(sqlite_store.url).database))
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    path.write_bytes(CONTENTS[kind](tmp_path))
    with pytest.raises(InfError) as caught, sqlite_store.write() as session:
        session.execute(text("SELECT 1"))
    assert "restart" in str(caught.value)
    sqlite_store.close()
