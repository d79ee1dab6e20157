"""What names and orders an item for a judge says nothing about its scenario."""

import random
from collections import Counter
from typing import Any

from leases import lease_items
from sqlalchemy import inspect, select, text
from study_world import LABELS, make_world, sampled_study

from db.run.new_items import insert_items
from db.shape import INF_IR
from db.store import schema
from db.store.store import Store
from db.study.judgments import get_or_create_judge, record_judgment
from db.tables import Assignment, Group, Item, StudyItem, StudyJudge, utc_now


def lease_all(store: Store, items: int) -> list[Assignment]:
    run_id = make_world(store, items)
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=items, overlap=1).id
        judge_id = get_or_create_judge(session, "ann", kind="person").id
        lease_items(session, study_id, judge_id, items)
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
                    "expected": role,
                    "revision": revision,
                    "instruction": "i",
                    "query": "q",
                    "candidates": [],
                    "created_at": utc_now(),
                }
                for role in INF_IR.roles
            ]
            for item_id, role in zip(insert_items(session, rows), INF_IR.roles, strict=True):
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
        lease_items(session, study.id, judge_id, 4)
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


def test_hiding_gold_of_an_older_store_changes_no_answer_no_lease_and_no_other_study(
    store: Store,
) -> None:
    run_id = make_world(store, 20)
    with store.write() as session:
        plain = sampled_study(session, run_id=run_id, items=4, overlap=1, name="plain").id
        study_id = sampled_study(session, run_id=run_id, items=6, overlap=2, seed=1).id
        ann = get_or_create_judge(session, "ann", kind="person").id
        ben = get_or_create_judge(session, "ben", kind="person").id
        lease_items(session, study_id, ann, 3)
        used = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        unused = select(Item).where(Item.group_id.not_in(used), Item.scenario == "positive")
        held, free = session.scalars(unused.limit(2)).all()
        labels = [each["label"] for each in held.candidates]
        given: dict[str, Any] = {"study_id": study_id, "order_shown": labels, "item_id": held.id}
        session.add_all(
            (
                *(
                    StudyItem(
                        study_id=study_id,
                        item_id=item.id,
                        part="gold",
                        position=number,
                        gold_choice="positive",
                        taken=taken,
                    )
                    for number, (item, taken) in enumerate(((held, 2), (free, 0)))
                ),
                Assignment(judge_id=ann, state="done", **given),
                Assignment(judge_id=ben, state="leased", lease_until=utc_now(), **given),
            )
        )
        record_judgment(session, judge_id=ann, choice="positive", event_id="ann/gold", **given)
        session.commit()

    def kept() -> list[list[tuple[Any, ...]]]:
        statements = (
            "SELECT * FROM judgment ORDER BY id",
            "SELECT * FROM assignment ORDER BY id",
            f"SELECT * FROM study_item WHERE study_id = {plain} ORDER BY item_id",
            f"SELECT item_id, part, gold_choice, taken FROM study_item WHERE study_id = {study_id}"
            " ORDER BY item_id",
            "SELECT study_id, judge_id, state, furthest, passed_at FROM study_judge",
        )
        with store.engine.connect() as connection:
            return [[tuple(row) for row in connection.execute(text(one))] for one in statements]

    def order_of_main() -> list[int]:
        with store.read() as session:
            rows = session.scalars(
                select(StudyItem)
                .where(StudyItem.study_id == study_id, StudyItem.part == "main")
                .order_by(StudyItem.position)
            )
            return [row.item_id for row in rows]

    schema.downgrade(store, "0019")
    before, order = kept(), order_of_main()
    schema.upgrade(store)
    assert (kept(), order_of_main()) == (before, order)
    with store.read() as session:
        assert session.get_one(StudyItem, (study_id, held.id)).places == 2
        assert session.get_one(StudyJudge, (study_id, ann)).scored_after == 0
        positions = session.scalars(
            select(StudyItem.position).where(StudyItem.study_id == study_id)
        ).all()
        assert len(set(positions)) == len(positions)
    with store.write() as session:  # the one that is left goes to ben once, the other never again
        given_now = lease_items(session, study_id, ben, 20)
        assert sorted(one.item_id for one in given_now) == sorted([held.id, free.id, *order])


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
