"""What a browser may send: twice, late, out of order, or forged."""

import hashlib
import random
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from leases import lease_items
from patient_annotator import Person
from patient_annotator import make_world as make_annotators
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from study_world import backdate_leases, item_of_token, make_world, sampled_study

from app.operations.judging.outbox import store_outbox, studies_named
from app.operations.judging.qualification import answer_examples
from db.assignment.standing import standings
from db.people.renaming import rename_account
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.tables import Assignment, Judge, Judgment, Study, utc_now


def make_study(store: Store, *, items: int, overlap: int) -> int:
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


def lease(store: Store, study_id: int, judge_id: int, count: int = 1) -> list[str]:
    with store.write() as session:
        items = lease_items(session, study_id, judge_id, count)
        session.commit()
        return [item.token for item in items]


def entry(study_id: int, token: str, **changed: Any) -> dict[str, Any]:
    told = {
        "event": f"event-{token}",
        "kind": "pick",
        "study": study_id,
        "token": token,
        "position": 0,
        "shown": "2026-01-01T10:00:00.000Z",
        "decided": "2026-01-01T10:00:04.500Z",
        "note": "",
        "flagged": False,
        "change": False,
    }
    return told | changed


def store_all(session: Session, judge_id: int, entries: Sequence[Any]) -> dict[str, str]:
    first = session.scalars(select(Study.id).order_by(Study.id)).first() or 0
    there = standings(session, session.get_one(Judge, judge_id), first, studies_named(entries))
    return store_outbox(session, there, entries)


def send(store: Store, judge_id: int, *entries: Any) -> dict[str, str]:
    with store.write() as session:
        answers = store_all(session, judge_id, entries)
        session.commit()
        return answers


def stored(store: Store) -> list[Judgment]:
    with store.read() as session:
        return list(session.scalars(select(Judgment).order_by(Judgment.id)))


def test_what_is_sent_again_is_acknowledged_again_and_stored_once(store: Store) -> None:
    study_id = make_study(store, items=4, overlap=1)
    ann = judge(store, "ann")
    first, second = lease(store, study_id, ann, 2)
    for _ in range(3):
        assert send(store, ann, entry(study_id, first), entry(study_id, second)) == {
            f"event-{first}": "",
            f"event-{second}": "",
        }
    assert [row.item_id for row in stored(store)] == [
        item_of_token(store, token) for token in (first, second)
    ]
    assert stored(store)[0].shown_at is not None


def test_one_bad_entry_does_not_take_the_others_along(store: Store) -> None:
    study_id = make_study(store, items=4, overlap=1)
    ann = judge(store, "ann")
    first, second = lease(store, study_id, ann, 2)
    answers = send(
        store, ann, entry(study_id, first, position=99), "nonsense", None, entry(study_id, second)
    )
    assert "no passage 100" in answers[f"event-{first}"]
    assert answers[f"event-{second}"] == ""
    assert [row.item_id for row in stored(store)] == [item_of_token(store, second)]


@pytest.mark.parametrize(
    "forged",
    [
        {"token": 1},
        {"token": "1"},
        {"token": "1; DROP TABLE judgment"},
        {"token": True},
        {"token": None, "item": 1},
        {"token": "\x00"},
        {"study": 999},
        {"study": None},
        {"position": -1},
        {"position": "0"},
        {"position": 1.5},
        {"event": "e" * 1000},
        {"kind": "erase"},
        {"kind": None},
        {"kind": ["pick"]},
        {"kind": 7},
        {"shown": "0001-01-01T00:00:00+14:00"},
        {"decided": "0001-01-01T00:00:00Z"},
        {"decided": "9999-12-31T23:59:59-14:00"},
        {"decided": "yesterday"},
        {"decided": ["2026-01-01"]},
        {"note": "\ud800"},
        {"token": "\ud800"},
        {"study": 2**63},
        {"position": float("inf")},
    ],
)
def test_a_forged_entry_is_refused_and_stores_nothing(store: Store, forged: dict[str, Any]) -> None:
    study_id = make_study(store, items=4, overlap=1)
    ann = judge(store, "ann")
    (token,) = lease(store, study_id, ann)
    answers = send(store, ann, entry(study_id, token) | forged)
    assert all(answers.values()) and answers
    assert stored(store) == []


@pytest.mark.parametrize(
    "forged",
    [
        {"shown": "0001-01-01T00:00:00+14:00"},
        {"decided": "0001-01-01T00:00:00+14:00"},
        {"kind": "erase"},
        {"token": "f" * 32},
        {"event": "\x00"},
        {"event": "\ud800"},
        {"kind": "example", "token": "f" * 32},
        {"kind": "example", "study": 2**63},
    ],
)
def test_a_forged_decision_does_not_block_those_behind_it(
    store: Store, forged: dict[str, Any]
) -> None:
    study_id = make_study(store, items=4, overlap=1)
    ann = judge(store, "ann")
    first, second = lease(store, study_id, ann, 2)
    with store.write() as session:
        sent = [entry(study_id, first) | forged, entry(study_id, second)]
        there = standings(session, session.get_one(Judge, ann), study_id, studies_named(sent))
        examples = answer_examples(session, there, ann, sent)
        answers = examples.answers | store_all(session, ann, examples.others)
        session.commit()
    assert answers.pop(f"event-{second}") == ""
    assert all(answers.values())
    assert [row.item_id for row in stored(store)] == [item_of_token(store, second)]


def test_a_renamed_person_has_the_outbox_of_before(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits in the browser was lost: its scope was made of the name."""
    world = make_annotators(store, monkeypatch, items=4)
    ann, bob = Person(world, "ann"), Person(world, "bob")
    ann.ask()
    bob.ask()
    before = ann.data["scope"]
    assert before != bob.data["scope"]
    with store.write() as session:
        judge = session.scalars(select(Judge).where(Judge.name.startswith("ann "))).one()
        old = hashlib.sha256(f"{judge.id} {judge.name} {judge.created_at}".encode())
        assert ann.data["formerly"] == old.hexdigest()[:16]
        rename_account(session, judge.name, "Hannah", actor="root")
        session.commit()
    ann.ask()
    assert ann.data["scope"] == before


def test_nobody_answers_for_another_judge(store: Store) -> None:
    study_id = make_study(store, items=4, overlap=2)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    (token,) = lease(store, study_id, ann)
    answers = send(store, bob, entry(study_id, token, judge=ann, judge_id=ann))
    assert "never given" in answers[f"event-{token}"]
    assert stored(store) == []


def test_the_same_event_id_in_two_browsers_is_two_decisions(store: Store) -> None:
    study_id = make_study(store, items=1, overlap=2)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    for person in (ann, bob):
        (token,) = lease(store, study_id, person)
        assert send(store, person, entry(study_id, token, event="same")) == {"same": ""}
    assert {row.judge_id for row in stored(store)} == {ann, bob}


def test_a_note_is_kept_as_text_and_cut_at_its_limit(store: Store) -> None:
    study_id = make_study(store, items=1, overlap=1)
    ann = judge(store, "ann")
    (token,) = lease(store, study_id, ann)
    note = "<b>x</b>\x00" + "y" * 5000
    send(store, ann, entry(study_id, token, note=note, flagged=True))
    (judgment,) = stored(store)
    assert judgment.note.startswith("<b>x</b>yy") and len(judgment.note) == 2000
    assert judgment.flagged


def test_a_clock_ahead_of_ours_does_not_decide_in_the_future(store: Store) -> None:
    study_id = make_study(store, items=1, overlap=1)
    ann = judge(store, "ann")
    (token,) = lease(store, study_id, ann)
    with store.write() as session:
        backdate_leases(session, minutes=1)
        session.commit()
    future = {"shown": "2999-01-01T10:00:00Z", "decided": "2999-01-01T10:00:05Z"}
    send(store, ann, entry(study_id, token, **future))
    (judgment,) = stored(store)
    assert judgment.shown_at is not None and judgment.decided_at.year < 2999
    assert (judgment.decided_at - judgment.shown_at).total_seconds() == pytest.approx(5)


@pytest.mark.parametrize("kind", ["pick", "skip"])
@pytest.mark.parametrize(
    ("shown", "decided"),
    [
        ("1970-01-01T00:00:00Z", "8999-01-01T00:00:00Z"),
        ("8999-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ],
)
def test_no_pair_of_dates_blocks_the_outbox_or_is_stored(
    sqlite_store: Store, kind: str, shown: str, decided: str
) -> None:
    study_id = make_study(sqlite_store, items=4, overlap=1)
    ann = judge(sqlite_store, "ann")
    before = utc_now()
    first, second = lease(sqlite_store, study_id, ann, 2)
    forged = entry(study_id, first, kind=kind, shown=shown, decided=decided)
    assert set(send(sqlite_store, ann, forged, entry(study_id, second)).values()) == {""}
    with sqlite_store.read() as session:
        query = select(Assignment.shown_at).where(Assignment.token == first)
        moments = [session.scalars(query).one()] if kind == "skip" else []
    moments += [one.shown_at for one in stored(sqlite_store)]
    moments += [one.decided_at for one in stored(sqlite_store)]
    assert all(one is not None and before <= one <= utc_now() for one in moments)


def test_a_skip_sent_again_after_the_answer_changed_is_no_error(store: Store) -> None:
    study_id = make_study(store, items=1, overlap=1)
    ann = judge(store, "ann")
    (token,) = lease(store, study_id, ann)
    skip = entry(study_id, token, kind="skip", event="s", note="unclear")
    pick = entry(study_id, token, event="p", change=True)
    for _ in range(2):
        assert send(store, ann, skip, pick) == {"s": "", "p": ""}
    with store.read() as session:
        assert session.scalars(select(Assignment.state)).all() == ["done"]


def test_lost_answers_and_repeated_sending_lose_and_double_nothing(store: Store) -> None:
    """Five people at once; every sending may be cut before or after it was committed."""
    items, overlap, people = 24, 3, 5
    study_id = make_study(store, items=items, overlap=overlap)
    judges = [judge(store, f"person {number}") for number in range(people)]
    decided: dict[int, dict[str, tuple[str, int]]] = {}

    def work(judge_id: int) -> None:
        chance = random.Random(judge_id)
        outbox: dict[str, dict[str, Any]] = {}
        told = decided.setdefault(judge_id, {})
        seen: set[str] = set()
        while True:
            leased = [one for one in lease(store, study_id, judge_id, 4) if one not in seen]
            if not leased and not outbox:
                return
            for token in leased:
                seen.add(token)
                position = chance.randrange(5)
                one = entry(study_id, token, position=position, event=f"e{token}")
                outbox[one["event"]] = one
                told[one["event"]] = (token, position)
            cut = chance.random()
            with store.write() as session:
                answers = store_all(session, judge_id, list(outbox.values()))
                if cut < 0.2:
                    continue  # the server died before the commit
                session.commit()
            if cut < 0.5:
                continue  # the connection was cut before the answer came
            for event, answer in answers.items():
                assert answer == ""
                del outbox[event]

    threads = [threading.Thread(target=work, args=(one,)) for one in judges]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = stored(store)
    assert len(rows) == sum(len(told) for told in decided.values()) == items * overlap
    for row in rows:
        token, position = decided[row.judge_id][row.event_id.split("/")[1]]
        item_id = item_of_token(store, token)
        assert (row.item_id, row.choice) == (item_id, row.order_shown[position])
    with store.read() as session:
        counts = session.execute(select(Judgment.item_id, func.count()).group_by(Judgment.item_id))
        assert {number for _, number in counts} == {overlap}
