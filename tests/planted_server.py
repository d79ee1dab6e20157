"""`inf serve` with old leaks put back, each in one study: what the adversarial annotator must find.

    python tests/planted_server.py --port PORT

INF_TEST_LEAKS names the leak of each study: {"3": "seeded order"}. Never imported by the product.
"""

import json
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from sqlalchemy import func, select  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

from app.cli.main import main  # noqa: E402
from app.operations.judging import card  # noqa: E402
from db.assignment import leasing, progress  # noqa: E402
from db.assignment.eligibility import Chosen, chosen_items  # noqa: E402
from db.assignment.progress import OwnProgress  # noqa: E402
from db.assignment.shown_items import ShownItem, shuffled_labels  # noqa: E402
from db.shape import INF_IR  # noqa: E402
from db.store.store import open_store  # noqa: E402
from db.tables import Assignment, Item, StudyItem, StudyJudge  # noqa: E402

LEAKS = {int(study): leak for study, leak in json.loads(os.environ["INF_TEST_LEAKS"]).items()}
true_lease, true_item, true_json = leasing.lease, card.card_item, card.Card.as_json
true_choice, true_progress = leasing.choose_items, progress.own_progress
SHOWN = dict[str, ShownItem]()  # by token


def lease(
    session: Session, study_id: int, judge_id: int, chosen: Sequence[Chosen], until: datetime
) -> list[Assignment]:
    """Seeded order: by the item's id, the judge's and the query, as it once was; or the order in
    which a file has a record's passages."""
    leased = true_lease(session, study_id, judge_id, chosen, until)
    if LEAKS.get(study_id) == "seeded order":
        for assignment, one in zip(leased, chosen, strict=True):
            assignment.order_shown = shuffled_labels(one.item, judge_id)
        session.flush()
    if LEAKS.get(study_id) == "order of the file":
        for assignment, one in zip(leased, chosen, strict=True):
            assignment.order_shown = [each["label"] for each in one.item.candidates]
        session.flush()
    return leased


def card_item(shown: ShownItem, *given: Any, **more: Any) -> card.CardItem:
    """The item, and under which token it is: the row itself has no place for a leak."""
    SHOWN[shown.token] = shown
    return true_item(shown, *given, **more)


def as_json(sent: card.Card) -> dict[str, Any]:
    """Ids in the frame (the old payload), or a field whose size depends on the role."""
    found = true_json(sent)
    for one in (*found["items"], *(past["item"] for past in found["past"])):
        shown = SHOWN[one["token"]]
        leak = LEAKS.get(shown.study_id)
        if leak in ("seeded order", "ids in turn"):
            one["id"] = shown.item_id
        if leak in ("size of a card's item", "size"):
            with open_store().read() as session:
                scenario = session.get_one(Item, shown.item_id).scenario
            is_of_card = leak != "size"
            size = len(scenario.rstrip("_123")) if is_of_card else INF_IR.roles.index(scenario) + 10
            one["hint"] = "." * size
    return found


def choose(session: Session, member: StudyJudge, count: int, *, per_card: int = 1) -> list[Chosen]:
    """Gold after every tenth item."""
    if LEAKS.get(member.study_id) != "gold jump":
        return true_choice(session, member, count, per_card=per_card)
    given = _given(session, member.study_id, member.judge_id)
    due = given.get("main", 0) // 10 - given.get("gold", 0)
    gold = _free(session, member.study_id, "gold")[: max(0, min(due, count))]
    found = [*gold, *_free(session, member.study_id, "main")[: count - len(gold)]]
    return chosen_items(session, member.study_id, member.judge_id, found)


def own_progress(session: Session, study_id: int, judge_id: int) -> OwnProgress:
    """Gold is not counted before it is given."""
    found = true_progress(session, study_id, judge_id)
    if LEAKS.get(study_id) != "gold jump":
        return found
    leased = (
        select(func.count())
        .select_from(Assignment)
        .where(
            Assignment.study_id == study_id,
            Assignment.judge_id == judge_id,
            Assignment.state == "leased",
        )
    )
    left = len(_free(session, study_id, "main")) + (session.scalar(leased) or 0)
    return OwnProgress(found.done, found.skipped, left, found.seconds_per_item)


def _free(session: Session, study_id: int, part: str) -> list[int]:
    given = select(Assignment.item_id).where(Assignment.study_id == study_id)
    query = select(StudyItem.item_id).where(
        StudyItem.study_id == study_id, StudyItem.part == part, StudyItem.item_id.not_in(given)
    )
    return list(session.scalars(query.order_by(StudyItem.position)))


def _given(session: Session, study_id: int, judge_id: int) -> dict[str, int]:
    query = (
        select(StudyItem.part, func.count())
        .join(
            Assignment,
            (Assignment.study_id == StudyItem.study_id) & (Assignment.item_id == StudyItem.item_id),
        )
        .where(Assignment.study_id == study_id, Assignment.judge_id == judge_id)
        .group_by(StudyItem.part)
    )
    return dict(session.execute(query).all())


def serve(arguments: Sequence[str]) -> None:
    """Put the leaks back and serve."""
    leasing.lease = lease
    leasing.choose_items = choose
    card.card_item = card_item
    card.Card.as_json = as_json
    card.own_progress = own_progress
    main(["serve", *arguments])


if __name__ == "__main__":
    serve(sys.argv[1:])
