"""The runs of a release: one or several"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "release_run",
        sa.Column("release_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["release_id"],
            ["release.id"],
            name=op.f("fk_release_run_release_id_release"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_release_run_run_id_run")),
        sa.PrimaryKeyConstraint("release_id", "run_id", name=op.f("pk_release_run")),
    )
    op.create_index("ix_release_run_run_id", "release_run", ["run_id"])
    op.execute(
        sa.text(
            "INSERT INTO release_run (release_id, run_id) "
            'SELECT DISTINCT release_group.release_id, "group".run_id FROM release_group '
            'JOIN "group" ON "group".id = release_group.group_id'
        )
    )


def downgrade() -> None:
    op.drop_index("ix_release_run_run_id", "release_run")
    op.drop_table("release_run")
