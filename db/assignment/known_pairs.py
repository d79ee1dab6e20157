"""What a person knows of a pair already: conditions for the queries of hiding and of leasing.

By pair: the groups of a pair, of one run or several, share texts.
"""

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import InstrumentedAttribute, aliased

from db.tables import AdjudicationView, Group, Item, OpenedGroup, Review

Id = InstrumentedAttribute[int]
Person = str | ColumnElement[str]


def reviewed_pair(pair_id: Id, person: Person) -> ColumnElement[bool]:
    """Whether the person reviewed a group of the outer query's pair."""
    sibling = aliased(Group)
    return exists(
        select(Review.id)
        .join(sibling, sibling.id == Review.group_id)
        .where(sibling.pair_id == pair_id, Review.reviewed_by == person)
    )


def opened_pair(pair_id: Id, person: Person) -> ColumnElement[bool]:
    """Whether the person opened a group of the outer query's pair."""
    sibling = aliased(Group)
    return exists(
        select(OpenedGroup.id)
        .join(sibling, sibling.id == OpenedGroup.group_id)
        .where(sibling.pair_id == pair_id, OpenedGroup.opened_by == person)
    )


def saw_choices(pair_id: Id, person: Person) -> ColumnElement[bool]:
    """Whether the person saw others' choices on an item of the outer query's pair, in adjudication.

    Of a card with several questions, too: the grades of others tell which passage they would pick.
    """
    item, sibling = aliased(Item), aliased(Group)
    return exists(
        select(AdjudicationView.id)
        .join(item, item.id == AdjudicationView.item_id)
        .join(sibling, sibling.id == item.group_id)
        .where(sibling.pair_id == pair_id, AdjudicationView.seen_by == person)
    )
