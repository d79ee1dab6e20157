"""A study's rules, and whom items may be given to by name."""

from collections.abc import Callable
from typing import Any

import pytest
from leases import lease_items
from sqlalchemy import select
from study_world import make_world, sampled_study

from db.assignment import answering, reassigning
from db.errors import BadInput
from db.events import NOT_AUDITED
from db.review.reviews import approve_group
from db.store.store import Store
from db.study import rules as study_rules
from db.study import studies
from db.study.judgments import get_or_create_judge
from db.tables import Assignment, Event, Item

Inf = Callable[..., Any]


def make_study(store: Store, *, items: int = 4, overlap: int = 1) -> int:
    run_id = make_world(store, items)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=items, overlap=overlap)
        session.commit()
        return study.id


def make_judges(store: Store, *names: str) -> list[int]:
    with store.write() as session:
        found = [get_or_create_judge(session, name, kind="person").id for name in names]
        session.commit()
        return found


def lease(store: Store, study_id: int, judge_id: int, count: int) -> list[int]:
    with store.write() as session:
        items = lease_items(session, study_id, judge_id, count)
        session.commit()
        return [item.item_id for item in items]


def test_rules_have_defaults_and_a_bad_one_is_told_with_what_it_may_be(store: Store) -> None:
    study_id = make_study(store)
    with store.write() as session:
        study = studies.get_study(session, study_id)
        before = dict(study.settings)
        assert study_rules.rules_of(study) == study_rules.StudyRules()
        set_to = study_rules.set_rules(session, study_id, pass_mark=0.5, gold_action="pause")
        assert (set_to.pass_mark, set_to.gold_action, set_to.gold_threshold) == (0.5, "pause", 0.7)
        assert before.items() <= study.settings.items()  # the record of the sample stays
        for bad, words in (
            ({"pass_mark": 1.1}, "pass_mark=1.1: it should be less than or equal to 1"),
            ({"training_items": 0}, "training_items=0: it should be greater than or equal to 1"),
            ({"gold_action": "shout"}, "'warn' or 'pause'"),
            ({"colour": 1}, "no key 'colour': Keys are pass_mark"),
        ):
            with pytest.raises(BadInput, match=words):
                study_rules.set_rules(session, study_id, **bad)
        assert study_rules.rules_of(study) == set_to


def test_what_the_other_may_not_be_given_goes_back_to_the_queue(store: Store) -> None:
    study_id = make_study(store, items=3, overlap=1)
    ann, bob, eve = make_judges(store, "ann", "bob", "eve")
    held = lease(store, study_id, ann, 3)
    with store.write() as session:
        reviewed = session.get_one(Item, held[0]).group_id
        approve_group(session, reviewed, reviewed_by="bob")
        done = reassigning.reassign(session, study_id, ann, bob)
        session.commit()
    assert (done.moved, done.returned) == (2, 1)
    assert lease(store, study_id, eve, 3) == [held[0]]


def test_the_commands_do_what_a_curators_pages_do(sqlite_store: Store, inf: Inf) -> None:
    study_id = make_study(sqlite_store, items=3, overlap=2)
    ann, bob = make_judges(sqlite_store, "ann", "bob")
    held = lease(sqlite_store, study_id, ann, 3)
    lease(sqlite_store, study_id, bob, 1)

    def people(*words: str) -> dict[str, tuple[int, str]]:
        result = inf("study", "people", "--study", study_id, *words, "--json")
        assert result.code == 0, result.out
        return {each["judge"]: (each["holds"], each["state"]) for each in result.json["people"]}

    assert people() == {"ann": (3, "active"), "bob": (1, "active")}
    assert people("--give", "ann", "--to", "bob") == {"ann": (0, "active"), "bob": (3, "active")}
    assert people("--pause", "bob", "--reason", "on leave")["bob"] == (0, "paused")
    assert people("--let-in", "bob")["bob"] == (0, "active")
    assert people("--take-back", "bob")["bob"] == (0, "active")
    nobody = inf("study", "people", "--study", study_id, "--pause", "eve", "--reason", "x")
    assert nobody.code == 1 and "no judge 'eve' in study 1: ann, bob" in nobody.err
    assert inf("study", "people", "--study", study_id, "--give", "ann").code == 2

    for judge_id, position in ((ann, 0), (bob, 1)):
        lease(sqlite_store, study_id, judge_id, 3)
        with sqlite_store.write() as session:
            query = select(Assignment.order_shown).where(
                Assignment.item_id == held[0], Assignment.judge_id == judge_id
            )
            labels = session.scalars(query).one()
            wanted = ("positive", "query_negative")[position]
            decision = answering.Decision(f"e{judge_id}", held[0], labels.index(wanted))
            answering.submit_decision(session, study_id, judge_id, decision)
            session.commit()
    asked = ("study", "adjudicate", "--study", study_id)
    listed = inf(*asked, "--json").json
    assert (listed["disputed"], listed["items"][0]["item_id"]) == (1, held[0])
    answers = {one["judge"]: one["choice"] for one in listed["items"][0]["answers"]}
    assert answers == {"ann": "positive", "bob": "query_negative"}
    wrong = inf(*asked, "--item", held[0], "--choice", "best")
    assert wrong.code == 1 and "best" in wrong.err
    assert inf(*asked, "--item", held[0], "--choice", "positive").code == 0
    after = inf(*asked, "--json").json["items"][0]
    assert after["decision"] == "positive" and after["decided_by"].startswith("cli:")
    with sqlite_store.read() as session:
        audited = select(Event.name).where(Event.name.not_in(NOT_AUDITED))
        actions = session.scalars(audited.order_by(Event.id)).all()
    assert actions == [
        f"study.{action}"
        for action in ("reassign", "pause_judge", "let_in_judge", "take_back", "adjudicate")
    ]
