"""Quotas, messages to people, and how a person agrees with the others."""

from datetime import date
from itertools import combinations

import pytest
from leases import lease_items, next_item
from sqlalchemy import select
from study_world import make_world, sampled_study

from db.answers import announcements
from db.assignment import members, progress
from db.assignment.answering import Decision, submit_decision
from db.errors import BadInput, NotFound, Refused
from db.store.store import Store
from db.study import quality, studies
from db.study.judgments import get_or_create_judge
from db.tables import Assignment, Judgment, StudyItem


def make_study(store: Store, items: int = 6, overlap: int = 2) -> int:
    run_id = make_world(store, max(items, 4))
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=items, overlap=overlap)
        session.commit()
        return study.id


def join(store: Store, study_id: int, *names: str) -> list[int]:
    with store.write() as session:
        ids = [get_or_create_judge(session, name, kind="person").id for name in names]
        for judge_id in ids:
            members.add_member(session, study_id, judge_id)
        session.commit()
        return ids


def set_share(store: Store, study_id: int, judge_id: int, quota: int | None) -> None:
    with store.write() as session:
        members.set_share(session, study_id, judge_id, quota=quota, due_on=None)
        session.commit()


def answer(store: Store, study_id: int, judge_id: int, position: int = 0) -> int | None:
    """Answer the next item; None where there is none, Refused as it is."""
    with store.write() as session:
        item = next_item(session, study_id, judge_id)
        if item is None:
            return None
        decision = Decision(f"{judge_id}-{item.item_id}", item.item_id, position)
        submit_decision(session, study_id, judge_id, decision)
        session.commit()
        return item.item_id


def test_nobody_is_given_more_than_their_quota_and_what_is_left_says_so(store: Store) -> None:
    study_id = make_study(store)
    ann, bob = join(store, study_id, "ann", "bob")
    set_share(store, study_id, ann, 3)
    with store.write() as session:
        assert len(lease_items(session, study_id, ann, 5)) == 3
        assert progress.own_progress(session, study_id, ann).left == 3
        assert progress.own_progress(session, study_id, bob).left == 6
        session.commit()
    for left in (2, 1, 0):
        assert answer(store, study_id, ann) is not None
        with store.read() as session:
            assert progress.own_progress(session, study_id, ann).left == left
    with pytest.raises(Refused) as refused:
        answer(store, study_id, ann)
    assert (refused.value.code, refused.value.values["quota"]) == ("quota_reached", 3)
    set_share(store, study_id, ann, 4)
    assert answer(store, study_id, ann) is not None
    set_share(store, study_id, ann, None)
    assert [answer(store, study_id, ann) is not None for _ in range(3)] == [True, True, False]


def test_a_lower_quota_leaves_what_is_held_and_gives_nothing_more(store: Store) -> None:
    study_id = make_study(store)
    (ann,) = join(store, study_id, "ann")
    with store.write() as session:
        lease_items(session, study_id, ann, 5)
        session.commit()
    set_share(store, study_id, ann, 0)
    for _ in range(5):
        assert answer(store, study_id, ann) is not None
    with pytest.raises(Refused, match="your share"):
        answer(store, study_id, ann)


def test_a_quota_keeps_a_due_date_and_a_due_date_a_quota(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store)
    (ann,) = join(sqlite_store, study_id, "ann")
    day = date(2026, 12, 4)
    with sqlite_store.write() as session:
        for quota, due_on in ((5, None), (None, day)):
            member = members.set_share(session, study_id, ann, quota=quota, due_on=due_on)
        assert (member.quota, member.due_on) == (5, day)
        member = members.set_share(session, study_id, ann, quota=None, due_on=None)
        assert (member.quota, member.due_on) == (None, None)


def test_a_message_to_everyone_reaches_who_joins_later_and_one_to_some_nobody_else(
    store: Store,
) -> None:
    study_id = make_study(store)
    ann, bob = join(store, study_id, "ann", "bob")
    with store.write() as session:
        announcements.announce(session, study_id, "to all", by="cora")
        announcements.announce(session, study_id, "to bob", by="cora", to=[bob, bob])
        session.commit()
    (cem,) = join(store, study_id, "cem")
    with store.write() as session:
        outside = get_or_create_judge(session, "dora", kind="person").id
        got = {who: announcements.received(session, study_id, who) for who in (ann, bob, cem)}
        assert [[one.body for one in rows] for rows in got.values()] == [
            ["to all"],
            ["to bob", "to all"],
            ["to all"],
        ]
        assert announcements.received(session, study_id, outside) == []
        for _ in range(2):
            announcements.mark_read(session, study_id, bob, got[bob][0].id)
        announcements.mark_read(session, study_id, ann, got[ann][0].id)
        session.commit()
    with store.read() as session:
        rows = announcements.sent(session, study_id)
        assert [(one.body, one.to, one.read) for one in rows] == [
            ("to bob", ("bob",), 1),
            ("to all", (), 2),
        ]
        assert [one.read_at for one in announcements.received(session, study_id, cem)] == [None]


def test_messages_are_refused_without_text_and_in_a_closed_study(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store)
    with sqlite_store.write() as session:
        with pytest.raises(BadInput, match="needs a text"):
            announcements.announce(session, study_id, " \x00", by="cora")
        studies.set_status(session, study_id, "closed")
        with pytest.raises(Refused, match="closed"):
            announcements.announce(session, study_id, "late", by="cora")
        with pytest.raises(NotFound):
            announcements.sent(session, study_id + 1)


def test_agreement_with_others_is_that_of_all_pairs_of_answers(store: Store) -> None:
    study_id = make_study(store, items=6, overlap=3)
    people = join(store, study_id, "ann", "bob", "cem")
    for number, judge_id in enumerate(people):
        for place in range(6 - number):
            answer(store, study_id, judge_id, (place * judge_id) % 3)
    with store.read() as session:
        made = session.execute(
            select(Judgment.judge_id, Judgment.item_id, Judgment.choice).where(Judgment.is_current)
        ).all()
        items = {item for _, item, _ in made}
        for without in (set(), {min(items)}, items):
            sums = {judge_id: [0, 0] for judge_id in people}
            for one, other in combinations(made, 2):
                if one.item_id == other.item_id and one.item_id not in without:
                    for judge_id in (one.judge_id, other.judge_id):
                        sums[judge_id][0] += one.choice == other.choice
                        sums[judge_id][1] += 1
            expected = {who: (same / pairs, pairs) for who, (same, pairs) in sums.items() if pairs}
            assert quality.agreement_with_others(session, study_id, without=without) == expected


def test_the_desk_counts_what_a_quota_counts(store: Store) -> None:
    study_id = make_study(store)
    (ann,) = join(store, study_id, "ann")
    set_share(store, study_id, ann, 4)
    for _ in range(2):
        answer(store, study_id, ann)
    with store.read() as session:
        (row,) = quality.judge_quality(session, study_id)
        held = session.scalars(select(Assignment.state)).all()
    assert (row.done, row.quota, row.leased) == (2, 4, held.count("leased"))


def test_a_model_that_is_given_nothing_is_done_with_what_it_judged(store: Store) -> None:
    study_id = make_study(store)
    with store.write() as session:
        model = get_or_create_judge(session, "some:model", kind="model").id
        items = session.scalars(select(StudyItem.item_id).filter_by(study_id=study_id)).all()
        for item_id in items[:3]:
            session.add(
                Judgment(
                    event_id=f"model-{item_id}",
                    item_id=item_id,
                    judge_id=model,
                    study_id=study_id,
                    choice="none",
                    order_shown=[],
                )
            )
        session.commit()
        (row,) = quality.judge_quality(session, study_id)
    assert (row.done, row.judged) == (3, 3)
