"""Archived datasets and runs; jobs that pull, restore and create studies"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

BEFORE = (
    "kind IN ('curate', 'judge', 'embed', 'project', 'train', 'evaluate', 'export',"
    " 'push', 'backup', 'import')"
)
AFTER = BEFORE.replace("'import')", "'import', 'pull', 'restore', 'study')")
REPLACES = sa.text("replaces_id IS NOT NULL")


def upgrade() -> None:
    for table in ("dataset", "run"):
        op.add_column(table, sa.Column("archived_at", sa.DateTime(timezone=True)))
    op.create_index(
        "ix_judgment_replaces_id",
        "judgment",
        ["replaces_id"],
        sqlite_where=REPLACES,
        postgresql_where=REPLACES,
    )
    _allow(BEFORE, AFTER)


def downgrade() -> None:
    op.execute("DELETE FROM job WHERE kind IN ('pull', 'restore', 'study')")
    _allow(AFTER, BEFORE)
    op.drop_index("ix_judgment_replaces_id", "judgment")
    for table in ("dataset", "run"):
        op.drop_column(table, "archived_at")  # not by a copy: rows refer to the tables


def _allow(before: str, after: str) -> None:
    """Replace the check of the kinds of jobs."""
    name = op.f("ck_job_kind")
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        op.drop_constraint(name, "job", type_="check")
        op.create_check_constraint(name, "job", after)
        return
    # Not by a copy of the table: dropping it would delete the points that refer to it. This is the
    # way that SQLite describes for a change that does not affect what is stored
    # (sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes").
    find = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'job'"
    written = connection.exec_driver_sql(find).scalar_one()
    if written.count(before) != 1 or after in written:
        return  # an early form of 0001, which the comparison of schemas reports
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.exec_driver_sql(
        "UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = 'job'",
        (written.replace(before, after),),
    )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
