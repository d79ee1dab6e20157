"""Jobs of judges that a token started within its budget"""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def _foreign(column: str, target: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_api_token_job_{column}_{target}")
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "api_token_job",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("token_id", sa.Integer(), nullable=False),
        _foreign("job_id", "job"),
        _foreign("token_id", "api_token"),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_api_token_job")),
    )
    op.create_index("ix_api_token_job_token_id", "api_token_job", ["token_id"])


def downgrade() -> None:
    op.drop_table("api_token_job")
