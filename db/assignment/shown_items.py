"""Items as judges see them: texts only, in an order of the judge's own, under a random token.

A card is the items of one group that a judge holds in a study. They share the order of their
passages, and come in the order of the study's questions, those about passages as these are shown.

Note: the browser of a person receives neither labels nor ids, and an order from the system's random
source: an order seeded by anything that the browser knows would reveal the roles. The order that a
program gets is seeded, so that its answers can be reproduced; it never reaches a person.
"""

import hashlib
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.corpus.texts import passage_texts
from db.question import Question, about_shown
from db.run.new_items import question_of, questions_of
from db.tables import Assignment, Example, Item, ProgramLease, Study


@dataclass(frozen=True)
class ShownItem:
    """An item as shown to a judge: texts only, candidates in this judge's own order.

    Ids are for the server: a browser gets `token`, which names the item to this judge alone.
    `about`: the place of the passage that it asks about, or "query" or "instruction"; None for
    everything on the card.
    """

    study_id: int
    item_id: int
    token: str
    instruction: str
    query: str
    candidates: tuple[str, ...]
    group_id: int
    question: Question
    about: int | str | None


def show(session: Session, one: Assignment | Example) -> ShownItem:
    """The item of an assignment or example as its judge sees it: no labels, no passage ids."""
    item = session.get_one(Item, one.item_id)
    return show_item(session, one.study_id, item, one.token, one.order_shown)


def show_all(session: Session, assignments: Sequence[Assignment | ProgramLease]) -> list[ShownItem]:
    """The items of assignments or leases as their judges see them, with three queries for all,
    card by card."""
    ids = [one.item_id for one in assignments]
    items = {item.id: item for item in session.scalars(select(Item).where(Item.id.in_(ids)))}
    passages = {entry["passage_id"] for item in items.values() for entry in item.candidates}
    texts = passage_texts(session, passages)
    questions = questions_of(session, items.values())
    found = []
    for one in assignments:
        item = items[one.item_id]
        question = questions[item.question_id]
        found.append(_shown(one.study_id, item, question, one.token, one.order_shown, texts))
    return found if len(found) < 2 else _by_card(session, found)


def _by_card(session: Session, shown: list[ShownItem]) -> list[ShownItem]:
    """The items of each card one after another, the card held longest first."""
    names = session.get_one(Study, shown[0].study_id).settings.get("questions")
    if not names:
        return shown
    places: dict[int, int] = {}
    for one in shown:
        places.setdefault(one.group_id, len(places))

    return sorted(
        shown, key=lambda one: (places[one.group_id], place_in_card(names, one.question, one.about))
    )


def place_in_card(
    names: Sequence[str], question: Question, about: int | str | None
) -> tuple[int, int]:
    """Where a question about a text stands in a card that asks the questions of these names."""
    place = names.index(question.name) if question.name in names else -1
    return place, about if isinstance(about, int) else -1


def show_item(
    session: Session, study_id: int, item: Item, token: str, order_shown: Sequence[str]
) -> ShownItem:
    """The item with its candidates in the given order of labels: texts only."""
    texts = passage_texts(session, [entry["passage_id"] for entry in item.candidates])
    return _shown(study_id, item, question_of(session, item), token, order_shown, texts)


def _shown(
    study_id: int,
    item: Item,
    question: Question,
    token: str,
    order_shown: Sequence[str],
    texts: Mapping[int, str],
) -> ShownItem:
    passage_ids = {entry["label"]: entry["passage_id"] for entry in item.candidates}
    return ShownItem(
        study_id=study_id,
        item_id=item.id,
        token=token,
        instruction=item.instruction,
        query=item.query,
        candidates=tuple(texts[passage_ids[label]] for label in order_shown),
        group_id=item.group_id,
        question=question,
        about=about_shown(item.scenario, order_shown),
    )


def random_order(item: Item) -> list[str]:
    """The candidates' labels in an order that nobody can compute; store it."""
    labels = [str(entry["label"]) for entry in item.candidates]
    secrets.SystemRandom().shuffle(labels)
    return labels


def shuffled_labels(item: Item, judge_id: int) -> list[str]:
    """The candidates' labels in a program's own order, the same at every call. Not for people."""
    labels = [str(entry["label"]) for entry in item.candidates]
    seed = hashlib.sha256(f"{item.id} {judge_id} {item.query}".encode()).digest()
    random.Random(seed).shuffle(labels)
    return labels
