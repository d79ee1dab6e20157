"""A study that closes with its last answer; who judged then sees the validator's answers."""

import pytest
from leases import lease_items
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from study_world import make_world, sampled_study

from curation.judging.sampling import Sampling, sample_study_items
from db.answers.finishing import own_choices
from db.assignment import answering
from db.assignment.members import add_member, pause_judge
from db.assignment.places import return_leases
from db.assignment.standing import standing
from db.review.reviews import approve_group
from db.store.store import Store
from db.study.gold_items import add_gold_item
from db.study.judgments import get_or_create_judge, record_judgment
from db.study.rules import set_rules
from db.study.studies import get_study, used_groups
from db.tables import Item, Judgment, StudyItem, StudyJudge, utc_now

ITEMS = 3


def closing_study(store: Store, *, overlap: int = 1) -> int:
    """A study of three items that closes by itself; the validator chose Q- on every item."""
    run_id = make_world(store, 6)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=ITEMS, overlap=overlap)
        set_rules(session, study.id, closes_when_done=True)
        validator = get_or_create_judge(session, "validator", kind="model").id
        for item_id in (one.item_id for one in study_items(session, study.id)):
            item = session.get_one(Item, item_id)
            labels = [each["label"] for each in item.candidates]
            record_judgment(
                session,
                judge_id=validator,
                item_id=item_id,
                choice="query_negative",
                order_shown=labels,
                event_id=f"validator/{item_id}",
                run_id=run_id,
            )
        session.commit()
        return study.id


def study_items(session: Session, study_id: int) -> list[StudyItem]:
    return list(session.scalars(select(StudyItem).where(StudyItem.study_id == study_id)))


def make_judges(store: Store, *names: str) -> list[int]:
    with store.write() as session:
        found = [get_or_create_judge(session, name, kind="person").id for name in names]
        session.commit()
        return found


def lease(store: Store, study_id: int, judge_id: int) -> list[int]:
    with store.write() as session:
        items = lease_items(session, study_id, judge_id, ITEMS)
        session.commit()
        return [item.item_id for item in items]


def lease_all(store: Store, study_id: int, judge_id: int) -> list[int]:
    """All that the judge can be given, gold too."""
    with store.write() as session:
        items = lease_items(session, study_id, judge_id, 50)
        session.commit()
        return [item.item_id for item in items]


def answer(store: Store, study_id: int, judge_id: int, item_id: int, choice: str) -> None:
    with store.write() as session:
        assignment = answering.find_assignment(session, study_id, judge_id, item_id)
        place = assignment.order_shown.index(choice)
        answering.submit_decision(
            session,
            study_id,
            judge_id,
            answering.Decision(f"{judge_id}/{item_id}", item_id, place),
        )
        session.commit()


def status(store: Store, study_id: int) -> str:
    with store.read() as session:
        return get_study(session, study_id).status


def test_the_last_answer_closes_it_and_only_then_the_validators_are_seen(store: Store) -> None:
    study_id = closing_study(store)
    (ann,) = make_judges(store, "ann")
    items = lease(store, study_id, ann)
    for place, item_id in enumerate(items):
        with store.read() as session:
            assert own_choices(session, study_id, ann) == []
        assert status(store, study_id) == "open"
        answer(store, study_id, ann, item_id, "positive" if place == 0 else "query_negative")
    assert status(store, study_id) == "closed"
    with store.read() as session:
        found = own_choices(session, study_id, ann)
    assert [each.item_id for each in found] == items
    assert [each.is_same for each in found] == [False, True, True]
    assert found[0].own == "positive" and found[0].validator == "query_negative"


def test_it_stays_open_for_an_item_that_somebody_holds_or_that_has_a_free_place(
    store: Store,
) -> None:
    study_id = closing_study(store, overlap=2)
    ann, bob = make_judges(store, "ann", "bob")
    for item_id in lease(store, study_id, ann):
        answer(store, study_id, ann, item_id, "positive")
    assert status(store, study_id) == "open"
    held = lease(store, study_id, bob)
    for item_id in held[:-1]:
        answer(store, study_id, bob, item_id, "positive")
    assert status(store, study_id) == "open"
    answer(store, study_id, bob, held[-1], "positive")
    assert status(store, study_id) == "closed"


def test_a_study_without_the_rule_stays_open(store: Store) -> None:
    study_id = closing_study(store)
    with store.write() as session:
        set_rules(session, study_id, closes_when_done=False)
        session.commit()
    (ann,) = make_judges(store, "ann")
    for item_id in lease(store, study_id, ann):
        answer(store, study_id, ann, item_id, "positive")
    assert status(store, study_id) == "open"


def test_a_sample_apart_from_a_study_has_none_of_its_groups(store: Store) -> None:
    study_id = closing_study(store)
    with store.read() as session:
        run_id = get_study(session, study_id).run_id
        assert run_id is not None
        sampling = Sampling(apart_from=(study_id,))
        sampled = sample_study_items(session, run_id, sampling, 3, seed=0)
        groups = {session.get_one(Item, item_id).group_id for item_id in sampled.item_ids}
        assert len(groups) == 3 and not groups & used_groups(session, study_id)
        assert sampled.settings["apart_from"] == [study_id]
        assert session.scalar(select(func.count(Judgment.id))) == ITEMS


def with_gold(store: Store, study_id: int, *, approved_by: str) -> int:
    """A hidden gold item, with the places of the others, of a group that a member approved."""
    with store.write() as session:
        used = used_groups(session, study_id)
        item = session.scalars(
            select(Item).where(Item.group_id.not_in(used), Item.scenario == "positive")
        ).first()
        assert item is not None
        approve_group(session, item.group_id, reviewed_by=approved_by)
        add_gold_item(session, study_id, item.id, "gold", "positive", "")
        session.commit()
        return item.id


def test_it_does_not_wait_for_gold_that_only_its_approver_could_answer(store: Store) -> None:
    study_id = closing_study(store, overlap=2)
    gold = with_gold(store, study_id, approved_by="bob")
    ann, bob = make_judges(store, "ann", "bob")
    for item_id in lease_all(store, study_id, ann):
        answer(store, study_id, ann, item_id, "positive")
    assert status(store, study_id) == "open"
    items = lease_all(store, study_id, bob)
    assert gold not in items and len(items) == ITEMS
    for item_id in items:
        assert status(store, study_id) == "open"
        answer(store, study_id, bob, item_id, "positive")
    assert status(store, study_id) == "closed"


@pytest.mark.parametrize("way", ["answered", "skipped", "paused", "not qualified"])
def test_it_waits_for_gold_while_a_member_may_be_given_it(store: Store, way: str) -> None:
    study_id = closing_study(store, overlap=2)
    gold = with_gold(store, study_id, approved_by="bob")
    ann, bob, cem = make_judges(store, "ann", "bob", "cem")
    for item_id in lease_all(store, study_id, ann):
        if item_id != gold:
            answer(store, study_id, ann, item_id, "positive")
    with store.write() as session:
        return_leases(session, study_id, ann)  # of the gold item
        session.commit()
    if way == "not qualified":
        with store.write() as session:
            session.get_one(StudyJudge, (study_id, ann)).passed_at = utc_now()
            add_member(session, study_id, bob).passed_at = utc_now()
            add_member(session, study_id, cem)
            example = session.scalars(
                select(Item).where(Item.group_id.not_in(used_groups(session, study_id)))
            ).first()
            assert example is not None
            add_gold_item(session, study_id, example.id, "training", "positive", "because")
            session.commit()
    if way == "paused":
        with store.write() as session:
            pause_judge(session, study_id, ann, "away")
            session.commit()
    for item_id in lease_all(store, study_id, bob):
        answer(store, study_id, bob, item_id, "positive")
    if way == "paused":
        assert status(store, study_id) == "closed"
        return
    assert status(store, study_id) == "open"
    assert lease_all(store, study_id, ann) == [gold]
    if way == "skipped":
        with store.write() as session:
            answering.skip_item(session, standing(session, study_id, ann), gold)
            session.commit()
    else:
        answer(store, study_id, ann, gold, "positive")
    assert status(store, study_id) == "closed"
