"""Jobs that mine hard negatives"""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

BEFORE = (
    "kind IN ('curate', 'judge', 'embed', 'project', 'train', 'evaluate', 'export',"
    " 'push', 'backup', 'import', 'pull', 'restore', 'study')"
)
AFTER = BEFORE.replace("'study')", "'study', 'mine')")


def upgrade() -> None:
    _allow(BEFORE, AFTER)


def downgrade() -> None:
    op.execute("DELETE FROM job WHERE kind = 'mine'")
    _allow(AFTER, BEFORE)


def _allow(before: str, after: str) -> None:
    """Replace the check of the kinds of jobs, on SQLite without a copy of the table (see 0016)."""
    name, connection = op.f("ck_job_kind"), op.get_bind()
    if connection.dialect.name == "postgresql":
        op.drop_constraint(name, "job", type_="check")
        op.create_check_constraint(name, "job", after)
        return
    find = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'job'"
    written = connection.exec_driver_sql(find).scalar_one()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.execute(
        sa.text("UPDATE sqlite_master SET sql = :now WHERE type = 'table' AND name = 'job'"),
        {"now": written.replace(before, after)},
    )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
