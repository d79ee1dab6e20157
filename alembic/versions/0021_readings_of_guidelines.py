"""Which versions of a study's guidelines a judge has read"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "guideline_reading",
        sa.Column("guideline_id", sa.Integer(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["guideline_id"], ["guideline.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["judge_id"], ["judge.id"]),
        sa.PrimaryKeyConstraint("guideline_id", "judge_id"),
    )
    # what a member last judged under: a newer version is new to them
    op.execute(
        "INSERT INTO guideline_reading (guideline_id, judge_id, read_at) "
        "SELECT max(judgment.guideline_id), judgment.judge_id, max(judgment.decided_at) "
        "FROM judgment JOIN study_judge ON study_judge.study_id = judgment.study_id "
        "AND study_judge.judge_id = judgment.judge_id "
        "WHERE judgment.guideline_id IS NOT NULL "
        "GROUP BY judgment.study_id, judgment.judge_id"
    )


def downgrade() -> None:
    op.drop_table("guideline_reading")
