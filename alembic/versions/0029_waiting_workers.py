"""Since when and why a run's worker waits; what its calls without an answer cost"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run_worker", sa.Column("waiting_since", sa.DateTime(timezone=True)))
    op.add_column("run_worker", sa.Column("waiting_for", sa.String()))
    op.add_column(
        "run_worker",
        sa.Column("unanswered_usd", sa.Double(), server_default="0", nullable=False),
    )


def downgrade() -> None:
    for name in ("unanswered_usd", "waiting_for", "waiting_since"):
        op.drop_column("run_worker", name)
