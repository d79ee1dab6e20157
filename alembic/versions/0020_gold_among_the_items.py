"""Hidden gold gets places and a random position among the items of its study"""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

INDEX = "ix_study_item_study_id_position"
ITEMS = sa.table(
    "study_item",
    *(sa.column(name) for name in ("study_id", "item_id", "part", "position", "places", "taken")),
)
STUDIES = sa.table("study", sa.column("id"), sa.column("overlap"))
MEMBERS = sa.table("study_judge", sa.column("study_id"), sa.column("furthest"))


def upgrade() -> None:
    op.add_column(
        "study_judge", sa.Column("scored_after", sa.Integer(), server_default="0", nullable=False)
    )
    op.drop_column("study_judge", "next_gold")
    op.create_index(INDEX, "study_item", ["study_id", "position"])
    store = op.get_bind()
    of_gold = sa.select(ITEMS.c.study_id).where(ITEMS.c.part == "gold").distinct()
    for study_id in store.scalars(of_gold).all():
        _hide(store, study_id)


def _hide(store: sa.Connection, study_id: int) -> None:
    """Places as the other items of the study have, and a random position after all that were reached.

    A gold item that got more judgments than that is full, and so is all gold of a study of which
    every item has been reached: it would come last and stand out.
    """
    overlap = store.scalar(sa.select(STUDIES.c.overlap).where(STUDIES.c.id == study_id)) or 1
    reached = store.scalar(
        sa.select(sa.func.max(MEMBERS.c.furthest)).where(MEMBERS.c.study_id == study_id)
    )
    of_study = sa.select(ITEMS.c.item_id, ITEMS.c.position).where(ITEMS.c.study_id == study_id)
    main = of_study.where(ITEMS.c.part == "main").order_by(ITEMS.c.position)
    ahead = store.execute(main.where(ITEMS.c.position > (-1 if reached is None else reached))).all()
    gold = store.execute(
        sa.select(ITEMS.c.item_id, ITEMS.c.taken)
        .where(ITEMS.c.study_id == study_id, ITEMS.c.part == "gold")
        .order_by(ITEMS.c.item_id)
    ).all()
    last = store.scalar(
        sa.select(sa.func.max(ITEMS.c.position)).where(ITEMS.c.study_id == study_id)
    )
    positions = [row.position for row in ahead]
    order = [row.item_id for row in ahead]
    for number, row in enumerate(gold):
        place = max(overlap, row.taken) if ahead else row.taken
        _set(store, study_id, row.item_id, places=place)
        if ahead:
            order.insert(secrets.randbelow(len(order) + 1), row.item_id)
            positions.append((last or 0) + 1 + number)
    for item_id, position in zip(order, positions, strict=True):
        _set(store, study_id, item_id, position=position)


def _set(store: sa.Connection, study_id: int, item_id: int, **values: int) -> None:
    store.execute(
        sa.update(ITEMS)
        .where(ITEMS.c.study_id == study_id, ITEMS.c.item_id == item_id)
        .values(**values)
    )


def downgrade() -> None:
    op.execute(sa.update(ITEMS).where(ITEMS.c.part == "gold").values(places=None))
    op.drop_index(INDEX, "study_item")
    op.add_column("study_judge", sa.Column("next_gold", sa.Integer()))
    op.drop_column("study_judge", "scored_after")
