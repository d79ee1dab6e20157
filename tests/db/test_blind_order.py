"""What names and orders an item for a judge says nothing about its scenario."""

import random
from collections import Counter

from sqlalchemy import inspect, select, text
from study_world import LABELS, make_world, sampled_study

from db.assignment import leasing
from db.run.new_items import insert_items
from db.scenarios import ROLES
from db.store import schema
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.tables import Assignment, Group, Item, StudyItem, utc_now


def lease_all(store: Store, items: int) -> list[Assignment]:
    run_id = make_world(store, items)
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=items, overlap=1).id
        judge_id = get_or_create_judge(session, "ann", kind="person").id
        leasing.lease_items(session, study_id, judge_id, items)
        session.commit()
    with store.read() as session:
        return list(session.scalars(select(Assignment).order_by(Assignment.id)))


def test_an_order_is_random_however_the_program_is_seeded(sqlite_store: Store) -> None:
    random.seed(0)
    orders = [tuple(one.order_shown) for one in lease_all(sqlite_store, 40)]
    assert len(set(orders)) > 10
    places = Counter(order.index("positive") for order in orders)
    assert len(places) == len(LABELS) and max(places.values()) < 25


def test_a_token_names_one_assignment_and_no_other(sqlite_store: Store) -> None:
    tokens = {one.token for one in lease_all(sqlite_store, 10)}
    assert len(tokens) == 10 and all(len(token) == 32 for token in tokens)


def test_the_order_of_a_study_is_not_that_of_its_sample(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 40)
    with sqlite_store.write() as session:
        same = [
            sampled_study(session, run_id=run_id, items=40, overlap=1, seed=7, name=name).id
            for name in ("one", "two")
        ]
        session.commit()
        query = select(StudyItem.item_id).order_by(StudyItem.position)
        first, second = (
            list(session.scalars(query.where(StudyItem.study_id == each))) for each in same
        )
    assert sorted(first) == sorted(second) and first != second


def test_item_ids_carry_no_scenario(sqlite_store: Store) -> None:
    make_world(sqlite_store, 1)
    with sqlite_store.write() as session:
        first = session.scalars(select(Group)).one()
        found: Counter[tuple[int, str]] = Counter()
        for revision in range(2, 302):
            rows = [
                {
                    "group_id": first.id,
                    "scenario": role,
                    "revision": revision,
                    "instruction": "i",
                    "query": "q",
                    "candidates": [],
                    "created_at": utc_now(),
                }
                for role in ROLES
            ]
            for item_id, role in zip(insert_items(session, rows), ROLES, strict=True):
                assert session.get_one(Item, item_id).scenario == role
                found[item_id % 3, role] += 1
    assert len(found) == 9 and all(60 < number < 140 for number in found.values()), found


def test_assignments_made_before_keep_their_order_and_get_a_token(store: Store) -> None:
    before = {one.id: one.order_shown for one in lease_all(store, 6)}
    schema.downgrade(store, "0005")
    assert "token" not in {each["name"] for each in inspect(store.engine).get_columns("assignment")}
    schema.upgrade(store)
    with store.read() as session:
        after = session.scalars(select(Assignment)).all()
        assert session.scalar(text("SELECT count(*) FROM example")) == 0
    assert {one.id: one.order_shown for one in after} == before
    assert len({one.token for one in after}) == 6 and all(len(one.token) == 32 for one in after)


def test_gold_of_an_older_store_is_hidden_among_what_nobody_has_reached(store: Store) -> None:
    run_id = make_world(store, 20)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=10, overlap=2)
        judge_id = get_or_create_judge(session, "ann", kind="person").id
        leasing.lease_items(session, study.id, judge_id, 4)
        used = select(StudyItem.item_id)
        free = session.scalars(select(Item.id).where(Item.id.not_in(used)).limit(3)).all()
        session.add_all(  # as they were then: a position among gold, and no places
            StudyItem(
                study_id=study.id,
                item_id=item_id,
                part="gold",
                position=number,
                gold_choice="positive",
                taken=3 * (number == 0),
            )
            for number, item_id in enumerate(free)
        )
        session.commit()
    schema.downgrade(store, "0019")
    schema.upgrade(store)
    with store.read() as session:
        rows = session.scalars(select(StudyItem).order_by(StudyItem.position)).all()
    assert len({row.position for row in rows}) == 13
    assert not [row for row in rows[:4] if row.part == "gold"]  # ann has these
    gold = {row.item_id: (row.places, row.taken) for row in rows if row.part == "gold"}
    assert gold == {free[0]: (3, 3), free[1]: (2, 0), free[2]: (2, 0)}


def test_gold_of_an_older_study_that_was_gone_through_is_not_given_any_more(store: Store) -> None:
    lease_all(store, 6)
    with store.write() as session:
        row = session.scalars(select(StudyItem)).first()
        assert row is not None
        row.part, row.gold_choice = "gold", "positive"
        study_id, item_id = row.study_id, row.item_id
        session.commit()
    schema.downgrade(store, "0019")
    schema.upgrade(store)
    with store.read() as session:
        found = session.get_one(StudyItem, (study_id, item_id))
    assert (found.places, found.taken) == (1, 1)
