"""Negatives that come with a pair; a pair had its right passage alone

No row is copied: negatives that were imported so far are passages of the pool, and of which pair they were is not
known; importing the same file again gives them to their pairs.
"""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pair_negative",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("pair_id", sa.Integer(), nullable=False),
        sa.Column("passage_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["pair_id"],
            ["pair.id"],
            name=op.f("fk_pair_negative_pair_id_pair"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["passage_id"], ["passage.id"], name=op.f("fk_pair_negative_passage_id_passage")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pair_negative")),
        sa.UniqueConstraint(
            "pair_id", "passage_id", name=op.f("uq_pair_negative_pair_id_passage_id")
        ),
    )
    op.create_index("ix_pair_negative_passage_id", "pair_negative", ["passage_id"])


def downgrade() -> None:
    op.drop_index("ix_pair_negative_passage_id", table_name="pair_negative")
    op.drop_table("pair_negative")
