"""What a curator does when a judge is away or too fast: items to a named person, fast answers."""

from datetime import timedelta

import pytest
from leases import lease_items, next_item
from sqlalchemy import select
from study_world import backdate_leases, make_world, sampled_study

from db.assignment import answering, members
from db.assignment.answering import Decision
from db.assignment.reassigning import reassign
from db.errors import BadInput, Refused
from db.people import invitations
from db.people.accounts import add_account
from db.store.store import Store
from db.study.adjudication import get_disputed
from db.study.judgments import get_or_create_judge
from db.study.rules import set_rules
from db.study.speed import fast_answers
from db.tables import Assignment, StudyItem, StudyJudge, utc_now


def make_study(store: Store, *, items: int = 4, overlap: int = 1) -> tuple[int, int, int]:
    """A study and two people."""
    run_id = make_world(store, items)
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=items, overlap=overlap).id
        people = [get_or_create_judge(session, name, kind="person").id for name in ("ann", "bob")]
        session.commit()
        return study_id, people[0], people[1]


def test_what_one_person_holds_goes_to_another_who_has_a_day(store: Store) -> None:
    study_id, ann, bob = make_study(store)
    with store.write() as session:
        lease_items(session, study_id, ann, 3)
        done = reassign(session, study_id, ann, bob)
        session.commit()
    assert (done.moved, done.returned) == (3, 0)
    with store.write() as session:
        late = utc_now() + timedelta(hours=20)
        lease_items(session, study_id, ann, 4, now=late)
        states = session.execute(select(Assignment.judge_id, Assignment.state)).all()
        assert states.count((bob, "leased")) == 3 and states.count((ann, "leased")) == 1
        taken = session.scalars(select(StudyItem.taken)).all()
        assert list(taken) == [1] * 4


def test_an_item_the_other_person_has_had_goes_back_to_the_queue(store: Store) -> None:
    study_id, ann, bob = make_study(store, items=2, overlap=2)
    with store.write() as session:
        lease_items(session, study_id, ann, 2)
        shown = lease_items(session, study_id, bob, 1)
        done = reassign(session, study_id, ann, bob)
        session.commit()
        assert (done.moved, done.returned) == (1, 1)
        taken = dict(session.execute(select(StudyItem.item_id, StudyItem.taken)).all())
        assert taken[shown[0].item_id] == 1


def test_reassigning_to_nobody_else_is_refused(store: Store) -> None:
    study_id, ann, bob = make_study(store)
    with store.write() as session:
        with pytest.raises(BadInput, match="another one"):
            reassign(session, study_id, ann, ann)
        model = get_or_create_judge(session, "openai:m", kind="model").id
        with pytest.raises(BadInput, match="not a person"):
            reassign(session, study_id, ann, model)
        members.pause_judge(session, study_id, bob, "away")
        with pytest.raises(Refused, match="resume them first"):
            reassign(session, study_id, ann, bob)


def test_an_answer_too_fast_to_be_read_is_flagged_one_by_one(store: Store) -> None:
    study_id, ann, _ = make_study(store)
    now = utc_now()
    with store.write() as session:
        for seconds in (0.4, 1.4, 9.0):
            item = next_item(session, study_id, ann)
            assert item is not None
            backdate_leases(session, minutes=1)
            decision = Decision(
                event_id=f"took {seconds}",
                item_id=item.item_id,
                position=None,
                shown_at=now - timedelta(seconds=seconds),
                decided_at=now,
            )
            answering.submit_decision(session, study_id, ann, decision, now=now)
        found = fast_answers(session, study_id)
        assert [(one.judge, round(one.seconds, 1)) for one in found] == [("ann", 0.4), ("ann", 1.4)]
        (labels,) = get_disputed(session, study_id, found[0].item_id).answers
        assert labels.too_fast
        set_rules(session, study_id, too_fast_seconds=1.0)
        assert len(fast_answers(session, study_id)) == 1


def test_a_study_for_members_takes_only_who_was_invited(store: Store) -> None:
    study_id, ann, _ = make_study(store)
    with store.write() as session:
        set_rules(session, study_id, members_only=True)
        with pytest.raises(Refused, match="invited"):
            next_item(session, study_id, ann)
        known = add_account(session, "root", "correct horse battery", role="admin", actor="test")
        tokens = [
            invitations.invite(session, role="annotator", days=1, actor="root", study_id=study_id)
            for _ in range(2)
        ]
        eve = invitations.accept_invitation(session, tokens[0], "eve", "correct horse battery")
        invitations.join_by_invitation(session, tokens[1], known.id)
        judge = get_or_create_judge(session, "eve", kind="person", account_id=eve.id)
        assert next_item(session, study_id, judge.id) is not None
        assert len(session.scalars(select(StudyJudge)).all()) == 2
        with pytest.raises(Refused, match="used already"):
            invitations.join_by_invitation(session, tokens[1], eve.id)
