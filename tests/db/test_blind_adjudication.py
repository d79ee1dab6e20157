"""An adjudicator decides without roles, names and models' choices; a reveal is recorded."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple

import pytest
from leases import next_item
from sqlalchemy import select
from sqlalchemy.orm import Session
from study_world import make_world, sampled_study

from db.assignment import answering
from db.assignment.answering import Decision
from db.errors import BadInput, Refused
from db.store.store import Store
from db.study import blind_adjudication, studies
from db.study.blind_adjudication import BlindItem
from db.study.judgments import get_or_create_judge, record_judgment
from db.tables import AdjudicationView, Event, Item, OpenedGroup, StudyItem


def judged_item(store: Store) -> tuple[int, int]:
    """A study of one item on which two people differ, and a model has chosen too."""
    run_id = make_world(store, 4)
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=1, overlap=3).id
        for name, position in (("ann", 0), ("bob", None)):
            judge_id = get_or_create_judge(session, name, kind="person").id
            shown = next_item(session, study_id, judge_id)
            assert shown is not None
            decision = Decision(name, shown.item_id, position, note=f"because, {len(name)}")
            answering.submit_decision(session, study_id, judge_id, decision)
        item = session.get_one(Item, shown.item_id)
        order = [each["label"] for each in item.candidates]
        record_judgment(
            session,
            judge_id=get_or_create_judge(session, "model M", kind="model").id,
            item_id=item.id,
            choice=order[2],
            order_shown=order,
            event_id="m",
        )
        session.commit()
        return study_id, item.id


def view(session: Session, study_id: int, item_id: int, person: str = "cora") -> BlindItem:
    return blind_adjudication.view_item(session, study_id, item_id, person)


def leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, tuple | list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def test_an_item_comes_without_roles_names_and_the_models_choice(store: Store) -> None:
    study_id, item_id = judged_item(store)
    with store.write() as session:
        shown = view(session, study_id, item_id)
        assert sum(shown.votes) == 2 and shown.votes[shown.options.index(None)] == 1
        assert shown.revealed is None and shown.labels == () and len(shown.remarks) == 2
        added = {*leaves(astuple(shown))} - {shown.instruction, shown.query, *shown.candidates}
        for secret in ("positive", "negative", "distractor", "ann", "bob", "model M"):
            assert not [each for each in added if secret in str(each)]
        assert item_id not in added
        assert view(session, study_id, item_id).candidates == shown.candidates


def test_a_reveal_is_recorded_and_so_is_a_decision_after_it(store: Store) -> None:
    study_id, item_id = judged_item(store)
    with store.write() as session:
        before = view(session, study_id, item_id)
        first = blind_adjudication.decide(session, study_id, before.token, 1, by="cora")
        assert first.detail == {"revealed": False}
        blind_adjudication.reveal(session, study_id, before.token, "cora")
        shown = view(session, study_id, item_id)
        assert shown.revealed is not None and shown.decided == 1
        assert shown.labels[1] == first.choice == shown.revealed.decision
        assert {each.judge for each in shown.revealed.answers} == {"ann", "bob", "model M"}
        second = blind_adjudication.decide(session, study_id, before.token, None, by="cora")
        assert (second.choice, second.detail) == ("none", {"revealed": True})
        session.commit()
    with store.read() as session:
        assert session.scalars(select(AdjudicationView)).one().revealed_at is not None
        assert session.scalars(select(OpenedGroup.place)).all() == ["adjudicate"]
        assert "study.reveal" in session.scalars(select(Event.name)).all()


def test_a_reveal_in_a_closed_study_keeps_the_group_from_later_studies(store: Store) -> None:
    study_id, item_id = judged_item(store)
    with store.write() as session:
        token = view(session, study_id, item_id).token
        studies.set_status(session, study_id, "closed")
        blind_adjudication.reveal(session, study_id, token, "cora")
        group_id = session.get_one(Item, item_id).group_id
        session.commit()
        assert session.scalars(select(OpenedGroup.group_id)).all() == [group_id]


def test_another_adjudicator_does_not_see_the_decision_before_a_reveal(store: Store) -> None:
    study_id, item_id = judged_item(store)
    with store.write() as session:
        token = view(session, study_id, item_id).token
        blind_adjudication.decide(session, study_id, token, 1, by="cora", note="clear")
        shown = view(session, study_id, item_id, "dan")
        assert shown.decided is None and shown.decided_by_another and shown.note == ""


def test_who_saw_others_choices_is_not_given_the_item(store: Store) -> None:
    study_id, item_id = judged_item(store)
    with store.write() as session:
        view(session, study_id, item_id)
        judge_id = get_or_create_judge(session, "cora", kind="person").id
        assert next_item(session, study_id, judge_id) is None


def test_who_saw_others_choices_cannot_change_an_own_answer(store: Store) -> None:
    study_id, item_id = judged_item(store)
    with store.write() as session:
        view(session, study_id, item_id, "ann")
        judge_id = get_or_create_judge(session, "ann", kind="person").id
        with pytest.raises(Refused, match="seen others' choices"):
            change = Decision("again", item_id, 1, change=True)
            answering.submit_decision(session, study_id, judge_id, change)


def test_an_item_that_the_adjudicator_is_judging_is_not_listed(store: Store) -> None:
    study_id, item_id = judged_item(store)
    with store.write() as session:
        judge_id = get_or_create_judge(session, "cora", kind="person").id
        assert next_item(session, study_id, judge_id) is not None
        assert blind_adjudication.ids_to_adjudicate(session, study_id, "cora") == []
        assert blind_adjudication.ids_to_adjudicate(session, study_id, "dan") == [item_id]


def test_a_token_of_another_adjudicator_decides_and_reveals_nothing(store: Store) -> None:
    study_id, item_id = judged_item(store)
    with store.write() as session:
        token = view(session, study_id, item_id).token
        with pytest.raises(Refused, match="never shown"):
            blind_adjudication.decide(session, study_id, token, 1, by="dan")
        with pytest.raises(Refused, match="never shown"):
            blind_adjudication.reveal(session, study_id, token, "dan")
        with pytest.raises(BadInput, match="no passage 10"):
            blind_adjudication.decide(session, study_id, token, 9, by="cora")


def test_two_tabs_that_show_an_item_at_the_same_moment_share_its_order(store: Store) -> None:
    study_id, item_id = judged_item(store)

    def other_tab() -> str:
        with store.write() as session:
            token = view(session, study_id, item_id).token
            session.commit()
            return token

    with ThreadPoolExecutor(1) as pool:
        with store.write() as session:
            token = view(session, study_id, item_id).token
            shown = pool.submit(other_tab)
            time.sleep(0.3)  # it waits for this transaction
            session.commit()
        assert shown.result(30) == token


def test_an_item_leased_between_the_list_and_its_view_goes_back_to_the_queue(store: Store) -> None:
    study_id, item_id = judged_item(store)
    with store.write() as session:
        assert item_id in blind_adjudication.ids_to_adjudicate(session, study_id, "cora")
        cora = get_or_create_judge(session, "cora", kind="person").id
        leased = next_item(session, study_id, cora)
        assert leased is not None and leased.item_id == item_id
        view(session, study_id, item_id)
        row = session.get_one(StudyItem, (study_id, item_id))
        session.refresh(row)
        assert row.taken == 2
        assert next_item(session, study_id, cora) is None
