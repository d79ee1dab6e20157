"""Assignments have a random token; examples are stored as shown. Earlier orders stay"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
# both are random numbers of the system's source
TOKENS = {
    "sqlite": "lower(hex(randomblob(16)))",
    "postgresql": "replace(gen_random_uuid()::text, '-', '')",
}


def upgrade() -> None:
    # added in place: a copied table would take as long as it is large
    op.add_column("assignment", sa.Column("token", sa.String(), server_default="", nullable=False))
    op.execute(f"UPDATE assignment SET token = {TOKENS[op.get_bind().dialect.name]}")
    op.create_index("uq_assignment_token", "assignment", ["token"], unique=True)
    op.create_table(
        "example",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column("order_shown", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["study_id"],
            ["study.id"],
            name=op.f("fk_example_study_id_study"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_example_item_id_item")),
        sa.ForeignKeyConstraint(["judge_id"], ["judge.id"], name=op.f("fk_example_judge_id_judge")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_example")),
        sa.UniqueConstraint("token", name=op.f("uq_example_token")),
        sa.UniqueConstraint(
            "study_id",
            "judge_id",
            "round",
            "item_id",
            name=op.f("uq_example_study_id_judge_id_round_item_id"),
        ),
    )
    op.create_index("ix_example_item_id", "example", ["item_id"])


def downgrade() -> None:
    op.drop_table("example")
    op.drop_index("uq_assignment_token", "assignment")
    op.drop_column("assignment", "token")
