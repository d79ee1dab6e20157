"""Groups that a person opened although they could have judged them"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "opened_group",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("opened_by", sa.String(), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["group.id"],
            name=op.f("fk_opened_group_group_id_group"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_opened_group")),
        sa.UniqueConstraint(
            "group_id", "opened_by", name=op.f("uq_opened_group_group_id_opened_by")
        ),
    )


def downgrade() -> None:
    op.drop_table("opened_group")
