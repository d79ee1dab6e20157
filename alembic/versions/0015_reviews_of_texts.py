"""Reviews that are copies of those of the same texts in other runs; reviews that were undone"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("review", sa.Column("carried_from", sa.Integer()))
    op.add_column("review", sa.Column("undone_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    for name in ("undone_at", "carried_from"):
        op.drop_column("review", name)
