"""Leases of who only looks, what is left, threads, own answers, and the work report."""

from datetime import UTC, datetime, timedelta

import pytest
from leases import lease_items
from sqlalchemy import select
from study_world import backdate_leases, make_world, sampled_study

from db.answers import own_answers
from db.assignment import answering, threads
from db.assignment.answering import Decision, times_within
from db.assignment.progress import own_progress
from db.assignment.reassigning import reassign
from db.assignment.standing import standing
from db.errors import BadInput, Refused
from db.review.reviews import approve_group
from db.store.store import Store
from db.study import blind_adjudication, studies
from db.study.blind_adjudication import record_view
from db.study.judgments import get_or_create_judge
from db.study.work import active_seconds, work_report
from db.tables import Assignment, Event, Item, StudyItem, utc_now


@pytest.fixture
def study_id(sqlite_store: Store) -> int:
    """Four items, one judge each."""
    run_id = make_world(sqlite_store, 4)
    with sqlite_store.write() as session:
        found = sampled_study(session, run_id=run_id, items=4, overlap=1).id
        session.commit()
    return found


def judge(store: Store, name: str) -> int:
    with store.write() as session:
        found = get_or_create_judge(session, name, kind="person").id
        session.commit()
        return found


def lease(store: Store, study_id: int, judge_id: int, count: int, minutes: float = 0) -> list[int]:
    with store.write() as session:
        now = utc_now() + timedelta(minutes=minutes)
        items = lease_items(session, study_id, judge_id, count, now=now)
        session.commit()
        return [item.item_id for item in items]


def answer(store: Store, study_id: int, judge_id: int, item_id: int, **about: object) -> None:
    with store.write() as session:
        decision = Decision(f"{judge_id}-{item_id}", item_id, 0, **about)  # type: ignore[arg-type]
        answering.submit_decision(session, study_id, judge_id, decision)
        session.commit()


def lease_seconds(store: Store, judge_id: int) -> float:
    """How long the judge holds their leases from now on."""
    with store.read() as session:
        query = select(Assignment.lease_until).where(
            Assignment.judge_id == judge_id, Assignment.state == "leased"
        )
        return min((until - utc_now()).total_seconds() for until in session.scalars(query) if until)


def test_who_only_looks_holds_nothing_after_two_minutes(sqlite_store: Store, study_id: int) -> None:
    ann, bob = judge(sqlite_store, "ann"), judge(sqlite_store, "bob")
    assert len(lease(sqlite_store, study_id, ann, 4)) == 4
    assert lease(sqlite_store, study_id, bob, 4, minutes=1.9) == []
    assert len(lease(sqlite_store, study_id, bob, 4, minutes=2.1)) == 4


def test_who_answers_holds_the_next_items_for_ten_minutes(
    sqlite_store: Store, study_id: int
) -> None:
    ann, bob = judge(sqlite_store, "ann"), judge(sqlite_store, "bob")
    answer(sqlite_store, study_id, ann, lease(sqlite_store, study_id, ann, 1)[0])
    assert len(lease(sqlite_store, study_id, ann, 3)) == 3
    assert lease(sqlite_store, study_id, bob, 3, minutes=9.9) == []
    assert len(lease(sqlite_store, study_id, bob, 3, minutes=10.1)) == 3


@pytest.mark.parametrize("hours_slow", [0.5, 24 * 365])
def test_whose_clock_is_slow_holds_the_next_items_for_ten_minutes(
    sqlite_store: Store, study_id: int, hours_slow: float
) -> None:
    ann = judge(sqlite_store, "ann")
    (item,) = lease(sqlite_store, study_id, ann, 1)
    decided = utc_now() - timedelta(hours=hours_slow)
    answer(sqlite_store, study_id, ann, item, decided_at=decided)
    lease(sqlite_store, study_id, ann, 1)
    assert lease_seconds(sqlite_store, ann) == pytest.approx(600, abs=60)


def test_a_slow_reader_whose_places_are_taken_gets_longer_leases_all_the_same(
    sqlite_store: Store, study_id: int
) -> None:
    ann, bob = judge(sqlite_store, "ann"), judge(sqlite_store, "bob")
    (late,) = lease(sqlite_store, study_id, ann, 1)
    for item in lease(sqlite_store, study_id, bob, 1, minutes=2.1):
        assert item == late
        answer(sqlite_store, study_id, bob, item)
    answer(sqlite_store, study_id, ann, late)
    with sqlite_store.read() as session:
        query = select(Assignment.state).where(Assignment.judge_id == ann)
        assert session.scalars(query).all() == ["aside"]
    lease(sqlite_store, study_id, ann, 1)
    assert lease_seconds(sqlite_store, ann) == pytest.approx(600, abs=60)


def test_opening_the_page_does_not_shorten_what_was_reassigned(
    sqlite_store: Store, study_id: int
) -> None:
    ann, bob = judge(sqlite_store, "ann"), judge(sqlite_store, "bob")
    lease(sqlite_store, study_id, ann, 2)
    with sqlite_store.write() as session:
        reassign(session, study_id, ann, bob)
        session.commit()
    lease(sqlite_store, study_id, bob, 2)
    with sqlite_store.read() as session:
        query = select(Assignment.lease_until).where(Assignment.judge_id == bob)
        assert min(until - utc_now() for until in session.scalars(query) if until) > timedelta(
            hours=23
        )


def test_the_count_of_what_is_left_leaves_out_pairs_the_judge_knows(
    sqlite_store: Store, study_id: int
) -> None:
    ann = judge(sqlite_store, "ann")
    with sqlite_store.write() as session:
        query = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        approve_group(session, session.scalars(query).all()[0], reviewed_by="ann")
        assert own_progress(session, study_id, ann).left == 3
        session.commit()
    assert len(lease(sqlite_store, study_id, ann, 4)) == 3
    with sqlite_store.read() as session:
        assert own_progress(session, study_id, ann).left == 3


def test_a_reason_is_stored_and_an_unknown_one_refused(sqlite_store: Store, study_id: int) -> None:
    ann = judge(sqlite_store, "ann")
    first, second = lease(sqlite_store, study_id, ann, 2)
    with pytest.raises(BadInput, match="no reason"):
        answer(sqlite_store, study_id, ann, first, flagged=True, reason="it is tuesday")
    answer(sqlite_store, study_id, ann, first, flagged=True, reason="bad_text")
    with sqlite_store.write() as session:
        answering.skip_item(session, standing(session, study_id, ann), second, reason="unclear")
        session.commit()
        skipped = session.scalars(select(Assignment).where(Assignment.item_id == second)).one()
        assert (skipped.reason, skipped.ended_at is not None) == ("unclear", True)
        (mine,) = own_answers.own_answers(session, study_id, ann)
        assert (mine.reason, mine.flagged, mine.position) == ("bad_text", True, 0)


def test_a_thread_is_its_judges_and_curators_alone(sqlite_store: Store, study_id: int) -> None:
    ann, bob = judge(sqlite_store, "ann"), judge(sqlite_store, "bob")
    (item,) = lease(sqlite_store, study_id, ann, 1)
    with sqlite_store.write() as session:
        with pytest.raises(Refused, match="never given"):
            threads.write_as_judge(session, study_id, bob, item, "let me in", event_id="b")
        for _ in range(2):  # sent twice
            threads.write_as_judge(session, study_id, ann, item, " Is it tea? ", event_id="a")
        threads.write_as_curator(session, study_id, ann, item, "It is.", by="cora", event_id="c")
        assert [one.body for one in threads.messages_of(session, study_id, ann, [item])[item]] == [
            "Is it tea?",
            "It is.",
        ]
        written = select(Event.actor).where(Event.name == "study.message").order_by(Event.id)
        assert session.scalars(written).all() == ["ann", "cora"]
        assert threads.messages_of(session, study_id, bob, [item]) == {}
        assert threads.unread_replies(session, study_id, ann) == [item]
        (listed,) = own_answers.own_answers(session, study_id, ann, only="thread")
        assert (listed.state, len(listed.thread)) == ("leased", 2)
        threads.mark_read(session, study_id, ann, [item], by_judge=True)
        assert threads.unread_replies(session, study_id, ann) == []
        assert [one.unread for one in threads.list_threads(session, study_id)] == [1]
        studies.set_status(session, study_id, "closed")
        with pytest.raises(Refused, match="closed"):
            threads.write_as_judge(session, study_id, ann, item, "more", event_id="d")


def test_adjudicators_read_threads_of_a_closed_study_only_and_without_names(
    sqlite_store: Store, study_id: int
) -> None:
    ann = judge(sqlite_store, "ann")
    item, unanswered = lease(sqlite_store, study_id, ann, 2)
    answer(sqlite_store, study_id, ann, item)
    with sqlite_store.write() as session:
        for number, each in enumerate((item, unanswered)):
            threads.write_as_judge(session, study_id, ann, each, "Is 2 tea?", event_id=f"a{number}")
        threads.write_as_curator(session, study_id, ann, item, "It is.", by="cora", event_id="c")

        def seen() -> blind_adjudication.BlindItem:
            return blind_adjudication.view_item(session, study_id, item, "dora")

        def listed() -> list[int]:
            return blind_adjudication.ids_to_adjudicate(session, study_id, "dora")

        assert seen().threads == () and listed() == []
        studies.set_status(session, study_id, "closed")
        (thread,) = seen().threads
        assert sorted(listed()) == sorted([item, unanswered])
        assert thread.messages == (("judge", "Is 2 tea?"), ("curator", "It is."))
        shown = threads.shown_to_judge(session, study_id, ann, item)
        moved = tuple(seen().candidates[place] for place in thread.places)
        assert moved == shown.candidates  # "2" of the message is the second of these
        blind_adjudication.reveal(session, study_id, seen().token, "dora")
        (thread,) = seen().threads
        assert thread.messages == (("ann", "Is 2 tea?"), ("cora", "It is."))


def test_a_message_is_never_dropped_for_an_event_of_another(
    sqlite_store: Store, study_id: int
) -> None:
    ann, bob = judge(sqlite_store, "ann"), judge(sqlite_store, "bob")
    first, second = lease(sqlite_store, study_id, ann, 2)
    (third,) = lease(sqlite_store, study_id, bob, 1)
    with sqlite_store.write() as session:
        write = threads.write_as_judge
        write(session, study_id, ann, first, "Is it tea?", event_id="a")
        for person, item, body in (
            (bob, third, "Is it tea?"),
            (ann, second, "Is it tea?"),
            (ann, first, "Or rain?"),  # a second tab, whose form has the same number
        ):
            with pytest.raises(Refused, match="another message"):
                write(session, study_id, person, item, body, event_id="a")
        write(session, study_id, ann, first, "Is it tea? ", event_id="a")  # sent again
        (only,) = threads.messages_of(session, study_id, ann, [first])[first]
        assert only.body == "Is it tea?"


@pytest.mark.parametrize("body", ["half \ud83d", "\udc00", "\x00", " \x00 "])
def test_a_message_that_no_store_holds_is_refused_in_words(
    sqlite_store: Store, study_id: int, body: str
) -> None:
    ann = judge(sqlite_store, "ann")
    (item,) = lease(sqlite_store, study_id, ann, 1)
    with sqlite_store.write() as session:
        with pytest.raises(BadInput, match=r"half a character|needs a text"):
            threads.write_as_judge(session, study_id, ann, item, body, event_id="a")
        threads.write_as_judge(session, study_id, ann, item, "tea", event_id="a")
        with pytest.raises(BadInput, match=r"half a character|needs a text"):
            threads.write_as_curator(session, study_id, ann, item, body, by="cora", event_id="b")


def test_a_curator_who_opens_a_thread_loses_its_item_and_frees_its_place(
    sqlite_store: Store,
) -> None:
    run_id = make_world(sqlite_store, 4)
    with sqlite_store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=1, overlap=2).id
        session.commit()
    ann, cora, bob = (judge(sqlite_store, name) for name in ("ann", "cora", "bob"))
    (item,) = lease(sqlite_store, study_id, ann, 1)
    assert lease(sqlite_store, study_id, cora, 1) == [item]
    assert lease(sqlite_store, study_id, bob, 1) == []
    with sqlite_store.write() as session:
        threads.write_as_judge(session, study_id, ann, item, "Is it 2?", event_id="a")
        record_view(session, study_id, item, "cora")
        session.commit()
    assert lease(sqlite_store, study_id, cora, 1) == []
    assert lease(sqlite_store, study_id, bob, 1) == [item]
    with pytest.raises(Refused, match="seen others' choices"):
        answer(sqlite_store, study_id, cora, item)
    answer(sqlite_store, study_id, ann, item)  # whose thread it is answers as before


def test_own_answers_go_back_from_a_token_and_may_change_while_the_study_is_open(
    sqlite_store: Store, study_id: int
) -> None:
    ann = judge(sqlite_store, "ann")
    items = lease(sqlite_store, study_id, ann, 3)
    for item in items:
        answer(sqlite_store, study_id, ann, item)
    with sqlite_store.write() as session:
        found = own_answers.own_answers(session, study_id, ann)
        assert [one.item.item_id for one in found] == items[::-1]
        assert all(one.may_change for one in found)
        older = own_answers.own_answers(session, study_id, ann, before=found[0].item.token)
        assert [one.item.item_id for one in older] == items[1::-1]
        assert own_answers.count_answers(session, study_id, ann) == 3
        studies.set_status(session, study_id, "paused")
        assert not any(one.may_change for one in own_answers.own_answers(session, study_id, ann))


def at(minutes: float) -> datetime:
    return datetime(2026, 11, 22, 9, 0, tzinfo=UTC) + timedelta(minutes=minutes)


def test_active_time_counts_two_tabs_once_and_no_lunch() -> None:
    # 0–2 and 1–3 overlap: 3 min. 10–70 is cut to its last 5: 65–70. In all 8 min.
    assert active_seconds([(at(1), at(3)), (at(0), at(2)), (at(10), at(70))]) == 8 * 60
    assert active_seconds([]) == 0


def test_forged_times_are_paid_no_longer_than_the_item_was_held(
    sqlite_store: Store, study_id: int
) -> None:
    ann = judge(sqlite_store, "ann")
    items = lease(sqlite_store, study_id, ann, 4)
    with sqlite_store.write() as session:
        backdate_leases(session, minutes=1)
        session.commit()
    now = utc_now()
    for number, item in enumerate(items[:3]):  # an hour each, one after the other
        shown, decided = now - timedelta(hours=9 - number), now - timedelta(hours=8 - number)
        answer(sqlite_store, study_id, ann, item, shown_at=shown, decided_at=decided)
    with sqlite_store.write() as session:
        shown = now - timedelta(days=9)
        answering.skip_item(session, standing(session, study_id, ann), items[3], shown_at=shown)
        session.commit()
        (row,) = work_report(session, study_id=study_id)
        assert row.active_minutes == pytest.approx(1, abs=0.5)
        assert row.first_at is not None and now - row.first_at < timedelta(minutes=1.5)


def test_changing_an_answer_again_and_again_makes_no_minutes(
    sqlite_store: Store, study_id: int
) -> None:
    """The attack: one item, leased on Monday; each change states another five minutes since."""
    ann = judge(sqlite_store, "ann")
    (item,) = lease(sqlite_store, study_id, ann, 1)
    with sqlite_store.write() as session:
        backdate_leases(session, minutes=24 * 60)
        session.commit()
    start = utc_now() - timedelta(hours=20)
    with sqlite_store.write() as session:
        for number in range(1 + answering.MAX_CHANGES):
            shown = start + number * timedelta(minutes=5)
            decision = Decision(
                f"change {number}",
                item,
                number % 2,
                shown_at=shown,
                decided_at=shown + timedelta(minutes=5),
                change=True,
            )
            answering.submit_decision(session, study_id, ann, decision)
        (work,) = work_report(session, study_id=study_id)
    assert (work.items, work.changed, work.active_minutes) == (1, answering.MAX_CHANGES, 5.0)


@pytest.mark.parametrize(
    ("shown", "decided", "stored"),
    [
        (at(2), at(5), (at(2), at(5))),  # honest
        (at(2), None, (at(2), at(10))),
        (None, at(5), (None, at(5))),
        (None, None, (None, at(10))),
        (at(62), at(65), (at(7), at(10))),  # an hour ahead: 3 min, ending when it was received
        (at(-58), at(-55), (at(7), at(10))),  # an hour slow
        (at(-1), at(5), (at(4), at(10))),  # shown before it was given
        (at(-500), at(500), (at(0), at(10))),
        (at(5), at(2), (at(10), at(10))),
        (at(-5), None, (at(0), at(10))),
        (at(50), None, (at(10), at(10))),
        (None, at(50), (None, at(10))),
        (None, at(-50), (None, at(10))),
    ],
)
def test_times_of_a_browser_lie_between_lease_and_receipt(
    shown: datetime | None,
    decided: datetime | None,
    stored: tuple[datetime | None, datetime],
) -> None:
    assert times_within(shown, decided, leased_at=at(0), now=at(10)) == stored


def test_the_work_report_counts_items_skips_and_minutes(sqlite_store: Store, study_id: int) -> None:
    ann = judge(sqlite_store, "ann")
    first, second, third = lease(sqlite_store, study_id, ann, 3)
    now = utc_now()
    with sqlite_store.write() as session:
        backdate_leases(session, minutes=11)
        session.commit()
    for number, item in enumerate((first, second)):
        begun = now - timedelta(minutes=10 - 2 * number)
        answer(
            sqlite_store,
            study_id,
            ann,
            item,
            shown_at=begun,
            decided_at=begun + timedelta(minutes=1),
        )
    with sqlite_store.write() as session:
        answering.skip_item(
            session,
            standing(session, study_id, ann),
            third,
            shown_at=now - timedelta(minutes=3),
            reason="unclear",
        )
        session.commit()
        (row,) = work_report(session, study_id=study_id)
        assert (row.person, row.items, row.skipped) == ("ann", 2, 1)
        assert row.active_minutes == pytest.approx(1 + 1 + 3, abs=0.2)
        assert work_report(session, since=(now + timedelta(days=1)).date()) == []
