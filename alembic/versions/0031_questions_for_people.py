"""Questions have the text that people are asked, and a pick may be one of them"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

BEFORE = "kind IN ('grade', 'yes_no', 'score')"
NOW = "kind IN ('pick', 'grade', 'yes_no', 'score')"


def upgrade() -> None:
    op.add_column("question", sa.Column("text", sa.String(), nullable=False, server_default=""))
    _allow(BEFORE, NOW)


def downgrade() -> None:
    found = op.get_bind().execute(
        sa.text("SELECT name FROM question WHERE kind = 'pick' OR text <> '' LIMIT 1")
    )
    if (name := found.scalar()) is not None:
        raise ValueError(
            f"a study asks people {name!r}, which the version before cannot hold: delete the "
            "datasets of studies from files, or put the copy of the upgrade back"
        )
    _allow(NOW, BEFORE)
    op.drop_column("question", "text")


def _allow(before: str, now: str) -> None:
    """Change the check of kinds; on SQLite without copying the table, as in 0024."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        op.drop_constraint(op.f("ck_question_kind"), "question", type_="check")
        op.create_check_constraint(op.f("ck_question_kind"), "question", now)
        return
    find = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'question'"
    written = connection.exec_driver_sql(find).scalar_one()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.exec_driver_sql(
        "UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = 'question'",
        (written.replace(before, now),),
    )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
