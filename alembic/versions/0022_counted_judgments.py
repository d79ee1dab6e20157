"""Judgments that count in a further study, whose queue their program was to judge

Until here every judgment of a program counted in every study that held the item. What a finished
job judged is known from its row, so those studies keep their figures.
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

KNOWN = """
INSERT INTO counted_judgment (study_id, judgment_id)
SELECT si.study_id, j.id
FROM judgment j
JOIN study_item si ON si.item_id = j.item_id AND si.study_id = :study AND si.part = 'main'
JOIN judge ON judge.id = j.judge_id AND judge.name = :judge
WHERE j.is_current AND (j.study_id IS NULL OR j.study_id <> :study)
"""


def upgrade() -> None:
    op.create_table(
        "counted_judgment",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("judgment_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["judgment_id"], ["judgment.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("study_id", "judgment_id"),
    )
    op.create_index("ix_counted_judgment_judgment_id", "counted_judgment", ["judgment_id"])
    job = sa.table("job", sa.column("kind"), sa.column("status"), sa.column("result", sa.JSON))
    done = sa.select(job.c.result).where(job.c.kind == "judge", job.c.status == "done")
    results = [result for (result,) in op.get_bind().execute(done) if result]
    judged = {(each.get("study_id"), each.get("judge")) for each in results}
    for study_id, judge in sorted((s, j) for s, j in judged if s is not None and j):
        op.get_bind().execute(sa.text(KNOWN), {"study": study_id, "judge": judge})


def downgrade() -> None:
    op.drop_table("counted_judgment")
