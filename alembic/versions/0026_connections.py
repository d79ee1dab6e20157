"""Connections to model servers; a run records the server that answers"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "connection",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("api_version", sa.String(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("sealed_key", sa.String(), nullable=True),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("prices", JSON, nullable=False),
        sa.Column("tested", JSON, nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('openai', 'azure', 'compatible', 'offline', 'recorded')",
            name=op.f("ck_connection_kind"),
        ),
        sa.CheckConstraint(
            "sealed_key IS NULL OR secret = 'typed'",
            name=op.f("ck_connection_sealed_key_is_typed"),
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name", name=op.f("uq_connection_name")),
    )
    op.add_column("run", sa.Column("server", JSON, server_default="{}", nullable=False))


def downgrade() -> None:
    op.drop_column("run", "server")  # not by a copy: rows refer to the table
    op.drop_table("connection")
