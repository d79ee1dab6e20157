"""Inserting items, so that their ids carry no scenario, and their order where one is needed.

The rows of a statement get their ids in an order from the system's random source: ids given in
turn would reveal by their remainder which of a group's scenarios an item is.
"""

import secrets
from collections.abc import Sequence

from sqlalchemy import ColumnElement, case
from sqlalchemy.orm import Session

from db.scenarios import ROLES
from db.store.bulk import Row, insert_for_ids
from db.tables import Item


def insert_items(session: Session, rows: Sequence[Row]) -> list[int]:
    """Insert items, at least all of one group at once; returns their ids in the order of the rows.

    Every row has to name the same columns. Does not commit.
    """
    order = list(range(len(rows)))
    secrets.SystemRandom().shuffle(order)
    inserted = insert_for_ids(session, Item, [rows[place] for place in order])
    ids = [0] * len(rows)
    for place, item_id in zip(order, inserted, strict=True):
        ids[place] = item_id
    return ids


def in_order_of_roles() -> tuple[ColumnElement[int], ...]:
    """What to order a group's items by: revision, then scenario. Ids are in a random order."""
    place = case({role: number for number, role in enumerate(ROLES)}, value=Item.scenario)
    return Item.revision.expression, place
