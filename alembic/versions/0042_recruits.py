"""People of a crowdsourcing platform, each once in a study"""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

COLUMNS, INDEX = ("worker", "submission", "code"), "ix_study_judge_study_id_worker"


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column("study_judge", sa.Column(name, sa.String(), nullable=True))
    op.create_index(INDEX, "study_judge", ["study_id", "worker"], unique=True)


def downgrade() -> None:
    op.drop_index(INDEX, "study_judge")
    for name in COLUMNS:
        op.drop_column("study_judge", name)
