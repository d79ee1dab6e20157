"""The space of process ids of a job's process: the host's name does not tell it

A running job of before has none: its lease alone tells whether it lives.
"""

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("job", sa.Column("space", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("job", "space")
