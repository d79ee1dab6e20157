"""Why a text of a group was dropped alone; its group stands without it"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("group_text", sa.Column("dropped_reason", sa.String()))


def downgrade() -> None:
    dropped = sa.text("SELECT slot FROM group_text WHERE dropped_reason IS NOT NULL LIMIT 1")
    if (slot := op.get_bind().execute(dropped).scalar()) is not None:
        raise ValueError(
            f"texts of {slot!r} were dropped from their groups, which the version before would take "
            "for theirs: delete the runs whose recipes have such rules, or put the copy of the "
            "upgrade back"
        )
    op.drop_column("group_text", "dropped_reason")
