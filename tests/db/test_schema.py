"""Migrations agree with the models, up, down and up again, on both engines."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from db.errors import StoreBehind
from db.store import schema
from db.store.store import Store, open_store
from db.tables import Base


def test_models_and_migrations_agree(store: Store) -> None:
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_down_and_up_again_gives_the_same_schema(store: Store) -> None:
    schema.downgrade(store, "base")
    assert set(inspect(store.engine).get_table_names()) <= {"alembic_version"}
    schema.upgrade(store)
    test_models_and_migrations_agree(store)


def test_an_empty_store_says_which_command_to_run(tmp_path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'new.db'}")
    with pytest.raises(StoreBehind, match="`store upgrade`"):
        schema.require_current(store)


def test_a_store_behind_says_which_command_to_run(store: Store) -> None:
    schema.downgrade(store, "base")
    with pytest.raises(StoreBehind, match="`store upgrade`"):
        schema.require_current(store)


def test_the_revisions_that_the_files_name_are_alembics(store: Store) -> None:
    script = ScriptDirectory(str(schema.migrations()))
    assert schema.head() == script.get_current_head()
    assert schema.known_revisions() == {each.revision for each in script.walk_revisions()}
    with store.engine.connect() as connection:
        known = MigrationContext.configure(connection).get_current_revision()
    assert schema.current(store) == known == schema.head()
