"""The audit log becomes the table of events, with the noun and its id in columns of their own"""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
AT = sa.DateTime(timezone=True)
NAMED = re.compile(r"(dataset|run|group|release|session|checkpoint|study) (\d+)")
NAMES = {"export": "release.created", "push": "release.pushed"}
# Names that do not begin with the noun.
NOUNS = {
    **dict.fromkeys(("sign-in", "sign-out", "member", "openid"), "account"),
    **dict.fromkeys(("import", "demo"), "dataset"),
    **dict.fromkeys(("backup", "restore", "upgrade", "copy"), "store"),
    **dict.fromkeys(("review", "coverage"), "group"),
}
BATCH = 1000


def _table(name, *columns):
    return sa.table(name, *(sa.column(each, kind) for each, kind in columns))


TEXT = sa.String()
AUDIT = (
    *(("id", sa.Integer()), ("actor", TEXT), ("action", TEXT), ("subject", TEXT)),
    *(("detail", JSON), ("created_at", AT)),
)
EVENT = (
    *(("id", sa.Integer()), ("actor", TEXT), ("name", TEXT), ("noun", TEXT), ("noun_id", TEXT)),
    *(("data", JSON), ("at", AT)),
)


def upgrade() -> None:
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("noun", sa.String(), nullable=False),
        sa.Column("noun_id", sa.String(), nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.Column("at", AT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    _move(_table("audit", *AUDIT), _table("event", *EVENT[1:]), _as_event)
    op.create_index("ix_event_at", "event", ["at"])
    op.create_index("ix_event_noun_noun_id", "event", ["noun", "noun_id"])
    op.drop_table("audit")


def downgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("detail", JSON, nullable=False),
        sa.Column("created_at", AT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    _move(_table("event", *EVENT), _table("audit", *AUDIT[1:]), _as_audit)
    op.create_index("ix_audit_created_at", "audit", ["created_at"])
    op.drop_table("event")


def _move(source, target, changed) -> None:
    connection, last = op.get_bind(), 0
    while rows := connection.execute(
        sa.select(source).where(source.c.id > last).order_by(source.c.id).limit(BATCH)
    ).all():
        connection.execute(sa.insert(target), [changed(row) for row in rows])
        last = rows[-1].id


def _as_event(row):
    first = row.action.partition(".")[0]
    named = NAMED.fullmatch(row.subject)
    return {
        "actor": row.actor,
        "name": NAMES.get(row.action, row.action),
        "noun": named[1] if named else NOUNS.get(first, first),
        "noun_id": named[2] if named else row.subject,
        "data": row.detail,
        "at": row.created_at,
    }


def _as_audit(row):
    before = {name: old for old, name in NAMES.items()}
    spoken = row.noun in ("dataset", "run", "group", "release", "session", "checkpoint")
    is_number = row.noun_id.isdecimal()
    return {
        "actor": row.actor,
        "action": before.get(row.name, row.name),
        "subject": f"{row.noun} {row.noun_id}" if spoken and is_number else row.noun_id,
        "detail": row.data,
        "created_at": row.at,
    }
