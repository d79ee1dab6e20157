"""Reviews: append-only, one current, and what an edit does to the texts."""

from typing import Any

import pytest
from conftest import count_rows
from records_world import group_ids, make_run
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from study_world import list_reviews

from db.errors import BadInput, NotFound, Refused
from db.review.reviews import (
    approve_group,
    count_reviews,
    current_review,
    edit_group,
    reject_group,
)
from db.run.group_detail import get_group
from db.store.store import Store
from db.tables import Event, Group, Item, Passage, Review


def test_the_newest_review_is_current_and_the_older_ones_stay(store: Store) -> None:
    run_id = make_run(store)
    group_id, other, *_ = group_ids(store, run_id)
    with store.write() as session:
        approve_group(session, group_id, reviewed_by="ada")
        reject_group(session, group_id, reason="the instruction is vague", reviewed_by="bob")
        approve_group(session, other, reviewed_by="ada")
        session.commit()
    with store.read() as session:
        result = [
            (row.action, row.reviewed_by, row.is_current) for row in list_reviews(session, group_id)
        ]
        assert result == [("reject", "bob", True), ("approve", "ada", False)]
        current = current_review(session, group_id)
        assert current is not None and current.reason == "the instruction is vague"
        assert current.created_at.utcoffset() is not None
        assert count_reviews(session, run_id) == {"approve": 1, "reject": 1}
        audit = session.scalars(select(Event).order_by(Event.id)).all()
        assert [(row.actor, row.name, row.subject) for row in audit] == [
            ("ada", "review.approve", f"group {group_id}"),
            ("bob", "review.reject", f"group {group_id}"),
            ("ada", "review.approve", f"group {other}"),
        ]


def test_the_database_refuses_two_current_reviews_of_a_group(store: Store) -> None:
    group_id = group_ids(store, make_run(store))[0]
    with store.write() as session, pytest.raises(IntegrityError):
        for _ in range(2):
            session.add(Review(group_id=group_id, action="approve", reviewed_by="ada"))
            session.flush()


def test_a_reject_without_a_reason_is_refused(store: Store) -> None:
    group_id = group_ids(store, make_run(store))[0]
    with store.write() as session, pytest.raises(BadInput, match="needs a reason"):
        reject_group(session, group_id, reason="  ", reviewed_by="ada")
    assert count_rows(store, "review") == 0


def test_an_edit_writes_the_triplets_and_keeps_both_texts(store: Store) -> None:
    run_id = make_run(store)
    group_id = group_ids(store, run_id)[0]
    with store.read() as session:
        old = get_group(session, group_id)
        before = session.scalars(select(Item).where(Item.group_id == group_id)).all()
    with store.write() as session:
        review = edit_group(
            session,
            group_id,
            {
                "instruction_positive": "Name the author of book 0.",
                "hard_negative_document_1": "Book 0 came out before the war.",
                "query_negative": old.triplets["query_negative"].query,
            },
            reviewed_by="ada",
            reason="clearer",
        )
        session.commit()
    assert review.before == {
        "instruction_positive": "Find the author of book 0.",
        "hard_negative_document_1": "Book 0 came out in 1900.",
    }
    with store.read() as session:
        new = get_group(session, group_id)
        assert new.triplets["positive"].instruction == "Name the author of book 0."
        assert new.triplets["query_negative"].instruction == "Name the author of book 0."
        assert new.triplets["instruction_negative"].passage == "Book 0 came out before the war."
        edited = session.scalars(
            select(Passage).where(Passage.text == "Book 0 came out before the war.")
        ).one()
        assert edited.origin == "generated"
        for item in before:  # what was judged stays as it was judged
            kept = session.get_one(Item, item.id)
            assert (kept.instruction, kept.candidates) == (item.instruction, item.candidates)
        renewed = session.scalars(
            select(Item).where(Item.group_id == group_id, Item.revision == 2)
        ).all()
        assert {item.scenario: item.instruction for item in renewed} == {
            "positive": "Name the author of book 0.",
            "query_negative": "Name the author of book 0.",
            "instruction_negative": "Find the year of book 0.",
        }
        for item in renewed:
            by_label = {entry["label"]: entry["passage_id"] for entry in item.candidates}
            assert by_label["instruction_negative"] == edited.id


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "nothing to edit"),
        ({"title": "x"}, "no field 'title'"),
        ({"query_positive": "x"}, "comes from the source"),
        ({"query_negative": " "}, "would be empty"),
        ({"query_negative": "a\x00b"}, "cannot be stored"),
        ({"query_negative": "a\ud800b"}, "cannot be stored"),
        ({"query_negative": "x" * 1_000_001}, "longer than 1,000,000"),
        ({"query_negative": "who printed book 0"}, "has exactly this text already"),
    ],
)
def test_an_edit_that_cannot_be_is_refused(
    sqlite_store: Store, changes: dict[str, str], words: str
) -> None:
    group_id = group_ids(sqlite_store, make_run(sqlite_store))[0]
    with sqlite_store.write() as session, pytest.raises(BadInput, match=words):
        edit_group(session, group_id, changes, reviewed_by="ada")


def test_only_finished_groups_are_reviewed_and_what_lacks_texts_is_completed_whole(
    store: Store,
) -> None:
    run_id = make_run(store, kept=1, dropped=0, unwritten=1)
    unwritten = group_ids(store, run_id, "dropped")[0]
    with store.write() as session:
        with pytest.raises(BadInput, match=r"lacks I\+, I-, P1-, P2-, too"):
            edit_group(session, unwritten, {"query_negative": "x"}, reviewed_by="ada")
        with pytest.raises(NotFound, match="no group 999"):
            approve_group(session, 999, reviewed_by="ada")
        group = session.get_one(Group, unwritten)
        group.state, group.verdict, group.drop_reason = "waiting", None, None
        session.flush()
        with pytest.raises(Refused, match="is in work"):
            approve_group(session, unwritten, reviewed_by="ada")


def test_the_command_reviews(store: Store, inf: Any) -> None:
    group_id = group_ids(store, make_run(store))[0]
    approved = inf("review", "--group", group_id, "--approve", "--json")
    assert approved.code == 0, approved.err
    assert approved.json["action"] == "approve" and approved.json["reviewed_by"].startswith("cli:")
    assert inf("review", "--group", group_id, "--reject").code == 2
    rejected = inf("review", "--group", group_id, "--reject", "--reason", "vague", "--json")
    assert (rejected.json["action"], rejected.json["reason"]) == ("reject", "vague")
    edited = inf(
        "review", "--group", group_id, "--edit", "query_negative=who sold book 0", "--json"
    )
    assert edited.json["after"] == {"query_negative": "who sold book 0"}
    assert inf("review", "--group", group_id, "--approve", "--reject").code == 2
    assert inf("review", "--group", 999, "--approve").code == 1
    with store.read() as session:
        assert [row.action for row in list_reviews(session, group_id)] == [
            "edit",
            "reject",
            "approve",
        ]
