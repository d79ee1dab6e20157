"""Adjudicators see items blind first: the order shown, and when they asked for the roles"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "adjudication_view",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("seen_by", sa.String(), nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column(
            "order_shown", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("revealed_at", sa.DateTime(timezone=True)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["study_id"],
            ["study.id"],
            name=op.f("fk_adjudication_view_study_id_study"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["item_id"], ["item.id"], name=op.f("fk_adjudication_view_item_id_item")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_adjudication_view")),
        sa.UniqueConstraint("token", name=op.f("uq_adjudication_view_token")),
        sa.UniqueConstraint(
            "study_id",
            "item_id",
            "seen_by",
            name=op.f("uq_adjudication_view_study_id_item_id_seen_by"),
        ),
    )
    op.create_index("ix_adjudication_view_item_id", "adjudication_view", ["item_id"])


def downgrade() -> None:
    op.drop_table("adjudication_view")
