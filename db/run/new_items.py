"""Inserting items, so that their ids carry no scenario; their order, and the picks of them.

The rows of a statement get their ids in an order from the system's random source: ids given in
turn would reveal by their remainder which of a group's scenarios an item is.
"""

import secrets
from collections.abc import Iterable, Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, case, select
from sqlalchemy.orm import Session

from db.question import PICK, Kind, Question
from db.shape import Shape
from db.store.bulk import Row, insert_for_ids
from db.tables import Item
from db.tables import Question as QuestionRow


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


def in_order_of_roles(shape: Shape) -> tuple[ColumnElement[Any], ...]:
    """What to order a group's items by: revision, then scenario. Ids are in a random order."""
    places = {role: number for number, role in enumerate(shape.roles)}
    place = case(places, value=Item.scenario, else_=len(places))
    return Item.revision.expression, place, Item.scenario.expression


def store_questions(session: Session, questions: Iterable[Question]) -> dict[str, int]:
    """The ids of these questions by their keys; what is new is stored. Does not commit.

    A run's start stores its own: workers that begin at once would race to.
    """
    wanted = {each.key: each for each in questions}
    query = select(QuestionRow.key, QuestionRow.id)
    found = dict(session.execute(query.where(QuestionRow.key.in_(wanted))).all())
    for key in wanted.keys() - found.keys():
        row = QuestionRow(key=key, **wanted[key].body())
        session.add(row)
        session.flush()
        found[key] = row.id
    return found


def question_of(session: Session, item: Item) -> Question:
    """The question that an item asks: the pick of a passage, or its own."""
    if item.question_id is None:
        return PICK
    row = session.get_one(QuestionRow, item.question_id)
    return question_in(row)


def questions_of(session: Session, items: Iterable[Item]) -> dict[int | None, Question]:
    """The questions that these items ask by their ids, the pick's is None; with one query at
    most."""
    ids = {item.question_id for item in items} - {None}
    rows = session.scalars(select(QuestionRow).where(QuestionRow.id.in_(ids))) if ids else ()
    return {None: PICK} | {row.id: question_in(row) for row in rows}


def question_in(row: QuestionRow) -> Question:
    """The question of a row."""
    return Question(row.name, cast(Kind, row.kind), row.labels, row.prompt_sha256, row.text)


def is_pick() -> ColumnElement[bool]:
    """A condition on a query's items: they ask which passage answers, not another question."""
    return Item.question_id.is_(None)
