"""Events are written with the change itself; one table is the audit log and what listeners read."""

import json

import pytest
from leases import lease_items
from sqlalchemy import select, text
from study_world import make_world, sampled_study

from db.assignment.answering import Decision, submit_decision
from db.assignment.members import add_member
from db.errors import Refused
from db.events import NOT_AUDITED, event_names, list_events, record_event
from db.jobs import jobs
from db.people.accounts import add_account
from db.people.passwords import HashedPassword
from db.people.renaming import delete_account
from db.run.runs import set_run_status
from db.store import schema
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.tables import Event


def told(store: Store) -> list[tuple[str, str, str, str]]:
    with store.read() as session:
        rows = session.scalars(select(Event).order_by(Event.id))
        return [(row.actor, row.name, row.noun, row.noun_id) for row in rows]


def test_the_end_of_a_run_and_of_a_job_is_an_event_of_the_same_transaction(store: Store) -> None:
    run_id = make_world(store, 2)
    with store.write() as session:
        set_run_status(session, run_id, "paused", error="the budget is used up")
        session.rollback()
    assert told(store) == []
    with store.write() as session:
        set_run_status(session, run_id, "running")
        set_run_status(session, run_id, "paused")
        set_run_status(session, run_id, "done")
        for status in ("done", "failed"):
            job_id = jobs.enqueue_job(session, "export", {}, started_by="ada").id
            jobs.claim_job(session, job_id)
            jobs.finish_job(session, job_id, 1, status)
            with pytest.raises(Refused):  # given to another process: no second event
                jobs.finish_job(session, job_id, 1, "failed")
        jobs.request_stop(session, jobs.enqueue_job(session, "export", {}, started_by="eve").id)
        session.commit()
    assert [row[1:] for row in told(store)][:2] == [
        ("run.paused", "run", str(run_id)),
        ("run.finished", "run", str(run_id)),
    ]
    assert told(store)[2:] == [
        ("ada", "job.done", "job", "1"),
        ("ada", "job.failed", "job", "2"),
        ("eve", "job.cancelled", "job", "3"),
    ]
    with store.read() as session:
        assert list_events(session) == ([], 0) and event_names(session) == []  # nobody's decision


def test_an_answer_is_an_event_without_its_choice_and_goes_with_the_deleted_person(
    store: Store,
) -> None:
    run_id = make_world(store, 3)
    with store.write() as session:
        add_account(session, "root", HashedPassword("-"), role="admin", actor="test")
        ann = add_account(session, "ann", HashedPassword("-"), role="annotator", actor="root")
        study = sampled_study(session, run_id=run_id, items=2, overlap=1)
        judge = get_or_create_judge(session, "ann", kind="person", account_id=ann.id)
        add_member(session, study.id, judge.id)
        given = lease_items(session, study.id, judge.id, 1)[0]
        decision = Decision("event-1", given.item_id, position=None)
        judgment = submit_decision(session, study.id, judge.id, decision)
        session.commit()
        (event,) = session.scalars(select(Event).where(Event.name == "judgment.stored"))
        assert (event.actor, event.noun_id) == ("ann", str(judgment.id))
        assert event.data == {"study": study.id}
        pseudonym = delete_account(session, "ann", actor="root")
        session.expire_all()
        assert event.actor == pseudonym
        assert "judgment.stored" not in {row.name for row in list_events(session)[0]}
        session.rollback()


def test_an_event_names_its_noun(store: Store) -> None:
    with store.write() as session:
        record_event(session, "ada", "study.extend", 3, items=4)
        record_event(session, "ada", "review.approve", ("group", 7))
        record_event(session, "ada", "sign-in", address="::1")
        record_event(session, "ada", "account.role", "ann", after="admin")
        session.commit()
    with store.read() as session:
        rows = list_events(session)[0]
        assert [row.subject for row in rows] == ["ann", "", "group 7", "study 3"]
        assert [row.noun for row in rows] == ["account", "account", "group", "study"]


def test_the_audit_log_of_before_becomes_events_and_goes_back(store: Store) -> None:
    schema.downgrade(store, "0022")
    rows = [
        ("ada", "export", "release 3", {"path": "x"}),
        ("ada", "review.approve", "group 7", {}),
        ("ann", "sign-in", "", {"address": "::1"}),
        ("ada", "account.add", "ann", {"role": "annotator"}),
        ("ada", "job.launch", "12", {"kind": "train"}),
        ("ada", "group.open", "4 groups", {"run": 2}),
        ("ada", "study.extend", "5", {"items": 2}),
    ]
    with store.engine.begin() as connection:
        for actor, action, subject, detail in rows:
            connection.execute(
                text(
                    "INSERT INTO audit (actor, action, subject, detail, created_at) "
                    "VALUES (:actor, :action, :subject, :detail, CURRENT_TIMESTAMP)"
                ),
                {
                    "actor": actor,
                    "action": action,
                    "subject": subject,
                    "detail": json.dumps(detail),
                },
            )
    schema.upgrade(store)
    assert told(store) == [
        ("ada", "release.created", "release", "3"),
        ("ada", "review.approve", "group", "7"),
        ("ann", "sign-in", "account", ""),
        ("ada", "account.add", "account", "ann"),
        ("ada", "job.launch", "job", "12"),
        ("ada", "group.open", "group", "4 groups"),
        ("ada", "study.extend", "study", "5"),
    ]
    with store.read() as session:
        assert [row.data for row in session.scalars(select(Event).order_by(Event.id))] == [
            row[3] for row in rows
        ]


def test_names_that_are_not_audited_are_those_of_no_decision() -> None:
    assert not [name for name in NOT_AUDITED if name.startswith(("account", "study.c", "review"))]
