"""Gold items of a study, whose right answer is known: shown with feedback before it (part
`training`: the qualification), or hidden among its items (part `gold`).

Note: sampled ones come from groups that a person approved in a review: the passage written for the
scenario is the right answer there. None of them is a group of the study's own items. A hidden gold
item is one of the study's items in all that a judge can notice: it has a random place among them
and as many judgments, leases and expiry; only its answers are scored.
"""

import random
import secrets

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.corpus.texts import texts_of
from db.errors import BadInput
from db.rows import Row
from db.run.runs import shape_of, shapes_of_groups
from db.study.studies import get_study, judged_groups
from db.tables import Item, Review, Study, StudyItem, StudyJudge
from db.values import NONE

PARTS = ("training", "gold")
EXCERPT = 120


class GoldItem(Row):
    """A qualification or hidden gold item with its right answer."""

    part: str
    item_id: int
    group_id: int
    instruction: str
    right: str
    explanation: str


def list_gold_items(session: Session, study_id: int) -> list[GoldItem]:
    """The study's qualification and hidden gold items."""
    rows = session.execute(
        select(
            StudyItem.part,
            StudyItem.item_id,
            Item.group_id,
            Item.instruction,
            func.coalesce(StudyItem.gold_choice, "").label("right"),
            StudyItem.explanation,
        )
        .join(Item, Item.id == StudyItem.item_id)
        .where(StudyItem.study_id == study_id, StudyItem.part.in_(PARTS))
        .order_by(StudyItem.part.desc(), StudyItem.item_id)
    )
    return [GoldItem.model_validate(row) for row in rows]


def sample_gold_items(session: Session, study_id: int, part: str, count: int) -> list[int]:
    """Add `count` items of approved groups to a part, sampled by the study's seed.

    Raises BadInput if there are too few approved groups. Does not commit.
    """
    _require_part(part)
    study = get_study(session, study_id)
    if study.run_id is None:
        raise BadInput(
            f"study {study_id} has no run to sample from",
            "name the items in a file",
            code="study_without_run",
        )
    groups = _approved_groups(session, study_id, study.run_id)
    if len(groups) < count:
        raise BadInput(
            f"{count} {part} items need as many approved groups that are not in the study: "
            f"run {study.run_id} has {len(groups)}",
            "approve more in a review, or request fewer",
            code="approved_groups_too_few",
        )
    chance = random.Random(f"{study.seed} {part}")
    order = sorted(groups)
    chance.shuffle(order)
    sampled, roles = [], shape_of(session, study.run_id).roles
    for number, group_id in enumerate(order[:count]):
        wanted: str = roles[number % len(roles)]
        scenario = wanted if wanted in groups[group_id] else min(groups[group_id])
        item_id = groups[group_id][scenario]
        right = session.get_one(Item, item_id).expected or NONE
        add_gold_item(session, study_id, item_id, part, right, explain(session, group_id, scenario))
        sampled.append(item_id)
    return sampled


def count_approved(session: Session, study_id: int) -> int:
    """How many approved groups of the study's run it does not use yet."""
    run_id = get_study(session, study_id).run_id
    return 0 if run_id is None else len(_approved_groups(session, study_id, run_id))


def _approved_groups(session: Session, study_id: int, run_id: int) -> dict[int, dict[str, int]]:
    """The items by scenario of the run's approved groups that the study does not use."""
    used = set(
        session.scalars(
            select(Item.group_id)
            .join(StudyItem, StudyItem.item_id == Item.id)
            .where(StudyItem.study_id == study_id)
        )
    )
    approved = set(
        session.scalars(
            select(Review.group_id).where(Review.is_current, Review.action == "approve")
        )
    )
    return {
        group_id: items
        for group_id, items in judged_groups(session, run_id).items()
        if group_id in approved and group_id not in used
    }


def explain(session: Session, group_id: int, scenario: str) -> str:
    """Why the scenario's passage is right, from the group's own texts."""
    stored = texts_of(session, [group_id])[group_id]
    texts = {
        each.role: tuple(stored[sign] for sign in each.signs)
        for each in shapes_of_groups(session, [group_id])[group_id].complete(stored)
    }
    if scenario not in texts:
        return "A reviewer approved the group of this item."
    instruction, query, passage = texts[scenario]
    clauses = []
    for role, other in texts.items():
        if role == scenario:
            continue
        unlike = [
            f"the {name} “{_excerpt(theirs)}”"
            for name, theirs, ours in (
                ("instruction", other[0], instruction),
                ("query", other[1], query),
            )
            if theirs != ours
        ]
        if unlike:
            clauses.append(f"“{_excerpt(other[2])}” is for {' and '.join(unlike)}.")
    right = f"“{_excerpt(passage)}” answers “{_excerpt(query)}” as “{_excerpt(instruction)}” asks."
    return " ".join([right, *clauses, "A reviewer approved the group."])


def _excerpt(text: str) -> str:
    return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1].rstrip()}…"


def add_gold_item(
    session: Session, study_id: int, item_id: int, part: str, choice: str, explanation: str
) -> None:
    """Add an item to the qualification or gold part, with its right answer and an explanation.

    Raises BadInput if the answer is not one of its candidates or the item is one that the study
    judges. Does not commit.
    """
    _require_part(part)
    study = get_study(session, study_id)
    session.refresh(study, with_for_update={"key_share": True})  # nobody is given items meanwhile
    item = session.get(Item, item_id)
    if item is None:
        raise BadInput(
            f"no item {item_id}",
            "take items from `studies template N out=FILE`",
            code="item_unknown",
        )
    if choice not in (NONE, *(candidate["label"] for candidate in item.candidates)):
        raise BadInput(
            f"{choice!r} is not a candidate of item {item_id}",
            "name a candidate that its row lists",
            code="choice_not_candidate",
        )
    row = session.get(StudyItem, (study_id, item_id))
    if row is not None and row.part == "main":
        raise BadInput(
            f"item {item_id} is judged in study {study_id}: it cannot be a gold item",
            "take an item of a group that the study does not use",
            code="gold_item_in_study",
        )
    if row is None or row.part != part:
        row = row or StudyItem(study_id=study_id, item_id=item_id)
        row.part, row.position = part, _next_position(session, study_id)
        if part == "gold":
            _hide(session, study, row)
        session.add(row)
    row.gold_choice, row.explanation = choice, explanation
    session.flush()


def _next_position(session: Session, study_id: int) -> int:
    last = session.scalar(
        select(func.max(StudyItem.position)).where(StudyItem.study_id == study_id)
    )
    return 0 if last is None else last + 1


def _hide(session: Session, study: Study, row: StudyItem) -> None:
    """Give a gold item, which comes last, the place of a random item that no judge has reached.

    One step of a shuffle: whether it changes places with another or stays last, each place is as
    likely. It is judged as often as the others. Raises BadInput if every item was reached.
    """
    reached = session.scalar(
        select(func.max(StudyJudge.furthest)).where(StudyJudge.study_id == study.id)
    )
    ahead = select(StudyItem).where(
        StudyItem.study_id == study.id,
        StudyItem.part != "training",
        StudyItem.position > (-1 if reached is None else reached),
    )
    count = session.scalar(select(func.count()).select_from(ahead.subquery())) or 0
    if not count:
        raise BadInput(
            f"all items of study {study.id} have been given to a judge: a gold item would come "
            "last and stand out",
            "add items to the study first",
            code="study_all_items_given",
        )
    place = secrets.randbelow(count + 1)
    if place < count:
        other = session.scalars(ahead.order_by(StudyItem.position).offset(place).limit(1)).one()
        row.position, other.position = other.position, row.position
    row.places = study.overlap


def _require_part(part: str) -> None:
    if part not in PARTS:
        raise BadInput(f"{part!r} is neither training nor gold", code="gold_part_unknown")
