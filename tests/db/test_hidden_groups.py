"""Whoever may judge an item of a group sees nothing of the group elsewhere."""

import pytest
from leases import next_item
from records_world import list_groups
from sqlalchemy import func, select
from sqlite_steps import steps_counted
from study_world import make_world, sampled_study

from db.assignment import answering, hidden, members
from db.assignment.answering import Decision
from db.errors import Refused
from db.review import queue
from db.review.queue import QueueFilter
from db.review.reviews import approve_group, reject_group
from db.run.comparison import changed_pairs
from db.run.group_detail import get_group
from db.store.store import Store
from db.study import rules, studies
from db.study.judgments import get_or_create_judge
from db.tables import Assignment, Event, Group, Item, OpenedGroup, Pair, Review, Run, StudyItem

GROUPS = 6


def make_study(store: Store, *, items: int = 4, overlap: int = 2) -> tuple[int, int]:
    """A run of six groups and a study with one item of four of them."""
    run_id = make_world(store, GROUPS)
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=items, overlap=overlap).id
        session.commit()
    return run_id, study_id


def groups_of(store: Store, study_id: int) -> set[int]:
    with store.read() as session:
        query = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        return set(session.scalars(query.where(StudyItem.study_id == study_id)))


def hidden_from(store: Store, person: str) -> set[int]:
    with store.read() as session:
        return set(session.scalars(hidden.hidden_groups(session, person)))


def lease(store: Store, study_id: int, person: str) -> int | None:
    with store.write() as session:
        judge_id = get_or_create_judge(session, person, kind="person").id
        item = next_item(session, study_id, judge_id)
        session.commit()
        return None if item is None else item.item_id


def answer(store: Store, study_id: int, person: str, item_id: int, **about: object) -> None:
    with store.write() as session:
        judge_id = get_or_create_judge(session, person, kind="person").id
        event = f"{person} {item_id} {about}"
        decision = Decision(event, item_id, 0, **about)  # type: ignore[arg-type]
        answering.submit_decision(session, study_id, judge_id, decision)
        session.commit()


def open_all(store: Store, person: str, *group_ids: int) -> int:
    with store.write() as session:
        opened = hidden.open_groups(session, group_ids, person=person)
        session.commit()
        return opened


def test_the_groups_of_a_study_are_hidden_before_an_item_is_given(store: Store) -> None:
    _, study_id = make_study(store)
    assert hidden_from(store, "ann") == groups_of(store, study_id)
    assert len(hidden_from(store, "ann")) == 4


@pytest.mark.parametrize(("status", "count"), [("open", 4), ("paused", 4), ("closed", 0)])
def test_they_are_hidden_until_the_study_is_closed(store: Store, status: str, count: int) -> None:
    _, study_id = make_study(store)
    item_id = lease(store, study_id, "ann")
    assert item_id is not None
    answer(store, study_id, "ann", item_id)
    with store.write() as session:
        studies.set_status(session, study_id, status)
        session.commit()
    assert len(hidden_from(store, "ann")) == count


def test_a_study_for_members_hides_its_groups_from_its_members_only(store: Store) -> None:
    _, study_id = make_study(store)
    lease(store, study_id, "ann")
    with store.write() as session:
        rules.set_rules(session, study_id, members_only=True)
        session.commit()
    assert len(hidden_from(store, "ann")) == 4 and hidden_from(store, "bob") == set()


def test_every_query_that_shows_groups_leaves_out_hidden_ones(store: Store) -> None:
    run_id, study_id = make_study(store)
    secret = groups_of(store, study_id)
    with store.read() as session:
        for blind in (True, False):
            listed = queue.listed_groups(
                session, QueueFilter(run_id=run_id), viewer="ann", blind=blind, offset=0, limit=100
            )
            assert not secret & {row.id for row in listed.rows}
            assert listed.total <= GROUPS - len(secret)
            for group_id in secret:
                assert (
                    queue.place_in_list(
                        session, QueueFilter(run_id=run_id), group_id, viewer="ann", blind=blind
                    )
                    is None
                )
                assert not queue.can_review(session, group_id, reviewer="ann", blind=blind)
        page = list_groups(session, run_id, viewer="ann")
        assert page.total == len(page.rows) == GROUPS - len(secret)
        assert not changed_pairs(
            session, run_id, run_id, without=hidden.hidden_pair(session, "ann", Pair.id)
        )
        for group_id in secret:
            with pytest.raises(Refused, match="hidden from you"):
                get_group(session, group_id, viewer="ann")
            assert get_group(session, group_id).id == group_id


def test_a_search_does_not_find_a_hidden_group(store: Store) -> None:
    run_id, study_id = make_study(store)
    with store.read() as session:
        secret = min(groups_of(store, study_id))
        query = get_group(session, secret).query
        assert list_groups(session, run_id, search=query).total == 1
        assert list_groups(session, run_id, search=query, viewer="ann").total == 0


def test_who_opened_a_group_is_never_given_its_items(store: Store) -> None:
    _, study_id = make_study(store, items=1, overlap=1)
    (group_id,) = groups_of(store, study_id)
    assert lease(store, study_id, "cora") is not None
    assert open_all(store, "cora", group_id) == 1
    assert lease(store, study_id, "cora") is None
    assert lease(store, study_id, "ann") is not None  # the place went back to the queue
    assert hidden_from(store, "cora") == set() and hidden_from(store, "ann") == {group_id}
    with store.read() as session:
        assert get_group(session, group_id, viewer="cora").id == group_id
        (audit,) = session.scalars(select(Event).where(Event.name == "group.open"))
        assert (audit.actor, audit.subject) == ("cora", f"group {group_id}")


def test_opening_twice_is_recorded_once_and_a_visible_group_not_at_all(store: Store) -> None:
    run_id, study_id = make_study(store)
    secret = groups_of(store, study_id)
    with store.read() as session:
        every = session.scalars(select(Group.id).where(Group.run_id == run_id)).all()
    assert open_all(store, "cora", *every) == len(secret)
    assert open_all(store, "cora", *every) == 0
    with store.read() as session:
        assert set(session.scalars(select(OpenedGroup.group_id))) == secret


def test_an_answer_given_before_opening_stays_and_can_no_longer_be_changed(store: Store) -> None:
    _, study_id = make_study(store, items=1, overlap=1)
    item_id = lease(store, study_id, "cora") or 0
    answer(store, study_id, "cora", item_id)
    answer(store, study_id, "cora", item_id, change=True, note="second thought")
    open_all(store, "cora", *groups_of(store, study_id))
    with pytest.raises(Refused, match="opened this item's group"):
        answer(store, study_id, "cora", item_id, change=True, note="third")
    answer(store, study_id, "cora", item_id)  # sent again: known, so it is answered as before
    with store.read() as session:
        assert session.scalars(select(Assignment.state)).all() == ["done"]


def test_an_answer_that_arrives_after_opening_is_refused(store: Store) -> None:
    _, study_id = make_study(store, items=1, overlap=1)
    item_id = lease(store, study_id, "cora") or 0
    open_all(store, "cora", *groups_of(store, study_id))
    with pytest.raises(Refused, match="opened this item's group"):
        answer(store, study_id, "cora", item_id)


def test_who_reviewed_a_group_before_the_study_goes_on_seeing_it(store: Store) -> None:
    run_id = make_world(store, GROUPS)
    with store.write() as session:
        group_id = session.scalars(select(Group.id).order_by(Group.id)).first() or 0
        approve_group(session, group_id, reviewed_by="ann")
        study_id = sampled_study(session, run_id=run_id, items=GROUPS, overlap=1).id
        session.commit()
    assert hidden_from(store, "ann") == groups_of(store, study_id) - {group_id}
    while (item_id := lease(store, study_id, "ann")) is not None:
        with store.read() as session:
            assert session.get_one(Item, item_id).group_id != group_id
        answer(store, study_id, "ann", item_id)


def test_a_bulk_review_neither_counts_nor_reviews_hidden_groups(store: Store) -> None:
    run_id, study_id = make_study(store)
    wanted = QueueFilter(run_id=run_id)
    with store.write() as session:
        assert queue.count_matching(session, wanted, reviewer="cora") == GROUPS - 4
        done = queue.review_in_bulk(
            session, wanted, "approve", expected=GROUPS - 4, reviewed_by="cora"
        )
        session.commit()
        assert done == GROUPS - 4
        reviewed = set(session.scalars(select(Review.group_id)))
    assert not reviewed & groups_of(store, study_id)


def second_run(store: Store, run_id: int) -> int:
    """Another run of the same pairs, with the same texts."""
    with store.write() as session:
        first = session.get_one(Run, run_id)
        run = Run(
            dataset_id=first.dataset_id,
            recipe_id=first.recipe_id,
            provider="offline",
            offline=True,
            status="done",
            finished_at=first.finished_at,
        )
        session.add(run)
        session.flush()
        for group in session.scalars(select(Group).where(Group.run_id == run_id)).all():
            twin = Group(
                run_id=run.id,
                pair_id=group.pair_id,
                state="done",
                stage="validation",
                verdict=group.verdict,
                drop_reason=group.drop_reason,
            )
            session.add(twin)
            session.flush()
            session.add_all(
                Item(
                    group_id=twin.id,
                    scenario=item.scenario,
                    expected=item.expected,
                    instruction=item.instruction,
                    query=item.query,
                    candidates=item.candidates,
                )
                for item in session.scalars(select(Item).where(Item.group_id == group.id)).all()
            )
        session.commit()
        return run.id


def twin_of(store: Store, group_id: int, run_id: int) -> int:
    with store.read() as session:
        pair_id = session.get_one(Group, group_id).pair_id
        query = select(Group.id).where(Group.run_id == run_id, Group.pair_id == pair_id)
        return session.scalars(query).one()


def test_groups_of_the_same_pairs_in_another_run_are_hidden(store: Store) -> None:
    run_id, study_id = make_study(store)
    other = second_run(store, run_id)
    secret = groups_of(store, study_id)
    twins = {twin_of(store, group_id, other) for group_id in secret}
    assert hidden_from(store, "ann") == secret | twins
    with store.read() as session:
        assert hidden.count_hidden(session, other, "ann") == len(twins)
        for group_id in twins:
            with pytest.raises(Refused, match="hidden from you"):
                get_group(session, group_id, viewer="ann")


@pytest.mark.parametrize("about", ["opened", "reviewed"])
def test_who_knows_a_group_of_another_run_is_not_given_its_pair(store: Store, about: str) -> None:
    run_id = make_world(store, GROUPS)
    other = second_run(store, run_id)
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=1, overlap=1).id
        session.commit()
    (group_id,) = groups_of(store, study_id)
    twin = twin_of(store, group_id, other)
    if about == "opened":
        item_id = lease(store, study_id, "cora") or 0
        assert open_all(store, "cora", twin) == 1
        with pytest.raises(Refused, match="opened this item's group"):
            answer(store, study_id, "cora", item_id)
        assert lease(store, study_id, "cora") is None
    else:
        with store.write() as session:
            reject_group(session, twin, reason="false", reviewed_by="bob")
            session.commit()
        assert lease(store, study_id, "bob") is None
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(OpenedGroup)) == (about == "opened")


def test_all_hidden_groups_of_a_run_are_opened_at_once(store: Store) -> None:
    run_id, study_id = make_study(store)
    assert lease(store, study_id, "cora") is not None
    with store.write() as session:
        assert hidden.open_run(session, run_id, person="cora") == 4
        assert hidden.open_run(session, run_id, person="cora") == 0
        session.commit()
    assert hidden_from(store, "cora") == set() and lease(store, study_id, "cora") is None


def test_a_closed_study_is_not_opened_again(store: Store) -> None:
    _, study_id = make_study(store)
    with store.write() as session:
        studies.set_status(session, study_id, "closed")
        for status in ("open", "paused"):
            with pytest.raises(Refused, match="has shown its answers"):
                studies.set_status(session, study_id, status)
        assert studies.set_status(session, study_id, "closed").status == "closed"


@pytest.mark.parametrize("who", ["study", "judge"])
def test_no_answer_is_changed_while_the_study_or_the_judge_is_paused(
    store: Store, who: str
) -> None:
    _, study_id = make_study(store, items=1, overlap=1)
    item_id = lease(store, study_id, "ann") or 0
    answer(store, study_id, "ann", item_id)
    with store.write() as session:
        if who == "study":
            studies.set_status(session, study_id, "paused")
        else:
            judge_id = get_or_create_judge(session, "ann", kind="person").id
            members.pause_judge(session, study_id, judge_id, "a break")
        session.commit()
    with pytest.raises(Refused, match="is paused: the answer given before stands"):
        answer(store, study_id, "ann", item_id, change=True, note="second thought")


def test_a_group_read_before_there_was_a_study_is_never_given_to_who_read_it(store: Store) -> None:
    """The attack: read the roles on Groups or Review first, join the study afterwards."""
    run_id = make_world(store, GROUPS)
    with store.write() as session:
        groups = list(session.scalars(select(Group.id).where(Group.run_id == run_id)))
        for _ in range(2):
            hidden.record_read(session, groups[:2], "ann")
        assert session.scalar(select(func.count()).select_from(OpenedGroup)) == 2
        study_id = sampled_study(session, run_id=run_id, items=GROUPS, overlap=2).id
        session.commit()
    given: dict[str, set[int]] = {"ann": set(), "bob": set()}
    for person, items in given.items():
        while (item_id := lease(store, study_id, person)) is not None:
            answer(store, study_id, person, item_id)
            items.add(item_id)
    with store.read() as session:
        group_of = dict(session.execute(select(Item.id, Item.group_id)).all())
    assert {group_of[item_id] for item_id in given["ann"]} == set(groups[2:])
    assert len(given["bob"]) == GROUPS
    assert hidden_from(store, "ann") == set(groups[2:])


def test_listing_groups_beside_an_open_study_does_not_walk_its_items_for_each(
    sqlite_store: Store,
) -> None:
    """It took SQLite 34,600 steps for 60 groups and 40 items, and minutes for 100,000 groups."""
    run_id = make_world(sqlite_store, 60)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=40, overlap=1, name="open")
        session.commit()
    with sqlite_store.read() as session, steps_counted(session) as steps:
        found = queue.listed_groups(
            session, QueueFilter(run_id=run_id), viewer="ann", blind=False, offset=0, limit=50
        )
    assert found.total == 20
    assert steps.total < 12_000
