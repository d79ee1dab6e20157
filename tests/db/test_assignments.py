import threading
from datetime import timedelta

import pytest
from leases import lease_items, next_item
from sqlalchemy import func, select
from study_world import make_world, sampled_study

from db.assignment import answering, progress
from db.assignment.answering import Decision
from db.assignment.standing import standing
from db.errors import BadInput, Refused
from db.store.store import Store
from db.study import studies
from db.study.judgments import get_or_create_judge, judgment_frame
from db.tables import Assignment, Item, Judgment, Review, utc_now


def make_study(store: Store, items: int = 4, overlap: int = 2) -> int:
    run_id = make_world(store, max(items, 4))
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=items, overlap=overlap)
        session.commit()
        return study.id


def judge(store: Store, name: str) -> int:
    with store.write() as session:
        found = get_or_create_judge(session, name, kind="person").id
        session.commit()
        return found


def lease(store: Store, study_id: int, judge_id: int, minutes: float = 0) -> int | None:
    with store.write() as session:
        now = utc_now() + timedelta(minutes=minutes)
        item = next_item(session, study_id, judge_id, now=now)
        session.commit()
        return None if item is None else item.item_id


def decide(
    store: Store,
    study_id: int,
    judge_id: int,
    item_id: int,
    *,
    event: str = "",
    position: int | None = 0,
    minutes: float = 0,
    change: bool = False,
) -> Judgment:
    with store.write() as session:
        decision = Decision(
            event_id=event or f"{judge_id}-{item_id}",
            item_id=item_id,
            position=position,
            change=change,
        )
        now = utc_now() + timedelta(minutes=minutes)
        judgment = answering.submit_decision(session, study_id, judge_id, decision, now=now)
        session.commit()
        return judgment


def done_per_item(store: Store, study_id: int) -> dict[int, int]:
    with store.read() as session:
        query = (
            select(Judgment.item_id, func.count())
            .where(Judgment.study_id == study_id, Judgment.is_current)
            .group_by(Judgment.item_id)
        )
        return dict(session.execute(query).all())


def test_asking_again_gives_the_same_item(store: Store) -> None:
    study_id = make_study(store)
    ann = judge(store, "ann")
    assert lease(store, study_id, ann) == lease(store, study_id, ann)


def test_every_item_ends_with_exactly_the_overlap(store: Store) -> None:
    study_id = make_study(store, items=5, overlap=2)
    people = [judge(store, name) for name in ("ann", "bob", "cem")]
    for _ in range(5):
        for person in people:
            item_id = lease(store, study_id, person)
            if item_id is not None:
                decide(store, study_id, person, item_id)
    counts = done_per_item(store, study_id)
    assert list(counts.values()) == [2] * 5


@pytest.mark.long
def test_people_who_judge_at_once_never_exceed_the_overlap(store: Store) -> None:
    study_id = make_study(store, items=12, overlap=3)
    people = [judge(store, f"person {number}") for number in range(5)]

    def work(person: int) -> None:
        while (item_id := lease(store, study_id, person)) is not None:
            decide(store, study_id, person, item_id)

    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = done_per_item(store, study_id)
    assert list(counts.values()) == [3] * 12


def test_the_browser_gets_texts_in_an_order_of_the_judges_own(store: Store) -> None:
    study_id = make_study(store, items=4, overlap=2)
    orders = {}
    for name in ("ann", "bob", "cem", "dee"):
        with store.write() as session:
            person = get_or_create_judge(session, name, kind="person").id
            item = lease_items(session, study_id, person, 1)[0]
            order = session.scalars(
                select(Assignment.order_shown).where(Assignment.judge_id == person)
            ).one()
            found = session.get_one(Item, item.item_id)
            session.commit()
        assert sorted(order) == sorted(entry["label"] for entry in found.candidates)
        for label, text in zip(order, item.candidates, strict=True):
            assert f"The {label.replace('_', ' ')} text" in text
        orders[name] = tuple(order)
    assert len(set(orders.values())) > 1


def test_a_position_is_stored_as_the_label_that_stood_there(store: Store) -> None:
    study_id = make_study(store)
    ann = judge(store, "ann")
    item_id = lease(store, study_id, ann) or 0
    judgment = decide(store, study_id, ann, item_id, position=2)
    assert judgment.choice == judgment.order_shown[2]
    with store.read() as session:
        (row,) = judgment_frame(session, study_id)
    assert (row.judge, row.label) == ("ann", judgment.choice)


def test_an_expired_lease_goes_back_to_the_queue(store: Store) -> None:
    study_id = make_study(store, items=1, overlap=1)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    item_id = lease(store, study_id, ann)
    assert lease(store, study_id, bob) is None
    assert lease(store, study_id, bob, minutes=11) == item_id


def test_a_late_answer_is_kept_aside_where_its_place_is_gone(store: Store) -> None:
    study_id = make_study(store, items=1, overlap=1)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    item_id = lease(store, study_id, ann) or 0
    lease(store, study_id, bob, minutes=11)
    late = decide(store, study_id, ann, item_id, minutes=12)
    assert (late.study_id, late.detail) == (None, {"aside_in_study": study_id})
    decide(store, study_id, bob, item_id, minutes=13)
    assert done_per_item(store, study_id) == {item_id: 1}


def test_a_late_answer_counts_where_its_place_is_free(store: Store) -> None:
    study_id = make_study(store, items=1, overlap=1)
    ann = judge(store, "ann")
    item_id = lease(store, study_id, ann) or 0
    assert decide(store, study_id, ann, item_id, minutes=60).study_id == study_id
    assert lease(store, study_id, judge(store, "bob")) is None


def test_a_skipped_item_goes_to_another_judge(store: Store) -> None:
    study_id = make_study(store, items=1, overlap=1)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    item_id = lease(store, study_id, ann) or 0
    for _ in range(2):
        with store.write() as session:
            answering.skip_item(session, standing(session, study_id, ann), item_id)
            session.commit()
    assert lease(store, study_id, ann) is None
    assert lease(store, study_id, bob) == item_id


def test_what_was_never_leased_is_refused(store: Store) -> None:
    study_id = make_study(store)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    item_id = lease(store, study_id, ann) or 0
    with pytest.raises(Refused, match="never given"):
        decide(store, study_id, bob, item_id)


def test_a_closed_study_refuses_but_acknowledges_what_it_has(store: Store) -> None:
    study_id = make_study(store)
    ann = judge(store, "ann")
    first = lease(store, study_id, ann) or 0
    stored = decide(store, study_id, ann, first, event="e1")
    second = lease(store, study_id, ann) or 0
    with store.write() as session:
        studies.set_status(session, study_id, "closed")
        session.commit()
    assert decide(store, study_id, ann, first, event="e1").id == stored.id
    with pytest.raises(Refused, match="closed"):
        decide(store, study_id, ann, second)
    with pytest.raises(Refused, match="closed"):
        lease(store, study_id, ann)


def test_the_second_answer_of_a_stale_tab_is_refused_and_a_change_is_not(store: Store) -> None:
    study_id = make_study(store)
    ann = judge(store, "ann")
    item_id = lease(store, study_id, ann) or 0
    decide(store, study_id, ann, item_id, event="e1", position=0)
    with pytest.raises(Refused, match="answered already"):
        decide(store, study_id, ann, item_id, event="e2", position=1)
    changed = decide(store, study_id, ann, item_id, event="e3", position=1, change=True)
    assert changed.replaces_id is not None
    assert done_per_item(store, study_id) == {item_id: 1}


def test_there_is_no_passage_beyond_the_last(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store)
    ann = judge(sqlite_store, "ann")
    item_id = lease(sqlite_store, study_id, ann) or 0
    with pytest.raises(BadInput, match="no passage 10"):
        decide(sqlite_store, study_id, ann, item_id, position=9)


def test_whoever_reviewed_a_group_is_never_given_its_items(store: Store) -> None:
    study_id = make_study(store, items=1, overlap=2)
    with store.write() as session:
        group_id = session.scalars(
            select(Item.group_id).where(
                Item.id.in_(select(studies.StudyItem.item_id))  # the only item of the study
            )
        ).one()
        session.add(Review(group_id=group_id, action="approve", reviewed_by="ann"))
        session.commit()
    assert lease(store, study_id, judge(store, "ann")) is None
    assert lease(store, study_id, judge(store, "bob")) is not None


def test_no_judge_sees_two_scenarios_of_one_group_in_two_studies(store: Store) -> None:
    run_id = make_world(store, 4)
    ids = []
    for seed in (0, 1):
        with store.write() as session:
            study = sampled_study(session, run_id=run_id, items=4, overlap=1, seed=seed)
            session.commit()
            ids.append(study.id)
    ann = judge(store, "ann")
    while (item_id := lease(store, ids[0], ann)) is not None:
        decide(store, ids[0], ann, item_id)
    assert lease(store, ids[1], ann) is None


def test_own_progress_counts_what_is_left_for_this_judge(store: Store) -> None:
    study_id = make_study(store, items=3, overlap=1)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    decide(store, study_id, ann, lease(store, study_id, ann) or 0)
    lease(store, study_id, bob)
    with store.read() as session:
        own = progress.own_progress(session, study_id, ann)
    assert (own.done, own.left) == (1, 1)
