"""Endpoints of other servers that are sent events, and the log of what was sent"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def _foreign(column: str, target: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_webhook_delivery_{column}_{target}")
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "webhook",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("events", JSON, nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("sealed_secret", sa.String(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("off_reason", sa.String(), nullable=False),
        sa.Column("after_event", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("status IN ('on', 'off')", name=op.f("ck_webhook_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook")),
    )
    op.create_table(
        "webhook_delivery",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("webhook_id", sa.Integer(), nullable=False),
        sa.Column("event_id", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("answer", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "status IN ('pending', 'delivered', 'failed', 'skipped')",
            name=op.f("ck_webhook_delivery_status"),
        ),
        _foreign("webhook_id", "webhook"),
        _foreign("event_id", "event"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_delivery")),
        sa.UniqueConstraint(
            "webhook_id", "event_id", name=op.f("uq_webhook_delivery_webhook_id_event_id")
        ),
        sa.UniqueConstraint("message_id", name=op.f("uq_webhook_delivery_message_id")),
    )
    op.create_index(
        "ix_webhook_delivery_status_next_attempt_at",
        "webhook_delivery",
        ["status", "next_attempt_at"],
    )


def downgrade() -> None:
    op.drop_table("webhook_delivery")
    op.drop_table("webhook")
