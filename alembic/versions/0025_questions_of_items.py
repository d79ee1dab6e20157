"""Items have an expected answer and a question; until here the right answer was the scenario's label

A column is added and, of SQLite, no table copied; existing items expect the label of their scenario.
"""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

REFERENCE = "fk_item_question_id_question"
DECLARED = f", \n\tCONSTRAINT {REFERENCE} FOREIGN KEY(question_id) REFERENCES question (id)"


def upgrade() -> None:
    op.create_table(
        "question",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column(
            "labels", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("prompt_sha256", sa.String(), nullable=False),
        sa.CheckConstraint("kind IN ('grade', 'yes_no', 'score')", name=op.f("ck_question_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_question")),
        sa.UniqueConstraint("key", name=op.f("uq_question_key")),
    )
    op.add_column("item", sa.Column("expected", sa.String()))
    op.add_column("item", sa.Column("question_id", sa.Integer()))
    if op.get_bind().dialect.name == "postgresql":
        op.create_foreign_key(op.f(REFERENCE), "item", "question", ["question_id"], ["id"])
    else:
        _rewrite(lambda written: re.sub(r"\s*\)\s*\Z", f"{DECLARED}\n)", written))
    op.execute("UPDATE item SET expected = scenario")


def downgrade() -> None:
    found = op.get_bind().execute(
        sa.text("SELECT scenario FROM item WHERE question_id IS NOT NULL LIMIT 1")
    )
    if (asked := found.scalar()) is not None:
        raise ValueError(
            f"an item asks {asked!r}, which the version before cannot hold: delete the runs whose "
            "recipes declare [checks], or put the copy of the upgrade back"
        )
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint(op.f(REFERENCE), "item", type_="foreignkey")
    else:
        _rewrite(lambda written: written.replace(DECLARED, ""))
    op.drop_column("item", "question_id")
    op.drop_column("item", "expected")
    op.drop_table("question")


def _rewrite(changed) -> None:
    """Change how SQLite declares the table without copying it, as in 0024."""
    connection = op.get_bind()
    find = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'item'"
    written = connection.exec_driver_sql(find).scalar_one()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.exec_driver_sql(
        "UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = 'item'",
        (changed(written),),
    )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
