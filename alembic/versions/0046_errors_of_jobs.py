"""The error of a job in parts: its code and its remedy beside the message

Jobs of before keep one text; a downgrade joins the parts to one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("job", sa.Column("error_code", sa.String(), nullable=True))
    op.add_column("job", sa.Column("remedy", sa.String(), nullable=True))


def downgrade() -> None:
    op.execute("UPDATE job SET error = error || ': ' || remedy WHERE remedy <> ''")
    op.drop_column("job", "remedy")
    op.drop_column("job", "error_code")
