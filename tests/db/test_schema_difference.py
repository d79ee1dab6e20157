"""A store whose schema is not what its revision promises is reported, on both engines."""

import contextlib
import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from db.errors import StoreBehind
from db.store import schema
from db.store.schema_difference import schema_differences
from db.store.store import Store, open_store

ROOT = Path(__file__).resolve().parents[2]
FIRST = ROOT / "alembic" / "versions" / "0001_the_first_tables.py"
FROZEN = "e080f611c5d805498f1d57263d48068cac842d8f69115821fdd4d19d3650ed65"
COLUMN_OF_JOB = """        sa.Column(
            "shown", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
"""


def make_again(store: Store, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store as another form of migration 0001 alone makes it; later ones follow as they are."""
    if schema.current(store) is not None:
        schema.downgrade(store, "base")
    folder = copytree(ROOT / "alembic", tmp_path / "older", dirs_exist_ok=True)
    (folder / "versions" / FIRST.name).write_text(first)
    with monkeypatch.context() as patched:
        patched.setattr(schema, "migrations", lambda: folder)
        schema.upgrade(store)


def run_sql(store: Store, statement: str) -> None:
    with store.engine.begin() as connection:
        connection.execute(text(statement))


def test_migration_0001_is_frozen() -> None:
    found = hashlib.sha256(FIRST.read_bytes()).hexdigest()
    assert found == FROZEN, "0001 is frozen: undo the edit and add a migration"


def test_a_migrated_store_does_not_differ(store: Store) -> None:
    assert schema_differences(store) == []
    schema.require_current(store)


def test_a_store_made_by_an_older_form_of_0001_is_reported(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = FIRST.read_text()
    older = now.replace(COLUMN_OF_JOB, "", 1)  # 0001 as it was before its last edit
    assert older != now
    make_again(store, older, tmp_path, monkeypatch)
    assert schema.current(store) == schema.head()
    with pytest.raises(StoreBehind, match="column shown is missing") as raised:
        schema.require_current(store)
    assert "1 difference)" in str(raised.value)
    assert "export each run as JSONL" in str(raised.value)


@pytest.mark.long
def test_every_older_form_of_0001_in_the_history_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = FIRST.relative_to(ROOT).as_posix()
    listed = subprocess.run(
        ["git", "log", "--format=%H", "--", path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    older = listed.stdout.split()[1:]
    if not older:
        pytest.skip("no git history of migration 0001 here")
    for commit in older:
        form = subprocess.run(
            ["git", "show", f"{commit}:{path}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        store = open_store(f"sqlite:///{tmp_path / commit}.db")
        # a later migration may alter a table that this form lacks: the upgrade fails there
        with contextlib.suppress(OperationalError):
            make_again(store, form, tmp_path, monkeypatch)
        assert schema_differences(store), commit
        store.close()


@pytest.mark.parametrize(
    ("before", "after", "reported"),
    [
        (
            'sa.Column("cost_usd", sa.Double(), nullable=False)',
            'sa.Column("cost_usd", sa.Integer(), nullable=False)',
            "table call: column cost_usd is INTEGER NOT NULL, not DOUBLE",
        ),
        (
            'sa.Column("email", sa.String(), nullable=True)',
            'sa.Column("email", sa.String(), nullable=False)',
            "table account: column email is VARCHAR NOT NULL, not VARCHAR NULL",
        ),
        (
            "role IN ('annotator', 'curator', 'admin')",
            "role IN ('annotator', 'curator')",
            "table account: check ck_account_role is",
        ),
        (
            '        sa.UniqueConstraint("key", name=op.f("uq_call_key")),\n',
            "",
            "table call: unique key uq_call_key is missing",
        ),
        (
            "taken >= 0 AND (places IS NULL OR taken <= places)",
            "taken > 0 AND (places IS NULL OR taken <= places)",
            "table study_item: check ck_study_item_places is",
        ),
    ],
)
def test_types_nulls_checks_and_keys_are_compared(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    after: str,
    reported: str,
) -> None:
    form = FIRST.read_text()
    assert before in form
    make_again(store, form.replace(before, after, 1), tmp_path, monkeypatch)
    (sentence,) = schema_differences(store)
    assert sentence.startswith(reported)


def test_a_lost_index_is_reported_with_the_statement_that_makes_it(store: Store) -> None:
    run_sql(store, "DROP INDEX ix_judgment_remarked")
    (sentence,) = schema_differences(store)
    statement = sentence.partition("(to add it: ")[2].removesuffix(")")
    with pytest.raises(StoreBehind, match="`store upgrade` adds them"):
        schema.require_current(store)
    run_sql(store, statement)
    schema.require_current(store)


def test_a_column_added_by_hand_is_reported_a_further_plain_index_is_not(store: Store) -> None:
    run_sql(store, "CREATE INDEX our_own ON call (model)")
    run_sql(store, "CREATE TABLE of_another_program (id INTEGER)")
    assert schema_differences(store) == []
    run_sql(store, "ALTER TABLE call ADD COLUMN colour VARCHAR")
    run_sql(store, "CREATE UNIQUE INDEX one_model ON call (model)")
    assert schema_differences(store) == [
        "table call: column colour is not known to this version (VARCHAR NULL)",
        "table call: index one_model is not known to this version (unique (model))",
    ]


def test_a_store_without_a_table_is_reported_by_the_command(
    sqlite_store: Store, inf: Callable[..., object]
) -> None:
    run_sql(sqlite_store, "DROP TABLE metric_point")
    sqlite_store.close()
    for words in (("db", "check"), ("jobs", "list")):
        ran = inf(*words)
        assert ran.code == 1
        assert "table metric_point is missing" in ran.err
    assert open_store().url == sqlite_store.url
