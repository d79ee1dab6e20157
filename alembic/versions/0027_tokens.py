"""Tokens of programs, the datasets they are limited to, and answers to repeated requests"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
AT = sa.DateTime(timezone=True)


def _foreign(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{target}.id"], name=op.f(f"fk_{table}_{column}_{target}"), ondelete="CASCADE"
    )


def upgrade() -> None:
    op.create_table(
        "api_token",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("hint", sa.String(), nullable=False),
        sa.Column("token_sha256", sa.String(), nullable=True),
        sa.Column("rights", JSON, nullable=False),
        sa.Column("everywhere", sa.Boolean(), nullable=False),
        sa.Column("created_at", AT, nullable=False),
        sa.Column("expires_at", AT, nullable=False),
        sa.Column("used_at", AT, nullable=True),
        sa.Column("revoked_at", AT, nullable=True),
        sa.CheckConstraint("name <> ''", name=op.f("ck_api_token_name_not_empty")),
        _foreign("api_token", "account_id", "account"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_token")),
        sa.UniqueConstraint("token_sha256", name=op.f("uq_api_token_token_sha256")),
    )
    op.create_index("ix_api_token_account_id", "api_token", ["account_id"])
    op.create_table(
        "api_token_dataset",
        sa.Column("token_id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        _foreign("api_token_dataset", "token_id", "api_token"),
        _foreign("api_token_dataset", "dataset_id", "dataset"),
        sa.PrimaryKeyConstraint("token_id", "dataset_id", name=op.f("pk_api_token_dataset")),
    )
    op.create_table(
        "api_answer",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("token_id", sa.Integer(), nullable=False),
        sa.Column("request_key", sa.String(), nullable=False),
        sa.Column("request_sha256", sa.String(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("created_at", AT, nullable=False),
        _foreign("api_answer", "token_id", "api_token"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_answer")),
        sa.UniqueConstraint(
            "token_id", "request_key", name=op.f("uq_api_answer_token_id_request_key")
        ),
    )
    op.create_index("ix_api_answer_created_at", "api_answer", ["created_at"])


def downgrade() -> None:
    op.drop_table("api_answer")
    op.drop_table("api_token_dataset")
    op.drop_table("api_token")
