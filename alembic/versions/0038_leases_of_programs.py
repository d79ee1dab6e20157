"""Items that functions of notebooks hold while they answer them as a judge"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def _foreign(column: str, target: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_program_lease_{column}_{target}")
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "program_lease",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("order_shown", JSON, nullable=False),
        sa.Column("shown_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=False),
        _foreign("study_id", "study"),
        _foreign("item_id", "item"),
        _foreign("judge_id", "judge"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_program_lease")),
        sa.UniqueConstraint("judge_id", "item_id", name=op.f("uq_program_lease_judge_id_item_id")),
        sa.UniqueConstraint("token", name=op.f("uq_program_lease_token")),
    )
    op.create_index("ix_program_lease_item_id", "program_lease", ["item_id"])


def downgrade() -> None:
    """A lease is of minutes: what is answered is a judgment."""
    op.drop_table("program_lease")
