"""What is left for a judge, counted the quick way and the plain way, in worlds made by chance."""

import random

import pytest
from leases import next_item
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from study_world import make_world, sampled_study

from db.assignment import members
from db.assignment.eligibility import eligible_items
from db.assignment.known_items import known_items
from db.assignment.progress import own_progress
from db.store.store import Store
from db.study.judgments import ADJUDICATOR, get_or_create_judge, record_judgment
from db.tables import (
    AdjudicationView,
    Assignment,
    Example,
    Group,
    Item,
    Judge,
    OpenedGroup,
    Review,
    Study,
    StudyItem,
)

ORDER = ["positive", "instruction_negative", "query_negative", "distractor_1", "distractor_2"]
PEOPLE = ("ann", "ben")
GROUPS = 14


def count_eligible(session: Session, study_id: int, judge_id: int) -> int:
    """How many more items the judge can be given, as their progress counts them."""
    leased = known_items(session, study_id, judge_id).in_state("leased")
    return own_progress(session, study_id, judge_id).left - leased


def plain_count(session: Session, study_id: int, judge_id: int) -> int:
    """The rule in words: each pair with a free item that the judge knows nothing of."""
    name = session.get_one(Judge, judge_id).name
    pair_of = dict(
        session.execute(select(Item.id, Group.pair_id).join(Group, Group.id == Item.group_id)).all()
    )
    pair_of_group = dict(session.execute(select(Group.id, Group.pair_id)).all())
    parts = {
        row.item_id: row
        for row in session.scalars(select(StudyItem).where(StudyItem.study_id == study_id))
    }
    known = {
        pair_of[one.item_id]
        for one in session.scalars(select(Assignment).where(Assignment.judge_id == judge_id))
        if one.study_id != study_id or one.state != "expired"
    }
    known |= {
        pair_of[one.item_id]
        for one in session.scalars(select(Example).where(Example.judge_id == judge_id))
    }
    known |= {
        pair_of_group[one.group_id]
        for one in session.scalars(select(Review))
        if one.reviewed_by == name
    }
    known |= {
        pair_of_group[one.group_id]
        for one in session.scalars(select(OpenedGroup))
        if one.opened_by == name
    }
    known |= {
        pair_of[one.item_id]
        for one in session.scalars(select(AdjudicationView))
        if one.seen_by == name
    }
    free = {
        item_id
        for item_id, row in parts.items()
        if row.part != "training" and (row.places is None or row.taken < row.places)
    }
    return len({pair_of[item_id] for item_id in free} - known)


def change_something(session: Session, chance: random.Random, studies: list[Study]) -> None:
    """One thing that a person may come to know, or a place that is taken or freed."""
    study = chance.choice(studies)
    judge = session.scalars(select(Judge).where(Judge.name == chance.choice(PEOPLE))).one()
    row = chance.choice(
        session.scalars(select(StudyItem).where(StudyItem.study_id == study.id)).all()
    )
    group_id = chance.choice(session.scalars(select(Group.id)).all())
    kind = chance.choice(("lease", "lease", "end", "place", "example", "review", "open", "view"))
    mine = session.scalar(
        select(Assignment).where(
            Assignment.study_id == study.id,
            Assignment.judge_id == judge.id,
            Assignment.item_id == row.item_id,
        )
    )
    if kind == "lease" and mine is None:
        session.add(
            Assignment(study_id=study.id, item_id=row.item_id, judge_id=judge.id, order_shown=ORDER)
        )
    elif kind == "end" and mine is not None:
        mine.state = chance.choice(("done", "expired", "skipped", "aside"))
    elif kind == "place" and row.places is not None:
        row.taken = chance.randint(0, row.places)
    elif kind == "example":
        number = chance.randrange(10**6)
        session.add(
            Example(
                study_id=study.id,
                item_id=row.item_id,
                judge_id=judge.id,
                round=number,
                order_shown=ORDER,
            )
        )
    elif kind == "review":
        session.add(
            Review(group_id=group_id, reviewed_by=judge.name, action="approve", is_current=False)
        )
    elif kind == "open":
        session.add(OpenedGroup(group_id=group_id, opened_by=judge.name, place="groups"))
    elif kind == "view":
        session.add(
            AdjudicationView(
                study_id=study.id, item_id=row.item_id, seen_by=judge.name, order_shown=ORDER
            )
        )
    session.flush()


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_the_quick_count_is_the_plain_one_whatever_happens(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    run_id = make_world(store, GROUPS)
    with store.write() as session:
        ids = list(session.scalars(select(Item.id)))
        studies = [
            sampled_study(session, run_id=run_id, items=GROUPS - 2, overlap=2, seed=number)
            for number in (1, 2)
        ]
        for study in studies:
            there = {
                row.item_id
                for row in session.scalars(select(StudyItem).where(StudyItem.study_id == study.id))
            }
            free = [each for each in ids if each not in there]
            for item_id in chance.sample(free, 3):  # of pairs of the study, as from a file
                session.add(
                    StudyItem(
                        study_id=study.id, item_id=item_id, part="gold", gold_choice="positive"
                    )
                )
        judges = [get_or_create_judge(session, name, kind="person").id for name in PEOPLE]
        for study in studies:
            for judge_id in judges:
                members.add_member(session, study.id, judge_id)
        session.flush()
        counts = set()
        for _ in range(60):
            try:
                with session.begin_nested():
                    change_something(session, chance, studies)
            except IntegrityError as error:  # they know it already
                assert "UNIQUE" in str(error).upper()
            for study in studies:
                for judge_id in judges:
                    found = count_eligible(session, study.id, judge_id)
                    assert found == plain_count(session, study.id, judge_id)
                    counts.add(found)
        assert len(counts) > 5


def test_an_item_decided_in_adjudication_is_not_left(store: Store) -> None:
    run_id = make_world(store, 4)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=3, overlap=2)
        ann = get_or_create_judge(session, "ann", kind="person").id
        assert count_eligible(session, study.id, ann) == 3
        item_id = session.scalars(
            select(StudyItem.item_id).where(StudyItem.study_id == study.id)
        ).first()
        assert item_id is not None
        other = get_or_create_judge(session, ADJUDICATOR + "ann", kind="adjudicator").id
        record_judgment(
            session,
            judge_id=other,
            item_id=item_id,
            choice="positive",
            order_shown=ORDER,
            event_id="decision",
            study_id=study.id,
        )
        assert count_eligible(session, study.id, ann) == 2


def test_the_count_is_the_number_of_pairs_that_can_be_leased(store: Store) -> None:
    run_id = make_world(store, 6)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=5, overlap=1)
        ann = get_or_create_judge(session, "ann", kind="person").id
        ids = list(session.scalars(select(StudyItem.item_id)))
        assert count_eligible(session, study.id, ann) == 5
        for item_id in ids[:2]:
            row = session.get_one(StudyItem, (study.id, item_id))
            row.taken = row.places or 0
        session.flush()
        assert count_eligible(session, study.id, ann) == 3
        assert len(eligible_items(session, study.id, ann, ids)) == 3


@pytest.mark.parametrize(("apart", "given"), [(1, 0), (0, 1)], ids=["two cards", "one card"])
def test_of_a_pair_a_judge_is_given_the_items_of_one_card(
    store: Store, apart: int, given: int
) -> None:
    run_id = make_world(store, GROUPS)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=GROUPS - 2, overlap=2, seed=1)
        ann = get_or_create_judge(session, "ann", kind="person").id
        members.add_member(session, study.id, ann)
        shown = next_item(session, study.id, ann)
        assert shown is not None
        there = session.scalars(select(StudyItem).where(StudyItem.item_id == shown.item_id)).one()
        group_id = session.get_one(Item, there.item_id).group_id
        other = session.scalars(
            select(Item.id).where(Item.group_id == group_id, Item.id != there.item_id)
        ).first()
        assert other is not None
        position = there.position + 1000 * apart
        session.add(StudyItem(study_id=study.id, item_id=other, position=position, places=2))
        session.flush()
        assert len(eligible_items(session, study.id, ann, [other])) == given
