"""An index from which the number and price of a task's calls are read without the calls"""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

NAME = "ix_call_task_price"


def upgrade() -> None:
    op.create_index(NAME, "call", ["task", "model", "cost_usd"])


def downgrade() -> None:
    op.drop_index(NAME, "call")
