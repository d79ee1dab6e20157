"""Paths inside of INF_HOME are kept from there on, and a job knows where its files are

Paths below the INF_HOME of the upgrade are shortened; others stay as they are.
"""

import json
from collections.abc import Callable

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from db.home import as_stored, from_stored

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

TEXTS = {"release": "path", "checkpoint": "path", "evaluation": "model", "job": "log_path"}
BATCH = 500


def upgrade() -> None:
    op.add_column("job", sa.Column("home", sa.String(), nullable=True))
    _change(as_stored)


def downgrade() -> None:
    _change(from_stored)
    op.drop_column("job", "home")


def _change(changed: Callable[[object], object]) -> None:
    for table, column in TEXTS.items():
        _rewrite(table, (column,), sa.String(), changed)
    kind = sa.JSON(none_as_null=True).with_variant(
        postgresql.JSONB(none_as_null=True), "postgresql"
    )
    _rewrite("job", ("config", "result"), kind, changed)


def _rewrite(
    table: str,
    columns: tuple[str, ...],
    kind: "sa.types.TypeEngine[object]",
    changed: Callable[[object], object],
) -> None:
    """Write the rows whose values change, in the order of their ids, a batch at a time."""
    rows = sa.table(table, sa.column("id", sa.Integer), *(sa.column(one, kind) for one in columns))
    bind, last = op.get_bind(), 0
    while found := bind.execute(
        sa.select(rows).where(rows.c.id > last).order_by(rows.c.id).limit(BATCH)
    ).all():
        last = found[-1].id
        for row in found:
            new = {name: changed(value) for name, value in zip(columns, row[1:], strict=True)}
            if _text(new.values()) != _text(row[1:]):
                bind.execute(sa.update(rows).where(rows.c.id == row.id).values(new))


def _text(values: object) -> str:
    return json.dumps(list(values), sort_keys=True)  # type: ignore[call-overload]
