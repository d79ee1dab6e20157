"""Budgets of tokens, the runs they started, and reviews that agents propose"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def _foreign(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{target}.id"], name=op.f(f"fk_{table}_{column}_{target}"), ondelete="CASCADE"
    )


def upgrade() -> None:
    op.add_column("api_token", sa.Column("budget_usd", sa.Double(), nullable=True))
    op.create_table(
        "api_token_run",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("token_id", sa.Integer(), nullable=False),
        _foreign("api_token_run", "run_id", "run"),
        _foreign("api_token_run", "token_id", "api_token"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_api_token_run")),
    )
    op.create_index("ix_api_token_run_token_id", "api_token_run", ["token_id"])
    op.create_table(
        "review_proposal",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "action IN ('approve', 'reject')", name=op.f("ck_review_proposal_action")
        ),
        sa.CheckConstraint("reason <> ''", name=op.f("ck_review_proposal_has_reason")),
        _foreign("review_proposal", "group_id", "group"),
        _foreign("review_proposal", "judge_id", "judge"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_review_proposal")),
    )
    op.create_index("ix_review_proposal_group_id", "review_proposal", ["group_id"])


def downgrade() -> None:
    op.drop_table("review_proposal")
    op.drop_table("api_token_run")
    op.drop_column("api_token", "budget_usd")
