"""Members know after how many items their next gold item comes"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("study_judge", sa.Column("next_gold", sa.Integer()))


def downgrade() -> None:
    op.drop_column("study_judge", "next_gold")
