"""Runs and answers record their server group; answers before it have none"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "server_group",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column(
            "endpoints",
            sa.JSON().with_variant(postgresql.JSONB(), "postgresql"),
            nullable=False,
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_group")),
        sa.UniqueConstraint("name", name=op.f("uq_server_group_name")),
    )
    # added in place: a copied table would take as long as it is large
    op.add_column("run", sa.Column("server_group", sa.String()))
    op.add_column(
        "run", sa.Column("fresh", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.add_column("call", sa.Column("server_group", sa.String()))


def downgrade() -> None:
    op.drop_column("call", "server_group")
    op.drop_column("run", "fresh")
    op.drop_column("run", "server_group")
    op.drop_table("server_group")
