"""Items have an expected answer and a question; until here the right answer was the scenario's label

A column is added and, of SQLite, no table copied; existing items expect the label of their scenario.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

REFERENCE = "fk_item_question_id_question"


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
    op.execute(
        "ALTER TABLE item ADD COLUMN question_id INTEGER "
        f"CONSTRAINT {REFERENCE} REFERENCES question (id)"
    )
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
    op.drop_column("item", "question_id")
    op.drop_column("item", "expected")
    op.drop_table("question")
