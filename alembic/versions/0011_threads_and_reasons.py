"""Threads on items; coded reasons of flags and skips; when a skipped item was shown and ended"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("assignment", "judgment"):
        op.add_column(table, sa.Column("reason", sa.String(), server_default="", nullable=False))
    for name in ("shown_at", "ended_at"):
        op.add_column("assignment", sa.Column(name, sa.DateTime(timezone=True)))
    op.create_table(
        "item_message",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("written_by", sa.String(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("body <> ''", name=op.f("ck_item_message_body_not_empty")),
        sa.ForeignKeyConstraint(
            ["study_id"],
            ["study.id"],
            name=op.f("fk_item_message_study_id_study"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["item_id"], ["item.id"], name=op.f("fk_item_message_item_id_item"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["judge_id"], ["judge.id"], name=op.f("fk_item_message_judge_id_judge")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item_message")),
        sa.UniqueConstraint("event_id", name=op.f("uq_item_message_event_id")),
    )
    op.create_index(
        "ix_item_message_study_id_judge_id", "item_message", ["study_id", "judge_id", "item_id"]
    )


def downgrade() -> None:
    op.drop_table("item_message")
    for name in ("ended_at", "shown_at", "reason"):
        op.drop_column("assignment", name)
    op.drop_column("judgment", "reason")
