"""Rights of people on datasets and studies; accounts get everywhere what their role could do"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

RIGHTS = ("judge", "review", "adjudicate", "curate", "train", "release")
BEFORE = {"annotator": ("judge", "review"), "curator": RIGHTS}
EVERYWHERE = sa.text("dataset_id IS NULL AND study_id IS NULL")


def upgrade() -> None:
    op.create_table(
        "member",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("right_held", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.Integer()),
        sa.Column("study_id", sa.Integer()),
        sa.Column("granted_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(f"right_held IN {RIGHTS}", name=op.f("ck_member_right_held")),
        sa.CheckConstraint(
            "dataset_id IS NULL OR study_id IS NULL", name=op.f("ck_member_one_place")
        ),
        sa.CheckConstraint(
            "study_id IS NULL OR right_held IN ('judge', 'adjudicate')",
            name=op.f("ck_member_right_of_a_study"),
        ),
        *(
            sa.ForeignKeyConstraint(
                [f"{table}_id"],
                [f"{table}.id"],
                name=op.f(f"fk_member_{table}_id_{table}"),
                ondelete="CASCADE",
            )
            for table in ("account", "dataset", "study")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_member")),
        sa.UniqueConstraint(
            "account_id",
            "right_held",
            "dataset_id",
            name=op.f("uq_member_account_id_right_held_dataset_id"),
        ),
        sa.UniqueConstraint(
            "account_id",
            "right_held",
            "study_id",
            name=op.f("uq_member_account_id_right_held_study_id"),
        ),
    )
    op.create_index(
        "uq_member_everywhere",
        "member",
        ["account_id", "right_held"],
        unique=True,
        sqlite_where=EVERYWHERE,
        postgresql_where=EVERYWHERE,
    )
    for role, rights in BEFORE.items():
        for right in rights:
            op.execute(
                sa.text(
                    "INSERT INTO member (account_id, right_held, granted_by, created_at) "
                    "SELECT id, :right, 'migration 0013', CURRENT_TIMESTAMP FROM account "
                    "WHERE role = :role"
                ).bindparams(right=right, role=role)
            )


def downgrade() -> None:
    op.drop_table("member")
