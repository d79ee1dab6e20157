"""Workers lease a run's limits in slices, and each counts what it spends"""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

OF_WORKERS = """(SELECT coalesce(sum(spent_usd + unanswered_usd), 0) FROM run_worker
    WHERE run_worker.run_id = run.id)"""


def upgrade() -> None:
    """What a run spent was counted in the run: what its workers say is taken out of that."""
    for column in (
        sa.Column("leased_usd", sa.Double(), nullable=False, server_default="0"),
        sa.Column("leased_calls", sa.Integer(), nullable=True),
        sa.Column("leased_part", sa.Double(), nullable=False, server_default="0"),
    ):
        op.add_column("run_worker", column)
    op.execute(f"UPDATE run SET spent_usd = spent_usd - {OF_WORKERS}")


def downgrade() -> None:
    op.execute(f"UPDATE run SET spent_usd = spent_usd + {OF_WORKERS}")
    for name in ("leased_part", "leased_calls", "leased_usd"):
        op.drop_column("run_worker", name)
