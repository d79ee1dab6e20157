"""The funnel of a run at which no worker is, kept so that a list of runs counts no groups"""

import json
from collections import Counter

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

STAGES = ("instruction", "negatives", "passages", "validation")
IDLE = sa.text(
    """SELECT id, dataset_id FROM run WHERE NOT EXISTS
    (SELECT 1 FROM run_worker WHERE run_id = run.id AND ended_at IS NULL)"""
)
GROUPS = sa.text(
    """SELECT state, stage, drop_reason, count(*) FROM "group" WHERE run_id = :run
    GROUP BY state, stage, drop_reason"""
)
KEEP = sa.text("UPDATE run SET counted = :counted WHERE id = :run")


def upgrade() -> None:
    op.add_column("run", sa.Column("counted", sa.String(), nullable=True))
    connection = op.get_bind()
    for run_id, dataset_id in connection.execute(IDLE).all():
        states, reached, dropped = Counter[str](), Counter[str](), Counter[str]()
        for state, stage, reason, count in connection.execute(GROUPS, {"run": run_id}):
            states[state] += count
            reached.update(dict.fromkeys(STAGES[: STAGES.index(stage) + 1] if stage else (), count))
            dropped.update({reason: count} if reason is not None else {})
        funnel = {
            "run_id": run_id,
            "dataset_id": dataset_id,
            "pairs": states.total(),
            "waiting": states["waiting"],
            "in_work": states["leased"],
            "reached": {stage: reached[stage] for stage in STAGES},
            "kept": states["done"] - dropped.total(),
            "dropped": dict(sorted(dropped.items(), key=lambda pair: (-pair[1], pair[0]))),
        }
        counted = json.dumps({"seconds": 0.0, "funnel": funnel})
        connection.execute(KEEP, {"counted": counted, "run": run_id})


def downgrade() -> None:
    op.drop_column("run", "counted")
