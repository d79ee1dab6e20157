"""Verdict versions: a finished run decided again by other rules over its stored answers

No row is copied: what every run has so far is version 1, and is written down when there is a second.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
AT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column(
        "run", sa.Column("verdict_version", sa.Integer(), nullable=False, server_default="1")
    )
    op.create_table(
        "verdict_version",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("settings", JSON, nullable=False),
        sa.Column("expected", JSON, nullable=False),
        sa.Column("counts", JSON, nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", AT, nullable=False),
        sa.Column("used_at", AT, nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.id"],
            name=op.f("fk_verdict_version_run_id_run"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verdict_version")),
        sa.UniqueConstraint("run_id", "number", name=op.f("uq_verdict_version_run_id_number")),
    )
    op.create_table(
        "group_verdict",
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("drop_reason", sa.String(), nullable=True),
        sa.Column("drop_detail", sa.String(), nullable=True),
        sa.CheckConstraint("verdict IN ('kept', 'dropped')", name=op.f("ck_group_verdict_verdict")),
        sa.CheckConstraint(
            "(verdict = 'dropped') = (drop_reason IS NOT NULL)",
            name=op.f("ck_group_verdict_reason"),
        ),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["group.id"],
            name=op.f("fk_group_verdict_group_id_group"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["version_id"],
            ["verdict_version.id"],
            name=op.f("fk_group_verdict_version_id_verdict_version"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("group_id", "version_id", name=op.f("pk_group_verdict")),
    )
    op.create_index(
        "ix_group_verdict_version_id",
        "group_verdict",
        ["version_id", "verdict", "drop_reason"],
    )


def downgrade() -> None:
    found = op.get_bind().execute(
        sa.text("SELECT id, verdict_version FROM run WHERE verdict_version <> 1 LIMIT 1")
    )
    if (one := found.first()) is not None:
        raise ValueError(
            f"the groups of run {one[0]} have the verdicts of version {one[1]}, which the version "
            f"before cannot name: use the run's version 1 before, or put the copy of the upgrade back"
        )
    op.drop_index("ix_group_verdict_version_id", table_name="group_verdict")
    op.drop_table("group_verdict")
    op.drop_table("verdict_version")
    op.drop_column("run", "verdict_version")
