"""Reviews stay with pair and texts over runs; groups that lack texts; undoing a review."""

import pytest
from records_world import group_ids, make_run
from second_run import Texts, make_second_run
from sqlalchemy import select
from study_world import list_reviews

from db.errors import BadInput, Refused
from db.review import queue as review_queue
from db.review.queue import QueueFilter
from db.review.reviews import (
    approve_group,
    count_reviews,
    current_review,
    edit_group,
    reject_group,
    undo_bulk,
    undo_review,
)
from db.review.texts import group_texts
from db.run.group_detail import get_group
from db.run.revalidations import WAITING, revalidation_of, waiting_items
from db.shape import INF_IR
from db.store.scope import Scope, limited_to
from db.store.store import Store
from db.tables import Item, Review, Run

BY_HAND = {
    "instruction_positive": "Find the author of book 9.",
    "instruction_negative": "Find the year of book 9.",
    "query_negative": "who printed book 9",
    "hard_negative_document_1": "Book 9 came out in 1909.",
    "hard_negative_document_2": "Book 9 was printed by printer 9.",
}


def state(store: Store, group_id: int) -> tuple[str, str, str] | None:
    """Action, reason and author of the current review."""
    with store.read() as session:
        found = current_review(session, group_id)
        return None if found is None else (found.action, found.reason, found.reviewed_by)


def test_a_second_run_with_the_same_texts_keeps_the_rejection(store: Store) -> None:
    run_id = make_run(store, kept=3, dropped=0, unwritten=0)
    one, two, three = group_ids(store, run_id)
    with store.write() as session:
        reject_group(session, one, reason="false", reviewed_by="ada")
        approve_group(session, two, reviewed_by="bob")
        session.commit()
    second, of = make_second_run(store, run_id)
    assert state(store, of[one]) == ("reject", "false", "ada")
    assert state(store, of[two]) == ("approve", "", "bob")
    assert state(store, of[three]) is None
    with store.read() as session:
        copy = current_review(session, of[one])
        assert copy is not None and copy.carried_from == current_review(session, one).id  # type: ignore[union-attr]
        assert count_reviews(session, second) == {"reject": 1, "approve": 1}


def test_other_texts_of_the_pair_take_over_no_review(store: Store) -> None:
    run_id = make_run(store, kept=2, dropped=0, unwritten=0)
    one, two = group_ids(store, run_id)
    with store.write() as session:
        reject_group(session, one, reason="false", reviewed_by="ada")
        reject_group(session, two, reason="false", reviewed_by="ada")
        session.commit()

    def change(group_id: int, texts: Texts) -> Texts:
        if group_id == one:
            instruction, query, _ = texts["query_negative"]
            texts["query_negative"] = (instruction, query, "Another passage.")
        return texts

    _, of = make_second_run(store, run_id, change=change)
    assert state(store, of[one]) is None
    assert state(store, of[two]) == ("reject", "false", "ada")


def test_an_edit_and_its_approval_reach_a_run_that_has_the_texts_before_it(store: Store) -> None:
    run_id = make_run(store, kept=1, dropped=0, unwritten=0)
    (group_id,) = group_ids(store, run_id)
    with store.read() as session:
        before = {
            role: (text.instruction, text.query, None if role == "positive" else text.passage)
            for role, text in get_group(session, group_id).triplets.items()
        }
    for text in ("who sold book 0", "who bound book 0"):
        with store.write() as session:
            edit_group(session, group_id, {"query_negative": text}, reviewed_by="ada")
            session.commit()
    with store.write() as session:
        approve_group(session, group_id, reviewed_by="bob")
        session.commit()
    _, of = make_second_run(store, run_id, change=lambda *_: before, verdict="dropped")
    with store.read() as session:
        assert get_group(session, of[group_id]).triplets["query_negative"].query == (
            "who bound book 0"
        )
        found = [(one.action, one.reviewed_by) for one in list_reviews(session, of[group_id])]
    assert found == [("approve", "bob"), ("edit", "ada"), ("edit", "ada")]


def test_a_review_of_either_run_is_one_of_both(store: Store) -> None:
    run_id = make_run(store, kept=2, dropped=0, unwritten=0)
    one, two = group_ids(store, run_id)
    _, of = make_second_run(store, run_id)
    with store.write() as session:
        approve_group(session, of[one], reviewed_by="ada")
        edit_group(session, of[two], {"query_negative": "who sold book 1"}, reviewed_by="ada")
        session.commit()
    assert state(store, one) == ("approve", "", "ada")
    with store.read() as session:
        texts = group_texts(session, [two, of[two]])
    assert texts[two] == texts[of[two]] and texts[two]["query_negative"] == "who sold book 1"
    with store.write() as session:
        wanted = QueueFilter(run_id=run_id, review="edit")
        review_queue.review_in_bulk(
            session, wanted, "reject", expected=1, reviewed_by="bob", reason="no", bulk="b1"
        )
        session.commit()
    assert state(store, of[two]) == ("reject", "no", "bob")
    with store.write() as session:
        assert undo_bulk(session, run_id, "b1", reviewed_by="bob") == 1
        session.commit()
    assert state(store, two) == state(store, of[two]) == ("edit", "", "ada")
    with store.write() as session, pytest.raises(Refused, match="none of these reviews"):
        undo_bulk(session, run_id, "b1", reviewed_by="bob")


def test_undoing_makes_the_review_before_current_and_the_texts_as_they_were(store: Store) -> None:
    run_id = make_run(store, kept=1, dropped=0, unwritten=0)
    (group_id,) = group_ids(store, run_id)
    _, of = make_second_run(store, run_id)
    with store.write() as session:
        before = group_texts(session, [group_id])[group_id]
        approve_group(session, group_id, reviewed_by="ada")
        edit_group(
            session,
            group_id,
            {"query_negative": "who sold it", "hard_negative_document_2": "Sold by Bo."},
            reviewed_by="bob",
        )
        session.commit()
    with store.write() as session, pytest.raises(Refused, match="bob reviewed group"):
        undo_review(session, group_id, reviewed_by="ada")
    for name, left in (("bob", ("approve", "", "ada")), ("ada", None)):
        with store.write() as session:
            undo_review(session, of[group_id], reviewed_by=name)
            session.commit()
        assert state(store, group_id) == state(store, of[group_id]) == left
    with store.read() as session:
        assert group_texts(session, [group_id, of[group_id]]) == {
            group_id: before,
            of[group_id]: before,
        }
        assert len(list_reviews(session, group_id)) == 2  # nothing a person did is gone
    with store.write() as session, pytest.raises(Refused, match="has no review to undo"):
        undo_review(session, group_id, reviewed_by="ada")
    _, of_third = make_second_run(store, run_id)
    assert state(store, of_third[group_id]) is None  # what was taken back is not carried


def test_a_group_that_lacks_texts_is_completed_by_hand_and_then_approved(store: Store) -> None:
    run_id = make_run(store, kept=0, dropped=0, unwritten=1)
    (group_id,) = group_ids(store, run_id, "dropped")
    with store.write() as session:
        with pytest.raises(Refused, match=r"lacks I\+, Q-, I-, P1-, P2-: write the missing texts"):
            approve_group(session, group_id, reviewed_by="ada")
        with pytest.raises(BadInput, match=r"lacks I\+, Q-, P1-, P2-, too"):
            edit_group(session, group_id, {"instruction_negative": "x"}, reviewed_by="ada")
        wanted = QueueFilter(run_id=run_id, verdict="dropped")
        with pytest.raises(BadInput, match="matches no group"):
            review_queue.review_in_bulk(session, wanted, "approve", expected=0, reviewed_by="ada")
        edit_group(session, group_id, BY_HAND, reviewed_by="ada")
        with pytest.raises(Refused, match="that completed group"):
            undo_review(session, group_id, reviewed_by="ada")
        approve_group(session, group_id, reviewed_by="ada")
        session.commit()
    with store.read() as session:
        triplets = get_group(session, group_id).triplets
        assert set(triplets) == set(INF_IR.roles)
        assert triplets["positive"].passage == "Book 0 was written by author 0."
        assert tuple(triplets["instruction_negative"].model_dump().values()) == (
            "Find the year of book 9.",
            "who wrote book 0",
            "Book 9 came out in 1909.",
        )
        assert revalidation_of(session, group_id) == dict.fromkeys(INF_IR.roles, WAITING)
        assert len(waiting_items(session, run_id)) == len(INF_IR.roles)
        items = session.scalars(select(Item).where(Item.group_id == group_id)).all()
        assert {entry["label"] for item in items for entry in item.candidates} == set(INF_IR.roles)
    _, of = make_second_run(store, run_id, change=lambda *_: {}, verdict="dropped")
    with store.read() as session:  # also where the second run stopped as early
        assert group_texts(session, [of[group_id]])[of[group_id]] == BY_HAND
    assert state(store, of[group_id]) == ("approve", "", "ada")


def test_groups_that_lack_texts_are_left_out_of_a_bulk_approval_and_counted(store: Store) -> None:
    run_id = make_run(store, kept=2, dropped=1, unwritten=2)
    everything = QueueFilter(run_id=run_id)
    with store.write() as session:
        reject_group(session, group_ids(store, run_id)[0], reason="no", reviewed_by="bob")
        found = review_queue.preview_bulk(session, everything, "approve", reviewer="ada")
        assert (found.groups, found.left_out, found.dropped) == (3, 2, 1)
        assert found.by_review == {"reject": 1, "none": 2}
        with pytest.raises(Refused, match="matches 3 groups now"):
            review_queue.review_in_bulk(
                session, everything, "approve", expected=5, reviewed_by="ada"
            )
        assert (
            review_queue.review_in_bulk(
                session, everything, "approve", expected=3, reviewed_by="ada"
            )
            == 3
        )
        chosen = QueueFilter(run_id=run_id, ids=tuple(group_ids(store, run_id, "dropped")))
        found = review_queue.preview_bulk(session, chosen, "reject", reviewer="ada")
        assert (found.groups, found.left_out, found.dropped) == (3, 0, 3)
        session.commit()


def test_who_has_no_right_to_the_dataset_finds_no_group_to_review(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store, kept=1, dropped=0, unwritten=1)
    kept, (bare,) = group_ids(sqlite_store, run_id), group_ids(sqlite_store, run_id, "dropped")
    with sqlite_store.read() as session:
        dataset_id = session.get_one(Run, run_id).dataset_id
    with limited_to(Scope("eve", frozenset({dataset_id + 1}))), sqlite_store.write() as session:
        for change in (
            lambda: approve_group(session, kept[0], reviewed_by="eve"),
            lambda: edit_group(session, bare, BY_HAND, reviewed_by="eve"),
            lambda: undo_review(session, kept[0], reviewed_by="eve"),
        ):
            with pytest.raises(Exception, match="no group"):
                change()
        wanted = QueueFilter(run_id=run_id, ids=(kept[0],))
        found = review_queue.preview_bulk(session, wanted, "reject", reviewer="eve")
        assert found.groups == 0
    with sqlite_store.read() as session:
        assert session.scalars(select(Review)).all() == []


def test_every_editable_field_can_be_missing() -> None:
    assert set(BY_HAND) == set(INF_IR.editable)
