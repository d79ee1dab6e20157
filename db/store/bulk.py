"""Rows by the hundred in one statement, for what is written many times in a second.

Through the mapped classes the same costs three times as much. On PostgreSQL the rows go as one JSON
parameter, so that the statement is the same however many there are: neither the driver nor the
server has to read it anew. Every row has to name the same columns, all that have no default in the
database; what no store can hold (NUL, half a surrogate pair) is to be kept out before.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Dialect, Executable, RowMapping, Table, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.orm import Session

from db.tables import Base

Row = dict[str, Any]


def insert_rows(session: Session, table: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows. Does not commit."""
    _execute(session, table, rows)


def insert_for_ids(session: Session, table: type[Base], rows: Sequence[Row]) -> list[int]:
    """Insert rows; their ids in the order of the rows. Does not commit."""
    # ids are given in the order of the rows, whatever the order in which they are told
    return sorted(row["id"] for row in _execute(session, table, rows, returning=("id",)))


def insert_new(
    session: Session, table: type[Base], rows: Sequence[Row], returning: tuple[str, ...]
) -> Sequence[RowMapping]:
    """Insert the rows that break no constraint; these columns of those. Does not commit."""
    return _execute(session, table, rows, returning=returning, new=True)


def _execute(
    session: Session,
    table: type[Base],
    rows: Sequence[Row],
    *,
    returning: tuple[str, ...] = (),
    new: bool = False,
) -> Sequence[RowMapping]:
    if not rows:
        return []
    connection = session.connection()
    known = Base.metadata.tables[table.__tablename__]
    if connection.dialect.name == "sqlite":
        done = connection.execute(_rows(known, returning, new), list(rows))
    else:
        statement = _from_json(connection.dialect, known, tuple(rows[0]), returning, new)
        done = connection.execute(statement, {"rows": json.dumps(rows, default=str)})
    return done.mappings().all() if returning else []


@cache
def _rows(table: Table, returning: tuple[str, ...], new: bool) -> Executable:
    statement = sqlite.insert(table)
    if new:
        statement = statement.on_conflict_do_nothing()
    if not returning:
        return statement
    return statement.returning(
        *(table.c[name] for name in returning), sort_by_parameter_order=not new
    )


@cache
def _from_json(
    dialect: Dialect, table: Table, columns: tuple[str, ...], returning: tuple[str, ...], new: bool
) -> Executable:
    quote = dialect.identifier_preparer.quote
    listed = ", ".join(quote(name) for name in columns)
    typed = ", ".join(f"{quote(name)} {table.c[name].type.compile(dialect)}" for name in columns)
    words = (
        f"INSERT INTO {quote(table.name)} ({listed}) SELECT {listed} FROM ROWS FROM "
        f"(jsonb_to_recordset(CAST(:rows AS jsonb)) AS ({typed})) WITH ORDINALITY "
        f"AS r ({listed}, place) ORDER BY place"
    )
    if new:
        words += " ON CONFLICT DO NOTHING"
    if returning:
        words += " RETURNING " + ", ".join(quote(name) for name in returning)
    return text(words)
