"""Rows of a SQLite store of an earlier revision, on PostgreSQL."""

import json
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from db.store.bulk import continue_numbering
from db.store.store import Store


def fill_from(source: Store, target: Store) -> None:
    """Copy the rows of a SQLite store into the tables of a PostgreSQL one at the same revision."""
    models = sa.MetaData()
    models.reflect(target.engine)
    with source.engine.connect() as reading, target.engine.begin() as writing:
        for table in models.sorted_tables:
            if table.name == "alembic_version":
                continue
            rows = reading.exec_driver_sql(f'SELECT * FROM "{table.name}"').mappings()
            made = [{name: as_of(table.c[name], row[name]) for name in row} for row in rows]
            for start in range(0, len(made), 500):
                writing.execute(table.insert(), made[start : start + 500])
            continue_numbering(Session(writing), table)


def as_of(column: sa.Column[Any], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(column.type, JSONB):
        return json.loads(value)
    if isinstance(column.type, sa.DateTime):
        return datetime.fromisoformat(f"{value}+00:00")
    return bool(value) if isinstance(column.type, sa.Boolean) else value
