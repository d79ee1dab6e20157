"""Items as judges see them: texts only, in an order of the judge's own.

Note: the browser receives neither labels nor passage ids, so that it cannot reveal a role.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from db.corpus.texts import passage_texts
from db.tables import Assignment, Item


@dataclass(frozen=True)
class ShownItem:
    """An item as shown to a judge: texts only, candidates in this judge's own order."""

    study_id: int
    item_id: int
    instruction: str
    query: str
    candidates: tuple[str, ...]


def show(session: Session, assignment: Assignment) -> ShownItem:
    """The item of an assignment as its judge sees it: no labels, no passage ids."""
    item = session.get_one(Item, assignment.item_id)
    return show_item(session, assignment.study_id, item, assignment.order_shown)


def show_item(session: Session, study_id: int, item: Item, order_shown: Sequence[str]) -> ShownItem:
    """The item with its candidates in the given order of labels: texts only."""
    passage_ids = {entry["label"]: entry["passage_id"] for entry in item.candidates}
    texts = passage_texts(session, passage_ids.values())
    return ShownItem(
        study_id=study_id,
        item_id=item.id,
        instruction=item.instruction,
        query=item.query,
        candidates=tuple(texts[passage_ids[label]] for label in order_shown),
    )


def shuffled_labels(item: Item, judge_id: int) -> list[str]:
    """The candidates' labels in this judge's own order, the same at every call."""
    labels = [str(entry["label"]) for entry in item.candidates]
    seed = hashlib.sha256(f"{item.id} {judge_id} {item.query}".encode()).digest()
    random.Random(seed).shuffle(labels)
    return labels
