"""Roles are what a run's shape says: the checks of InF-IR's three are gone"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

ROLES = "('positive', 'instruction_negative', 'query_negative')"
CHECKED = {"triplet": "role", "item": "scenario"}


def upgrade() -> None:
    for table, column in CHECKED.items():
        if op.get_bind().dialect.name == "postgresql":
            op.drop_constraint(op.f(f"ck_{table}_{column}"), table, type_="check")
        else:
            check = rf",\s*CONSTRAINT ck_{table}_{column} CHECK \({column} IN \([^)]*\)\)"
            _rewrite(table, lambda written, check=check: re.sub(check, "", written))


def downgrade() -> None:
    for table, column in CHECKED.items():
        _refuse_others(table, column)
        name, check = op.f(f"ck_{table}_{column}"), f"{column} IN {ROLES}"
        if op.get_bind().dialect.name == "postgresql":
            op.create_check_constraint(name, table, check)
        else:
            added = f", \n\tCONSTRAINT {name} CHECK ({check})\n)"
            _rewrite(table, lambda written, added=added: re.sub(r"\s*\)\s*\Z", added, written))


def _refuse_others(table: str, column: str) -> None:
    found = op.get_bind().execute(
        sa.text(f'SELECT {column} FROM "{table}" WHERE {column} NOT IN {ROLES} LIMIT 1')
    )
    role = found.scalar()
    if role is not None:
        raise ValueError(
            f"a {table} has the {column} {role!r}, which the version before cannot hold: delete "
            "the runs whose recipes declare [scenarios], or put the copy of the upgrade back"
        )


def _rewrite(table: str, changed) -> None:
    """Change how SQLite declares a table without copying it, as in 0016."""
    connection = op.get_bind()
    find = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?"
    written = connection.exec_driver_sql(find, (table,)).scalar_one()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.exec_driver_sql(
        "UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = ?",
        (changed(written), table),
    )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
