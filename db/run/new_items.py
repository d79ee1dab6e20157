"""Inserting items, so that their ids carry no scenario, and their order where one is needed.

The rows of a statement get their ids in an order from the system's random source: ids given in
turn would reveal by their remainder which of a group's scenarios an item is.
"""

import secrets
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, case
from sqlalchemy.orm import Session

from db.shape import INF_IR
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


def in_order_of_roles() -> tuple[ColumnElement[Any], ...]:
    """What to order a group's items by: revision, then scenario. Ids are in a random order.

    Scenarios come as in InF-IR, those that it has not after them by their names.
    """
    places = {role: number for number, role in enumerate(INF_IR.roles)}
    place = case(places, value=Item.scenario, else_=len(places))
    return Item.revision.expression, place, Item.scenario.expression
