"""What becomes of single texts in a verdict version

No row is copied: versions of runs whose groups have lists were refused until here.
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "text_verdict",
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("slot", sa.String(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("dropped_reason", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["group.id"],
            name=op.f("fk_text_verdict_group_id_group"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["version_id"],
            ["verdict_version.id"],
            name=op.f("fk_text_verdict_version_id_verdict_version"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "group_id", "version_id", "slot", "ordinal", name=op.f("pk_text_verdict")
        ),
    )
    op.create_index("ix_text_verdict_version_id", "text_verdict", ["version_id", "dropped_reason"])


def downgrade() -> None:
    held = sa.text(
        "SELECT v.run_id FROM text_verdict t JOIN verdict_version v ON v.id = t.version_id LIMIT 1"
    )
    if (run_id := op.get_bind().execute(held).scalar()) is not None:
        raise ValueError(
            f"run {run_id} has verdict versions that hold single texts, which the version before "
            "cannot use: delete them, or put the copy of the upgrade back"
        )
    op.drop_index("ix_text_verdict_version_id", table_name="text_verdict")
    op.drop_table("text_verdict")
