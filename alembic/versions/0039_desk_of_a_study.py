"""Quotas and due dates of a study's people, and messages to them"""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def _foreign(table: str, column: str, target: str, *, cascades: bool) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}_{target}")
    ondelete = "CASCADE" if cascades else None
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete=ondelete)


def upgrade() -> None:
    op.add_column("study_judge", sa.Column("quota", sa.Integer(), nullable=True))
    op.add_column("study_judge", sa.Column("due_on", sa.Date(), nullable=True))
    op.create_table(
        "announcement",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("written_by", sa.String(), nullable=False),
        sa.Column("for_all", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("body <> ''", name=op.f("ck_announcement_body_not_empty")),
        _foreign("announcement", "study_id", "study", cascades=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_announcement")),
    )
    op.create_index("ix_announcement_study_id", "announcement", ["study_id"])
    op.create_table(
        "announcement_reader",
        sa.Column("announcement_id", sa.Integer(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=True),
        _foreign("announcement_reader", "announcement_id", "announcement", cascades=True),
        _foreign("announcement_reader", "judge_id", "judge", cascades=False),
        sa.PrimaryKeyConstraint("announcement_id", "judge_id", name=op.f("pk_announcement_reader")),
    )
    op.create_index("ix_announcement_reader_judge_id", "announcement_reader", ["judge_id"])


def downgrade() -> None:
    """Messages and quotas are of the desk alone: no answer depends on them."""
    op.drop_table("announcement_reader")
    op.drop_table("announcement")
    op.drop_column("study_judge", "due_on")
    op.drop_column("study_judge", "quota")
