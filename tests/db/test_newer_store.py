"""A store that a newer version wrote: every door answers with a sentence that names the version."""

from collections.abc import Callable

import pytest
from conftest import Ran
from curation_runs import claimed_job
from packaging.version import Version
from records_world import make_run

from db.errors import StoreBehind
from db.store import schema
from db.store.store import Store

NEWER = "9999"


def made_by_newer(store: Store, version: str = "") -> None:
    """Mark the store as migrated by a later version of InF Studio."""
    with store.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{NEWER}'")
        if version:
            schema.note_version(connection, version)


def test_the_version_that_migrated_a_store_is_kept_in_it(store: Store) -> None:
    assert schema.version_of(store) == schema.our_version()
    with store.engine.begin() as connection:
        schema.note_version(connection, "1.12.3")
    assert schema.version_of(store) == "1.12.3"


def test_opening_a_store_of_a_newer_version_names_the_version_needed(store: Store) -> None:
    later = f"{Version(schema.our_version()).major + 1}.4.0"
    made_by_newer(store, later)
    for door in (schema.require_current, schema.upgrade):
        with pytest.raises(StoreBehind) as caught:
            door(store)
        sentence = str(caught.value)
        assert f"needs InF Studio {later} or newer" in sentence, sentence
        assert f"this is {schema.our_version()}" in sentence
        assert "pip install -U" in sentence and "run `store upgrade`" not in sentence
    assert schema.current(store) == NEWER


def test_a_newer_store_without_a_recorded_version_names_its_revision(sqlite_store: Store) -> None:
    made_by_newer(sqlite_store)
    with sqlite_store.engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA user_version = 0")
    with pytest.raises(StoreBehind, match=f"newer than {schema.our_version()}.*{NEWER}"):
        schema.upgrade(sqlite_store)


@pytest.mark.parametrize(
    "words",
    [
        ("db", "check"),
        ("db", "upgrade"),
        ("upgrade",),
        ("serve",),
        ("demo", "--no-serve"),
        ("jobs", "list"),
        ("jobs", "work"),
        ("config",),
    ],
)
def test_every_command_ends_with_the_sentence(
    sqlite_store: Store, inf: Callable[..., Ran], words: tuple[str, ...]
) -> None:
    made_by_newer(sqlite_store, "7.8.9")
    ran = inf(*words)
    assert "needs InF Studio 7.8.9 or newer" in " ".join((ran.out + ran.err).split())
    assert "Traceback" not in ran.out + ran.err
    assert ran.code == (0 if words == ("config",) else 1)


def test_a_job_of_a_newer_store_ends_with_the_sentence_and_stores_nothing(
    sqlite_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    from db.jobs.runner import run
    from db.tables import Job

    handle = claimed_job(sqlite_store, make_run(sqlite_store))
    made_by_newer(sqlite_store, "7.8.9")
    assert run(handle, lambda _: pytest.fail("the work began")) == 1
    assert "needs InF Studio 7.8.9 or newer" in caplog.text and "Traceback" not in caplog.text
    with sqlite_store.read() as session:
        assert session.get_one(Job, handle.id).status == "running", "another version's to write"
