"""How Alembic reaches the store.

Called by `db.store.schema`, or by `alembic revision` in a clone.
"""

from alembic import context

from db.store.store import open_store
from db.tables import Base
from db.tables.base import HomePath, HomePaths, Json, UtcDateTime

JSON = 'sa.JSON().with_variant(postgresql.JSONB(), "postgresql")'


def render_item(kind, item, autogen_context):
    """Migrations name plain SQLAlchemy types: our own classes may change after them."""
    if kind == "type" and isinstance(item, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and isinstance(item, HomePath):
        return "sa.String()"
    if kind == "type" and (item is Json or isinstance(item, HomePaths)):
        autogen_context.imports.add("from sqlalchemy.dialects import postgresql")
        return JSON
    return False


def run(connection):
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,
        compare_type=True,
        render_item=render_item,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    with open_store().engine.connect() as connection:
        run(connection)
        connection.commit()
