"""A group's texts, one row each, replace its triplets, which hold most texts twice or more

Which slot a triplet's text belongs to is a matter of its run's shape: the shapes of the store's
recipes are read, one statement moves all texts of a slot.
"""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

# (sign, field), then (role, instruction, query, passage): the shape of recipes that name none
INF_IR = (
    [
        *(("Q+", "query"), ("I+", "instruction"), ("P+", "passage"), ("Q-", "query")),
        *(("I-", "instruction"), ("P1-", "passage"), ("P2-", "passage")),
    ],
    [
        ("positive", "I+", "Q+", "P+"),
        ("instruction_negative", "I-", "Q+", "P1-"),
        ("query_negative", "I+", "Q-", "P2-"),
    ],
)
OF_RUNS = "g.run_id IN (SELECT id FROM run WHERE recipe_id IN ({recipes}))"


def upgrade() -> None:
    op.create_table(
        "group_text",
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("slot", sa.String(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("text", sa.String()),
        sa.Column("passage_id", sa.Integer()),
        sa.CheckConstraint(
            "(text IS NULL) <> (passage_id IS NULL)", name=op.f("ck_group_text_text_or_passage")
        ),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["group.id"],
            name=op.f("fk_group_text_group_id_group"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["passage_id"], ["passage.id"], name=op.f("fk_group_text_passage_id_passage")
        ),
        sa.PrimaryKeyConstraint("group_id", "slot", "ordinal", name=op.f("pk_group_text")),
        sqlite_with_rowid=False,
    )
    for (texts, scenarios), recipes in _shapes():
        places = {"instruction": 1, "query": 2, "passage": 3}
        slots = []
        for sign, field in texts:
            role = next(each[0] for each in scenarios if each[places[field]] == sign)
            slots.append(f"SELECT {_quoted(sign)} AS slot, '{field}' AS field, '{role}' AS role")
        op.execute(
            "INSERT INTO group_text (group_id, slot, ordinal, text, passage_id) "
            "SELECT t.group_id, s.slot, 0, CASE s.field WHEN 'instruction' THEN t.instruction "
            "WHEN 'query' THEN t.query END, CASE s.field WHEN 'passage' THEN t.passage_id END "
            f"FROM triplet t JOIN ({' UNION ALL '.join(slots)}) AS s ON s.role = t.role "
            f'JOIN "group" g ON g.id = t.group_id WHERE {OF_RUNS.format(recipes=recipes)} '
            "ORDER BY t.group_id"
        )
    op.create_index("ix_group_text_passage_id", "group_text", ["passage_id"])
    op.drop_table("triplet")


def downgrade() -> None:
    several = op.get_bind().execute(
        sa.text("SELECT slot FROM group_text WHERE ordinal > 0 LIMIT 1")
    )
    if (slot := several.scalar()) is not None:
        raise ValueError(
            f"a group has several texts in {slot!r}, which the version before cannot hold: delete "
            "the runs whose recipes declare such slots, or put the copy of the upgrade back"
        )
    op.create_table(
        "triplet",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("instruction", sa.String(), nullable=False),
        sa.Column("query", sa.String(), nullable=False),
        sa.Column("passage_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["group.id"], name=op.f("fk_triplet_group_id_group"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["passage_id"], ["passage.id"], name=op.f("fk_triplet_passage_id_passage")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_triplet")),
        sa.UniqueConstraint("group_id", "role", name=op.f("uq_triplet_group_id_role")),
    )
    for (_, scenarios), recipes in _shapes():
        for role, *signs in scenarios:
            i, q, p = map(_quoted, signs)
            op.execute(
                "INSERT INTO triplet (group_id, role, instruction, query, passage_id) "
                f"SELECT i.group_id, '{role}', i.text, q.text, p.passage_id FROM group_text i "
                f"JOIN group_text q ON q.group_id = i.group_id AND q.slot = {q} "
                f"JOIN group_text p ON p.group_id = i.group_id AND p.slot = {p} "
                f'JOIN "group" g ON g.id = i.group_id WHERE i.slot = {i} AND '
                f"{OF_RUNS.format(recipes=recipes)} ORDER BY i.group_id"
            )
    op.create_index("ix_triplet_passage_id", "triplet", ["passage_id"])
    op.drop_table("group_text")


def _shapes() -> Iterator[tuple[tuple[list[tuple], list[tuple]], str]]:
    """Every shape of the store's recipes, with the ids of the recipes that have it."""
    recipe = sa.table("recipe", sa.column("id", sa.Integer), sa.column("body", sa.JSON))
    found: dict[str, tuple[tuple[list[tuple], list[tuple]], list[int]]] = {}
    for recipe_id, body in op.get_bind().execute(sa.select(recipe.c.id, recipe.c.body)):
        shape = INF_IR
        if named := body.get("shape"):
            names = ("role", "instruction", "query", "passage")
            shape = (
                [(each["sign"], each["field"]) for each in named["texts"]],
                [tuple(each[name] for name in names) for each in named["scenarios"]],
            )
        found.setdefault(repr(shape), (shape, []))[1].append(recipe_id)
    for shape, ids in found.values():
        yield shape, ", ".join(map(str, ids))


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
