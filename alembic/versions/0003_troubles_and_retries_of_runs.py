"""Runs record their guard, their workers' trouble and rate, and their groups' retries"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    # added in place: a copied table would take as long as it is large
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column)


def downgrade() -> None:
    for table, columns in _columns().items():
        for column in columns:
            op.drop_column(table, column.name)


def _columns() -> dict[str, list[sa.Column]]:
    return {
        "run": [sa.Column("guard", sa.Boolean(), server_default=sa.true(), nullable=False)],
        "run_worker": [
            sa.Column("last_error", sa.String()),
            sa.Column("last_error_at", sa.DateTime(timezone=True)),
            sa.Column("waiting_until", sa.DateTime(timezone=True)),
            sa.Column("retries_per_minute", sa.Integer(), server_default="0", nullable=False),
            sa.Column("answers_per_minute", sa.Double()),
            sa.Column("in_progress", JSON, server_default="{}", nullable=False),
        ],
        "group": [
            sa.Column("failed_attempts", sa.Integer(), server_default="0", nullable=False),
            sa.Column("failed_at", sa.DateTime(timezone=True)),
            sa.Column("retries", JSON, server_default="{}", nullable=False),
        ],
    }
