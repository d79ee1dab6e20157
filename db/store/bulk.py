"""Inserting hundreds of rows in one statement, for what is written many times a second.

Through the mapped classes it takes three times as long. On PostgreSQL the rows go as one JSON
parameter, so that the statement is the same for any number of rows and is prepared once, by the
driver and by the server. Every row has to name the same columns, all without a default in the
database; texts that no store can hold (NUL, lone surrogates) must be removed before.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Dialect, Executable, RowMapping, Table, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from db.tables import Base

Row = dict[str, Any]


def insert_of(session: Session) -> Any:
    """The `insert` of the session's dialect, which knows ON CONFLICT."""
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    return sqlite.insert if is_sqlite else postgresql.insert


def insert_rows(session: Session, table: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows. Does not commit."""
    _execute(session, table, rows)


def insert_for_ids(session: Session, table: type[Base], rows: Sequence[Row]) -> list[int]:
    """Insert rows; returns their ids in the order of the rows. Does not commit."""
    # ids are assigned in the order of the rows; RETURNING may list them in another order
    return sorted(row["id"] for row in _execute(session, table, rows, returning=("id",)))


def insert_new(
    session: Session, table: type[Base], rows: Sequence[Row], returning: tuple[str, ...]
) -> Sequence[RowMapping]:
    """Insert rows unless they violate a constraint; returns columns of those. Does not commit."""
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
    sql_table = Base.metadata.tables[table.__tablename__]
    if connection.dialect.name == "sqlite":
        done = connection.execute(_rows(sql_table, returning, new), list(rows))
    else:
        statement = _from_json(connection.dialect, sql_table, tuple(rows[0]), returning, new)
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


def continue_numbering(session: Session, table: Table) -> None:
    """Set PostgreSQL's id sequence, which is separate from the rows, past the greatest id."""
    if session.get_bind().dialect.name != "postgresql" or "id" not in table.columns:
        return
    session.execute(
        text(
            "SELECT setval(pg_get_serial_sequence(:name, 'id'), greatest(1, "
            f'(SELECT coalesce(max(id), 0) FROM "{table.name}")), '
            f'(SELECT count(*) > 0 FROM "{table.name}"))'
        ),
        {"name": f'"{table.name}"'},
    )
