"""What an answer on the judging card costs the store: a study's judges wait for one another."""

import threading
from collections.abc import Iterator

import pytest
from app_pages import card_data, open_page, redraw_fragments, sign_in
from sqlalchemy import update
from statement_count import StatementCount, statements_counted
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

from app.operations.judging.outbox import store_outbox, studies_named
from db.assignment.leasing import hold_items
from db.assignment.standing import standings
from db.review.reviews import approve_group
from db.store.store import Store
from db.study.gold_items import sample_gold_items
from db.study.judgments import get_or_create_judge
from db.tables import Group, Judge, StudyJudge, utc_now

MAX_STATEMENTS = 20


def make_study(store: Store, *, overlap: int = 2, name: str = "world", gold: int = 0) -> int:
    """A study of twelve items, with gold items and a qualification where gold is more than 0."""
    run_id = make_world(store, 12 + 4 * gold, name=name)
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=12, overlap=overlap).id
        for group in session.query(Group).where(Group.run_id == run_id) if gold else ():
            approve_group(session, group.id, reviewed_by="a reviewer")
        for part in ("gold", "training") if gold else ():
            sample_gold_items(session, study_id, part, gold)
        session.commit()
    return study_id


def answers(at: AppTest, monkeypatch: pytest.MonkeyPatch, count: int) -> Iterator[StatementCount]:
    """Answer the first item on the card, again and again; what each answer asked of the store."""
    for number in range(count):
        data = card_data(at)
        entry = {
            "event": f"event {number}",
            "kind": "pick",
            "study": data["study"],
            "token": data["items"][0]["token"],
            "position": 0,
        }
        outbox = {"outbox": {"sent": number, "events": [entry]}}
        at.session_state[f"judge.card_{data['study']}"] = outbox
        with statements_counted() as found:
            redraw_fragments(at, monkeypatch)
        assert card_data(at)["acknowledged"] == {entry["event"]: ""}
        yield found


def test_an_answer_takes_few_statements_in_two_transactions(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study_id = make_study(store)
    sign_in(store, monkeypatch, "annotator")
    at = open_page("judge", study=str(study_id))
    for found in answers(at, monkeypatch, 4):
        assert found.transactions == 2
        assert found.total <= MAX_STATEMENTS, found.statements


@pytest.mark.long
def test_hidden_gold_and_a_passed_qualification_add_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study_id = make_study(store, gold=2)
    sign_in(store, monkeypatch, "annotator")
    assert card_data(open_page("judge", study=str(study_id)))["qualification"]
    with store.write() as session:
        session.execute(update(StudyJudge).values(passed_at=utc_now()))
        session.commit()
    at = open_page("judge", study=str(study_id))
    for found in answers(at, monkeypatch, 4):
        assert found.transactions == 2
        assert found.total <= MAX_STATEMENTS, found.statements


@pytest.mark.long
def test_two_judges_with_answers_to_two_studies_never_wait_for_each_other(store: Store) -> None:
    """Each works in one study and still has an answer to the other one in the outbox."""
    studies = [make_study(store, name=name) for name in ("one", "two")]
    failures: list[Exception] = []
    meet = threading.Barrier(2)

    def work(name: str, here: int, before: int) -> None:
        try:
            for number in range(8):
                tokens = {study: take(store, name, study) for study in (before, here)}
                events = [
                    {"event": f"{number}/{study}", "kind": "pick", "study": study, "token": token}
                    for study, token in tokens.items()
                ]
                meet.wait(30)
                send(store, name, here, events)
        except Exception as error:
            meet.abort()
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=("ann", *studies)),
        threading.Thread(target=work, args=("ben", *reversed(studies))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def take(store: Store, name: str, study_id: int) -> str:
    """The token of an item of the study."""
    with store.write() as session:
        person = get_or_create_judge(session, name, kind="person")
        here = standings(session, person, study_id)[study_id]
        token = hold_items(session, here, 1)[0].token
        session.commit()
    return token


def send(store: Store, name: str, study_id: int, events: list[dict[str, object]]) -> None:
    """What the card does with its outbox."""
    with store.write() as session:
        person = session.query(Judge).where(Judge.name == name).one()
        there = standings(session, person, study_id, studies_named(events))
        assert set(store_outbox(session, there, events).values()) == {""}
        hold_items(session, there[study_id], 5)
        session.commit()
