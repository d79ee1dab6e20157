"""A study that a team is in the middle of: people with answers of days, written into the tables."""

import random
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session
from study_world import make_world, sampled_study

from db.assignment.members import add_member, set_share
from db.assignment.shown_items import random_order
from db.assignment.threads import write_as_judge
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.tables import Assignment, Item, Judgment, Study, StudyItem, utc_now

NAMES = (
    *("ada", "ben", "cem", "dora", "emil", "fay", "gus", "hana", "ivo", "jana"),
    *("kim", "lea", "max", "nora", "olaf", "pia", "quin", "rosa", "sam", "tea"),
)
DAYS = 14


def make_team(
    store: Store, *, people: int = 20, items: int = 2000, overlap: int = 3, done: float = 0.6
) -> int:
    """A study with `people` who answered that share of its places; the first answers at random.

    Every tenth item is gold. Returns the study's id.
    """
    run_id = make_world(store, items)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=items, overlap=overlap, name="team")
        answer_some(session, study, NAMES[:people], done)
        session.commit()
        return study.id


def answer_some(session: Session, study: Study, names: tuple[str, ...], done: float) -> None:
    """Write answers of the last days by these people to that share of the study's places."""
    dice = random.Random(1)
    judges = [get_or_create_judge(session, name, kind="person") for name in names]
    for place, judge in enumerate(judges):
        add_member(session, study.id, judge.id)
        if place % 4 == 1:
            day = (utc_now() + timedelta(days=place - 8)).date()
            set_share(session, study.id, judge.id, quota=400, due_on=day)
    rows = session.execute(
        select(StudyItem, Item)
        .join(Item, Item.id == StudyItem.item_id)
        .where(StudyItem.study_id == study.id)
        .order_by(StudyItem.position)
    ).all()
    begun = utc_now() - timedelta(days=DAYS)
    for number, (place, item) in enumerate(rows):
        if number % 10 == 9:
            place.part, place.gold_choice = "gold", item.expected
        if number >= done * len(rows):
            continue
        for judge in dice.sample(judges, study.overlap):
            at = begun + timedelta(days=DAYS) * (number / len(rows)) + timedelta(seconds=judge.id)
            seconds = dice.choice((0.8, 1.2)) if judge is judges[-1] else dice.uniform(5, 60)
            labels = [each["label"] for each in item.candidates]
            is_sure = judge is not judges[0] and dice.random() < 0.8
            choice = str(item.expected) if is_sure else dice.choice([*labels, "none"])
            of = {"study_id": study.id, "item_id": item.id, "judge_id": judge.id}
            order = random_order(item)
            session.add(
                Assignment(**of, state="done", order_shown=order, ended_at=at, created_at=at)
            )
            session.add(_judgment(of, choice, order, at, seconds, dice.random() < 0.02))
        place.taken = study.overlap
    session.flush()
    for judge in judges[2:4]:
        held = session.scalars(
            select(Assignment.item_id).where(Assignment.judge_id == judge.id).limit(1)
        ).one()
        text = "The instruction asks for two things: which counts?"
        write_as_judge(session, study.id, judge.id, held, text, event_id=f"asks {judge.id}")


def _judgment(
    of: dict[str, int], choice: str, order: list[str], at: datetime, seconds: float, flagged: bool
) -> Judgment:
    return Judgment(
        **of,
        event_id=f"{of['judge_id']}/{of['item_id']}",
        choice=choice,
        order_shown=order,
        shown_at=at - timedelta(seconds=seconds),
        decided_at=at,
        flagged=flagged,
        note="both answer it" if flagged else "",
    )
