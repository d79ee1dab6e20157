"""The funnel of a run, counted by one of its workers for all that read it"""

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run_worker", sa.Column("counted", sa.String(), nullable=True))
    op.add_column("run_worker", sa.Column("counted_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column("run_worker", "counted_at")
    op.drop_column("run_worker", "counted")
