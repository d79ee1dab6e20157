"""Workers record their tokens, cost, claims, failures by kind and commit latencies"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
BIG = sa.BigInteger()


def upgrade() -> None:
    for name, kind in (
        ("input_tokens", BIG),
        ("output_tokens", BIG),
        ("spent_usd", sa.Double()),
        ("claimed", sa.Integer()),
    ):
        column = sa.Column(name, kind, nullable=False, server_default="0")
        op.add_column("run_worker", column)
    for name in ("errors", "commits"):
        op.add_column("run_worker", sa.Column(name, JSON, nullable=False, server_default="{}"))


def downgrade() -> None:
    for name in ("errors", "commits", "claimed", "spent_usd", "output_tokens", "input_tokens"):
        op.drop_column("run_worker", name)
