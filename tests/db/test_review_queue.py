"""Who reviews which group next, blind or not; and reviewing many at once."""

from collections.abc import Callable
from typing import Any

import pytest
from leases import next_item
from records_world import add_release, group_ids, make_run
from sqlalchemy import select
from study_world import list_reviews, sampled_study

from db.errors import BadInput, Refused
from db.outcome.checkpoints import record_checkpoint
from db.outcome.overview import kept_groups
from db.review import queue as review_queue
from db.review.queue import QueueFilter
from db.review.reviews import (
    approve_group,
    count_reviews,
    require_seen,
    review_of_event,
)
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.study.studies import set_status
from db.tables import Event, Group, Item, Run

Inf = Callable[..., Any]


def listed(
    store: Store, wanted: QueueFilter, *, blind: bool = False, offset: int = 0, limit: int = 20
) -> tuple[list[int], int]:
    with store.read() as session:
        page = review_queue.listed_groups(
            session, wanted, viewer="ann", blind=blind, offset=offset, limit=limit
        )
        return [row.id for row in page.rows], page.total


def test_kept_and_dropped_come_mixed_and_whole_to_who_reviews_blind(store: Store) -> None:
    run_id = make_run(store, kept=3, dropped=2, unwritten=2)
    kept, dropped = group_ids(store, run_id), group_ids(store, run_id, "dropped")
    open_ones = QueueFilter(run_id=run_id, review="none")
    assert listed(store, open_ones) == (sorted([*kept, *dropped]), 7)
    ids, total = listed(store, open_ones, blind=True)
    assert total == 5 and set(kept) < set(ids)
    with pytest.raises(Refused, match="without verdicts"):
        listed(store, QueueFilter(run_id=run_id, verdict="kept"), blind=True)
    with store.read() as session:
        unwritten = next(each for each in dropped if each not in ids)
        assert not review_queue.can_review(session, unwritten, reviewer="ann", blind=True)
        assert review_queue.can_review(session, unwritten, reviewer="ann", blind=False)
        assert not review_queue.can_review(session, 999, reviewer="ann", blind=False)


def test_a_blind_list_has_nothing_that_tells_kept_from_dropped(store: Store) -> None:
    run_id = make_run(store, kept=2, dropped=2, unwritten=2)
    with store.read() as session:
        page = review_queue.listed_groups(
            session, QueueFilter(run_id=run_id), viewer="ann", blind=True, offset=0, limit=9
        )
        told = {(r.verdict, r.drop_reason, r.stage, r.is_complete, r.review) for r in page.rows}
        assert told == {(None, None, "", True, None)} and page.total == 4
        for wanted in ({"reason": "rule"}, {"stage": "negatives"}):
            with pytest.raises(Refused, match="without verdicts"):
                review_queue.listed_groups(
                    session,
                    QueueFilter(run_id=run_id, **wanted),
                    viewer="ann",
                    blind=True,
                    offset=0,
                    limit=9,
                )


def test_a_list_has_pages_and_the_place_of_a_group(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store, kept=4, dropped=1, unwritten=0)
    one, two, three, four = group_ids(sqlite_store, run_id)
    (dropped,) = group_ids(sqlite_store, run_id, "dropped")
    wanted = QueueFilter(run_id=run_id, verdict="kept", search="book")
    assert listed(sqlite_store, wanted, offset=1, limit=2) == ([two, three], 4)
    assert listed(sqlite_store, QueueFilter(run_id=run_id, ids=(four, one, 999))) == (
        [one, four],
        2,
    )
    passage = QueueFilter(run_id=run_id, search="PRINTED BY PRINTER 2")
    assert listed(sqlite_store, passage) == ([], 0)
    assert listed(sqlite_store, passage.model_copy(update={"in_passages": True})) == ([three], 1)
    with sqlite_store.read() as session:
        places = [
            review_queue.place_in_list(session, wanted, each, viewer="ann", blind=False)
            for each in (one, three, dropped, 999)
        ]
    assert places == [0, 2, None, None]


def test_a_group_is_not_shown_to_anyone_who_may_judge_an_item_of_it(store: Store) -> None:
    run_id = make_run(store, kept=3, dropped=0, unwritten=0)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=1, overlap=1)
        judge = get_or_create_judge(session, "ann", kind="person")
        item = next_item(session, study.id, judge.id)
        assert item is not None
        group_id = session.get_one(Item, item.item_id).group_id
        session.commit()
        assert not review_queue.can_review(session, group_id, reviewer="ann", blind=True)
        assert not review_queue.can_review(session, group_id, reviewer="bob", blind=True)
        set_status(session, study.id, "closed")
        for name in ("ann", "bob"):
            assert review_queue.can_review(session, group_id, reviewer=name, blind=True)
    assert group_id not in listed(store, QueueFilter(run_id=run_id))[0]


def test_a_review_sent_twice_is_stored_once_and_a_stale_one_is_refused(store: Store) -> None:
    group_id = group_ids(store, make_run(store))[0]
    with store.write() as session:
        first = approve_group(session, group_id, reviewed_by="ann", event_id="ann/1")
        session.commit()
        found = review_of_event(session, "ann/1", "ann")
        assert found is not None and found.id == first.id
        assert review_of_event(session, "ann/2", "ann") is None
        with pytest.raises(Refused, match="another reviewer"):
            review_of_event(session, "ann/1", "bob")
        require_seen(session, group_id, first.id)
        with pytest.raises(Refused, match="ann reviewed group"):
            require_seen(session, group_id, None)


def test_many_are_reviewed_only_as_many_as_were_confirmed(store: Store) -> None:
    run_id = make_run(store, kept=4, dropped=2, unwritten=1)
    first = group_ids(store, run_id)[0]
    kept = QueueFilter(run_id=run_id, verdict="kept", review="none")
    with store.write() as session:
        assert review_queue.count_matching(session, kept, reviewer="ann") == 4
        approve_group(session, first, reviewed_by="bob")
        with pytest.raises(Refused, match=r"matches 3 groups now, not the confirmed 4"):
            review_queue.review_in_bulk(session, kept, "approve", expected=4, reviewed_by="ann")
        with pytest.raises(BadInput, match="needs a reason"):
            review_queue.review_in_bulk(session, kept, "reject", expected=3, reviewed_by="ann")
        with pytest.raises(BadInput, match="is not a bulk action"):
            review_queue.review_in_bulk(session, kept, "edit", expected=3, reviewed_by="ann")
        dropped = QueueFilter(run_id=run_id, verdict="dropped")
        done = review_queue.review_in_bulk(
            session, dropped, "reject", expected=3, reviewed_by="ann", reason="dropped"
        )
        assert done == 3
        review_queue.review_in_bulk(
            session,
            QueueFilter(run_id=run_id, verdict="kept"),
            "approve",
            expected=4,
            reviewed_by="ann",
        )
        session.commit()
    with store.read() as session:
        assert count_reviews(session, run_id) == {"approve": 4, "reject": 3}
        assert [row.reviewed_by for row in list_reviews(session, first)] == ["ann", "bob"]
        assert [row.is_current for row in list_reviews(session, first)] == [True, False]
        audit = session.scalars(select(Event).where(Event.name == "review.bulk_reject")).one()
        assert (audit.actor, audit.subject) == ("ann", f"run {run_id}")
        assert audit.data == {"groups": 3, "filter": {"verdict": "dropped"}}


def test_unfinished_groups_are_in_no_queue(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store, kept=2, dropped=0, unwritten=0)
    with sqlite_store.write() as session:
        group = session.get_one(Group, group_ids(sqlite_store, run_id)[0])
        group.state, group.verdict = "waiting", None
        session.commit()
        assert review_queue.count_matching(session, QueueFilter(run_id=run_id), reviewer="ann") == 1
        review_queue.show_verdicts(session, run_id, True, actor="cora")
        assert session.get_one(Run, run_id).verdicts_shown
    assert listed(sqlite_store, QueueFilter(run_id=run_id))[1] == 1
    in_work = QueueFilter(run_id=run_id, status="unfinished")
    assert listed(sqlite_store, in_work) == ([group.id], 1), "but a curator's filter finds them"
    with pytest.raises(Refused, match="without verdicts"):
        listed(sqlite_store, in_work, blind=True)
    with sqlite_store.read() as session:
        assert review_queue.preview_bulk(session, in_work, "approve", reviewer="ann").groups == 0
        for may, found in ((True, {group.id}), (False, set[int]())):
            of_ann = review_queue.reviewable(
                session, run_id, [group.id], reviewer="ann", blind=False, in_work=may
            )
            assert of_ann == found


def test_groups_are_listed_by_their_release_and_the_model_trained_on_it(
    sqlite_store: Store,
) -> None:
    run_id = make_run(sqlite_store, kept=3, dropped=0, unwritten=0)
    one, two, _ = group_ids(sqlite_store, run_id)
    with sqlite_store.write() as session:
        dataset_id = session.get_one(Run, run_id).dataset_id
        for group_id in (one, two):
            facts = {"name": f"r{group_id}", "content_sha256": str(group_id)}
            release = add_release(session, dataset_id, group_id, **facts)
        record_checkpoint(
            session, path="/m", base_model="b", config={}, summary={}, release_id=release.id
        )
        session.commit()
    assert listed(sqlite_store, QueueFilter(run_id=run_id, status="released")) == ([one, two], 2)
    assert listed(sqlite_store, QueueFilter(run_id=run_id, status="trained")) == ([two], 1)
    with sqlite_store.read() as session:
        kept = kept_groups(session, run_id)
    assert sum(each.groups for each in kept if each.is_released) == 2
    assert sum(each.groups for each in kept if each.is_used) == 1


def test_the_command_reviews_many_only_when_told_yes(sqlite_store: Store, inf: Inf) -> None:
    run_id = make_run(sqlite_store, kept=3, dropped=2, unwritten=1)
    kept = ("review", "many", "--run", run_id, "--verdict", "kept", "--approve")
    asked = inf(*kept, "--json")
    assert asked.json == {"run_id": run_id, "action": "approve", "groups": 3, "done": False}
    assert "add --yes to do it" in inf(*kept).out
    with sqlite_store.read() as session:
        assert count_reviews(session, run_id) == {}
    assert inf(*kept, "--yes", "--json").json["done"] is True
    rest = ("--run", run_id, "--reviewed", "none", "--reject")
    assert inf("review", "many", *rest, "--yes").code == 2  # no reason
    done = inf("review", "many", *rest, "--reason", "dropped anyway", "--yes", "--json")
    assert done.json["groups"] == 3
    with sqlite_store.read() as session:
        assert count_reviews(session, run_id) == {"approve": 3, "reject": 3}
        rows = session.scalars(select(Event).order_by(Event.id)).all()
        assert [row.name for row in rows] == ["review.bulk_approve", "review.bulk_reject"]
        assert all(row.actor.startswith("cli:") for row in rows)
    empty = inf("review", "many", *rest, "--reason", "again", "--yes", "--json")
    assert (empty.code, empty.json["error"]) == (
        1,
        "the filter matches no group: choose a wider filter",
    )
    unknown = inf("review", "many", "--run", run_id, "--drop-reason", "ugly", "--approve")
    assert unknown.code == 1 and "no drop reason 'ugly'" in unknown.err
    assert inf("review", "many", "--run", 99, "--approve", "--json").json["code"] == "run_unknown"


def test_the_command_lets_annotators_see_verdicts(sqlite_store: Store, inf: Inf) -> None:
    run_id = make_run(sqlite_store, kept=1, dropped=1)

    def shown(*words: str) -> bool:
        result = inf("review", "verdicts", "--run", run_id, *words, "--json").json["verdicts_shown"]
        with sqlite_store.read() as session:
            assert session.get_one(Run, run_id).verdicts_shown is result
        return bool(result)

    assert [shown(), shown("--show"), shown(), shown("--hide")] == [False, True, True, False]
    with sqlite_store.read() as session:
        assert [row.name for row in session.scalars(select(Event))] == ["review.verdicts"] * 2
