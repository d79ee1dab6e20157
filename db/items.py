"""Items by themselves: which group and scenario each belongs to."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.tables import Item, StudyItem


class ItemPlace(NamedTuple):
    """Where an item comes from."""

    group_id: int
    scenario: str
    instruction: str
    query: str


def study_item_places(session: Session, study_id: int) -> dict[int, ItemPlace]:
    """The items of a study: their group, scenario, instruction and query."""
    rows = session.execute(
        select(Item.id, Item.group_id, Item.scenario, Item.instruction, Item.query)
        .join(StudyItem, StudyItem.item_id == Item.id)
        .where(StudyItem.study_id == study_id)
    )
    return {
        item_id: ItemPlace(group_id, scenario, instruction, query)
        for item_id, group_id, scenario, instruction, query in rows
    }


def places_of(places: dict[int, ItemPlace], scenarios: Sequence[str]) -> set[int]:
    """The items of these scenarios."""
    return {item_id for item_id, place in places.items() if place.scenario in scenarios}
