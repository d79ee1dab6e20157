"""What the workbench sends: stored once, refused where it is stale, forged or not theirs."""

from typing import Any

import pytest
from records_world import group_ids, make_run
from sqlalchemy import select
from study_world import list_reviews

from app.access.identity import Actor
from app.groups.workbench import group_as_json
from app.operations.judging.desk import Desk, numbers_of, on_desk, store_reviews, wanted_page
from app.text.remedies import in_pages
from db.people.rights import Rights
from db.review.queue import QueueFilter
from db.review.reviews import add_proposal, approve_group, count_reviews, current_review
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.tables import Review

WHO = "ann"


def send(store: Store, *entries: Any, blind: bool = False, run_id: int = 1) -> dict[str, str]:
    with store.write() as session:
        answers, _ = store_reviews(session, WHO, entries, blind=blind, run_id=run_id)
        session.commit()
        return {name: in_pages(str(error or "")) for name, error in answers.items()}


def entry(event: str, group: Any, kind: str = "approve", **more: Any) -> dict[str, Any]:
    return {"event": event, "run": 1, "group": group, "kind": kind, "seen": None} | more


def test_each_event_is_stored_once_and_answered(store: Store) -> None:
    one, two, three, _ = group_ids(store, make_run(store))
    sent = [
        entry("1", one),
        entry("2", two, "reject", reason="vague"),
        entry("3", float(three), "edit", texts={"query_negative": "who sold book 2"}),
    ]
    for _ in range(2):  # the outbox comes again where the answer was lost
        assert send(store, *sent) == {"1": "", "2": "", "3": ""}
    with store.read() as session:
        assert count_reviews(session, 1) == {"approve": 1, "reject": 1, "edit": 1}
        assert len(session.scalars(select(Review)).all()) == 3
        assert {row.reviewed_by for row in session.scalars(select(Review))} == {WHO}
        assert current_review(session, two).reason == "vague"  # type: ignore[union-attr]


def test_an_edit_that_the_rules_refuse_is_answered_with_why(sqlite_store: Store) -> None:
    one = group_ids(sqlite_store, make_run(sqlite_store))[0]
    texts = {"query_negative": "who wrote book 0"}
    answers = send(sqlite_store, entry("1", one, "edit", texts=texts))
    assert "refuse the edit" in answers["1"]
    answers = send(sqlite_store, entry("2", one, "edit", texts={"query_positive": "x"}))
    assert "comes from the source" in answers["2"]


def test_a_word_on_a_group_that_changed_meanwhile_is_refused(store: Store) -> None:
    one, two = group_ids(store, make_run(store))[:2]
    with store.write() as session:
        approve_group(session, one, reviewed_by="bob")
        session.commit()
    answers = send(store, entry("1", one), entry("2", two), entry("3", two))
    assert "bob reviewed group" in answers["1"]
    assert answers["2"] == "" and "since it was shown" in answers["3"]


def test_a_second_decision_names_the_first_where_its_answer_is_still_on_the_way(
    sqlite_store: Store,
) -> None:
    one = group_ids(sqlite_store, make_run(sqlite_store))[0]
    again = entry("2", one, "reject", reason="vague", after="1")
    assert send(sqlite_store, entry("1", one), again) == {"1": "", "2": ""}
    with sqlite_store.write() as session:
        assert [row.action for row in list_reviews(session, one)] == ["reject", "approve"]
        approve_group(session, one, reviewed_by="bob")
        session.commit()
    answers = send(sqlite_store, entry("3", one, after="2"))
    assert "newer review by someone else" in answers["3"]


def test_an_undo_is_of_ones_own_review_and_done_once(store: Store) -> None:
    one, two = group_ids(store, make_run(store))[:2]
    sent = [entry("1", one), entry("2", one, "undo", after="1")]
    for _ in range(2):  # the outbox comes again where the answer was lost
        assert send(store, *sent) == {"1": "", "2": ""}
    with store.write() as session:
        assert current_review(session, one) is None and len(list_reviews(session, one)) == 1
        seen = approve_group(session, two, reviewed_by="bob").id
        session.commit()
    answers = send(
        store,
        entry("3", two, "undo", seen=seen),
        entry("4", two, "undo", seen=None),
        entry("5", one, "reject", after="9", reason="x"),
        entry("6", one, "undo", after="5"),  # of what was refused
        entry("7", two, "undo", after="1"),  # of another group
    )
    assert "bob reviewed group" in answers["3"] and "is not an integer" in answers["4"]
    assert "newer review" in answers["5"] and answers["6"] == ""
    assert "nothing was undone" in answers["7"]
    assert send(store, entry("8", one), entry("9", one, "undo", seen=None)) == {
        "8": "",
        "9": "the review's seen is not an integer: None: reload the page and review the group "
        "again",
    }


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (entry("1", 999), "not in your queue"),
        (entry("1", "1"), "is not an integer"),
        (entry("1", True), "is not an integer"),
        (entry("1", 2**40), "is not an integer"),
        (entry("1", 1, "promote"), "unknown kind of review"),
        (entry("1", 1, "reject"), "needs a reason"),
        (entry("1", 1, "edit"), "contains no texts"),
        (entry("1", 1, seen="x"), "is not an integer"),
        (entry("x" * 65, 1), "too long"),
        (entry("1", 1, after="other"), "newer review by someone else"),
    ],
)
def test_what_is_forged_is_refused_with_words(
    sqlite_store: Store, sent: dict[str, Any], told: str
) -> None:
    make_run(sqlite_store)
    assert told in send(sqlite_store, sent)[sent["event"]]
    assert send(sqlite_store, "x", {"event": 3}, None, entry("9", 1, run=2)) == {}
    with sqlite_store.read() as session:
        assert session.scalars(select(Review)).all() == []


def test_a_group_of_another_run_is_refused(store: Store) -> None:
    first = make_run(store)
    other = group_ids(store, make_run(store, name="papers"))[0]
    answers = send(store, entry("1", other), run_id=first)  # which may be reviewed blind
    assert "not in your queue" in answers["1"]


def test_what_the_card_asks_for_is_read_with_care() -> None:
    assert numbers_of({"want": [1, 2.0, "3", None, True, 1e30]}, "want") == [1, 2]
    assert numbers_of({"calls": 7}, "calls") == [7] and numbers_of({}, "calls") == []
    assert wanted_page({"offset": 120}, 50) == 100
    assert [wanted_page({"offset": value}, 50) for value in (-5, "x", None, [])] == [0] * 4


def test_nothing_sent_to_a_blind_reviewer_tells_a_verdict(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store)
    wanted, told = Desk(QueueFilter(run_id=run_id)), []
    written = [group_ids(sqlite_store, run_id, each)[0] for each in ("kept", "dropped")]
    with sqlite_store.write() as session:
        for group_id in written:
            judge = get_or_create_judge(session, "agent:helper", kind="model", provider="agent")
            add_proposal(session, group_id, judge, action="reject", reason="a leak")
        session.commit()
    for rights in ({"review"}, {"review", "curate"}):
        actor = Actor("eve", rights=Rights(on_datasets={1: frozenset(rights)}))
        asked = {"queue": str(wanted), "want": written}
        found = on_desk(actor, wanted, asked).groups
        told.append([group_as_json(each) for each in found])
    blind, open_ones = told
    names = ("verdict", "drop_reason", "drop_detail", "stage", "state", "proposals", "judgments")
    for kept_or_dropped in blind:
        shown = kept_or_dropped["group"]
        assert [shown[name] for name in names] == [None, None, None, "", "", [], []]
        assert (shown["calls"], shown["offline"]) == ([], True)
        assert (kept_or_dropped["notes"], kept_or_dropped["missing"]) == ([], [])
        assert {(each["says"], each["state"]) for each in kept_or_dropped["columns"]} == {("", "")}
    assert [each["group"]["verdict"] for each in open_ones] == ["kept", "dropped"]
    assert all(each["group"]["judgments"] and each["notes"] for each in open_ones)
    assert all(each["columns"][0]["says"] for each in open_ones)
    # A blind reviewer's word on a group that is not whole, as only dropped ones are, is refused.
    unwritten = group_ids(sqlite_store, run_id, "dropped")[-1]
    assert "not in your queue" in send(sqlite_store, entry("1", unwritten), blind=True)["1"]
    assert "lacks I+, Q-, I-" in send(sqlite_store, entry("1", unwritten), blind=False)["1"]
