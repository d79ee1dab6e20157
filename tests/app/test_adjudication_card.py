"""The judging card over disputed items: blind, each decision stored once, whoever decides first."""

import json
from pathlib import Path
from typing import Any

import pytest
from asked_study import PER_RECORD, make_asked_study, record
from disputed_world import card, disputed_study, entry
from leases import lease_items
from sqlalchemy import func, select

from app.access.identity import Actor
from app.operations.judging.adjudication import AdjudicationCard, decide_and_show
from db.assignment.answering import Decision, submit_decision
from db.errors import Refused
from db.people.rights import Rights
from db.store.store import Store
from db.study.adjudication import get_disputed
from db.study.judgments import get_or_create_judge
from db.study.studies import set_status
from db.tables import AdjudicationView, Event, Item, Judge, Judgment, OpenedGroup

SECRETS = ("ann", "ben", "model M", "positive", "negative", "distractor", "item_id", "group_id")


def decisions(store: Store, *, current: bool = True) -> list[Judgment]:
    with store.read() as session:
        query = select(Judgment).join(Judge).where(Judge.kind == "adjudicator")
        return list(
            session.scalars(
                query.where(Judgment.is_current).order_by(Judgment.id) if current else query
            )
        )


def without_texts(shown: AdjudicationCard) -> str:
    """What the browser gets, but for the texts, in which anything may stand."""
    data = shown.as_json()
    for item in (*data["items"], *data["revealed"], *(past["item"] for past in data["past"])):
        item |= {"instruction": "", "query": "", "candidates": [], "langs": []}
    return json.dumps(data)


def test_the_card_is_blind_before_a_reveal_which_is_recorded(sqlite_store: Store) -> None:
    study_id = disputed_study(sqlite_store)
    shown = card(study_id)
    assert (len(shown.items), shown.done, shown.left) == (3, 0, 3)
    for item in shown.items:
        assert sum(item.votes) == 2 and item.votes[item.options.index(None)] == 1
        assert [one.note for one in item.remarks] == ["hard to say"] * 2
    assert not [one for one in SECRETS if one in without_texts(shown)]
    token = shown.items[0].token
    reveal = {"event": "r", "kind": "reveal", "study": study_id, "token": token}
    after = card(study_id, reveal, reveal)
    (revealed,) = after.revealed
    assert revealed.token == token and revealed.revealed is not None
    assert {"ann", "ben", "model M"} <= {n for names in revealed.revealed.judges for n in names}
    assert len(revealed.revealed.roles) == len(revealed.candidates)
    assert all(one.revealed is None for one in after.items if one.token != token)
    with sqlite_store.read() as session:
        assert session.scalars(select(OpenedGroup.opened_by)).all() == ["cora"]
        seen = session.scalars(
            select(AdjudicationView).where(AdjudicationView.token == token)
        ).one()
        assert seen.revealed_at is not None


def test_a_decision_is_stored_once_however_often_it_arrives(sqlite_store: Store) -> None:
    study_id = disputed_study(sqlite_store)
    item = card(study_id).items[0]
    first = entry(study_id, item.token, "a", 1, note="it answers", shown="2026-01-01T10:00:00Z")
    for _ in range(3):
        after = card(study_id, first)
        assert after.acknowledged == {"a": ""}
    assert (after.done, after.left) == (1, 2)
    assert item.token not in {one.token for one in after.items}
    # an undo, and both again, as an outbox resends what was not acknowledged
    second = entry(study_id, item.token, "b", None, change=True)
    for sent in ((second,), (first, second), (first,), (second, first)):
        card(study_id, *sent)
        (stands,) = decisions(sqlite_store)
        assert stands.choice == "none"
    assert len(decisions(sqlite_store, current=False)) == 2
    with sqlite_store.read() as session:
        count = select(func.count()).select_from(Event).where(Event.name == "study.adjudicate")
        assert session.scalar(count) == 2


def test_of_two_tabs_and_two_adjudicators_the_first_decides(sqlite_store: Store) -> None:
    study_id = disputed_study(sqlite_store, items=1)
    mine, theirs = card(study_id).items[0], card(study_id, who="dan").items[0]
    card(study_id, entry(study_id, mine.token, "a", 0))
    told = card(study_id, entry(study_id, mine.token, "b", 1)).acknowledged["b"]
    assert "decided meanwhile" in told
    told = card(study_id, entry(study_id, theirs.token, "c", 1), who="dan").acknowledged["c"]
    assert "decided meanwhile" in told
    (stands,) = decisions(sqlite_store)
    assert stands.event_id.endswith("/a")
    # who opens the decided item replaces the decision on purpose, and cora's goes from her past
    with sqlite_store.read() as session:
        item_id = session.scalars(select(AdjudicationView.item_id)).first()
    opened = card(study_id, first=item_id, who="dan")
    assert opened.items[0].decided and opened.items[0].token == theirs.token
    card(study_id, entry(study_id, theirs.token, "d", 1, change=True), who="dan")
    assert [one.event_id[-1] for one in decisions(sqlite_store)] == ["d"]
    assert card(study_id, before="").past == ()


def test_going_back_after_a_reload_brings_the_last_decisions(sqlite_store: Store) -> None:
    study_id = disputed_study(sqlite_store)
    tokens = [one.token for one in card(study_id).items]
    for number, token in enumerate(tokens):
        card(study_id, entry(study_id, token, f"e{number}", "several", note=f"n{number}"))
    past = card(study_id, before="").past
    assert [(one.item.token, one.entry.position, one.entry.note) for one in past] == [
        (token, "several", f"n{number}") for number, token in reversed(list(enumerate(tokens)))
    ]
    older = card(study_id, before=tokens[1]).past
    assert [one.item.token for one in older] == [tokens[0]]


def test_what_is_set_aside_comes_after_a_reload(sqlite_store: Store) -> None:
    study_id = disputed_study(sqlite_store)
    tokens = [one.token for one in card(study_id).items]
    assert [one.token for one in card(study_id, aside=[*tokens[:2], 7, "x\ud800"]).items] == tokens[
        2:
    ]
    assert [one.token for one in card(study_id).items] == tokens


def test_forged_entries_are_answered_and_store_nothing(sqlite_store: Store) -> None:
    study_id = disputed_study(sqlite_store)
    token = card(study_id).items[0].token
    foreign = card(study_id, who="dan").items[0].token
    forged = [
        entry(study_id, token, "1", 9),
        entry(study_id, token, "2", "yes"),
        entry(study_id, token, "3", -1),
        entry(study_id, foreign, "4"),
        entry(study_id, "nothing", "5"),
        entry(study_id + 7, token, "6"),
        entry(study_id, token, "7", kind="skip"),
        entry(study_id, token, "8" * 65),
        entry(study_id, token, "9", note="\ud800"),
        {"event": "10"},
        entry(study_id, foreign, "11", kind="reveal"),
    ]
    told = card(study_id, *forged, 3, None, {"event": 4}).acknowledged
    assert len(told) == len(forged) and all(told.values())
    assert not any(label in why for why in told.values() for label in ("positive", "negative"))
    assert decisions(sqlite_store) == []


def test_who_judges_in_the_study_decides_none_of_their_items(sqlite_store: Store) -> None:
    study_id = disputed_study(sqlite_store)
    assert card(study_id, who="ann").items == ()
    with sqlite_store.read() as session:
        item_id = session.scalars(select(Item.id)).first()
    opened = card(study_id, who="ann", first=item_id)
    assert opened.items == () and "not yours to decide" in opened.message
    with pytest.raises(Refused, match="lacks a right"):
        decide_and_show(Actor("eve", rights=Rights(everywhere=frozenset({"judge"}))), study_id, [])
    with sqlite_store.write() as session:
        set_status(session, study_id, "closed")
        session.commit()
    assert len(card(study_id, who="ann").items) == 3


def test_the_questions_of_one_card_come_together_in_one_order(
    sqlite_store: Store, tmp_path: Path
) -> None:
    study_id = make_asked_study(sqlite_store, tmp_path, [record(n) for n in range(2)], overlap=2)
    answers = {"yes_no": ("yes", "no"), "grade": ("0", "2"), "pick": (0, None), "score": ("0", "1")}
    with sqlite_store.write() as session:
        for number, name in enumerate(("ann", "ben")):
            judge = get_or_create_judge(session, name, kind="person").id
            for shown in lease_items(session, study_id, judge, 2):
                value = answers[shown.question.kind][number]
                decision = Decision(f"{name}{shown.item_id}", shown.item_id, value)
                submit_decision(session, study_id, judge, decision)
        session.commit()
    seen: list[Any] = []
    while items := card(study_id).items:
        seen.append(items[0])
        position = None if items[0].question is None else items[0].options[0]
        card(study_id, entry(study_id, items[0].token, f"e{len(seen)}", position))
    assert len(seen) == 2 * PER_RECORD
    cards = [(one.query, one.candidates) for one in seen]
    assert len({*cards}) == 2 and cards == sorted(cards, key=cards.index)
    asked = [(one.question and one.question.name, one.about) for one in seen[:PER_RECORD]]
    roles = [("role", place) for place in range(4)]
    assert asked == [("query_ok", "query"), *roles, ("best", None), ("fluency", None)]
    with sqlite_store.read() as session:
        ids = session.scalars(select(AdjudicationView.item_id)).all()
        assert all(get_disputed(session, study_id, item_id).decision for item_id in ids)
