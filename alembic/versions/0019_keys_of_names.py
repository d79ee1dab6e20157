"""Account names that look alike share a key, which is unique; earlier ones stay as they are"""

import sqlalchemy as sa
from alembic import op

from db.names import name_key

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

account = sa.table("account", sa.column("id", sa.Integer), sa.column("name"), sa.column("name_key"))


def upgrade() -> None:
    op.add_column("account", sa.Column("name_key", sa.String(), server_default="", nullable=False))
    connection, taken = op.get_bind(), set()
    rows = connection.execute(sa.select(account.c.id, account.c.name).order_by(account.c.id))
    for number, name in rows.all():
        key = name_key(name)
        # whoever came second keeps their name too; an id after a line feed is no name's key
        key = f"{key}\n{number}" if key in taken else key
        taken.add(key)
        connection.execute(account.update().where(account.c.id == number).values(name_key=key))
    op.create_index("uq_account_name_key", "account", ["name_key"], unique=True)


def downgrade() -> None:
    op.drop_index("uq_account_name_key", "account")
    op.drop_column("account", "name_key")
