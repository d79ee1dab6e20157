"""The tour is shown the first time, to each person once, whatever ends it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.people.accounts import add_account
from db.people.tours import FIRST_TIME, begin_tour, end_tour, restart_tour, tour_of
from db.store.store import Store
from db.tables import Tour, utc_now
from db.values import LOCAL_ADMIN

PASSWORD = "correct horse battery"


def does(store: Store, action: Callable[[Session, str], None], person: str) -> None:
    with store.write() as session:
        action(session, person)
        session.commit()


def state(store: Store, person: str) -> str:
    with store.read() as session:
        return tour_of(session, person)


def test_a_tour_that_was_ended_never_comes_back_and_is_each_persons_own(store: Store) -> None:
    assert state(store, "ann") == "new"
    does(store, begin_tour, "ann")
    assert state(store, "ann") == "shown"
    does(store, end_tour, "ann")
    does(store, begin_tour, "ann")  # another tab, which was drawn before
    assert state(store, "ann") == "over"
    assert state(store, "tom") == "new"
    does(store, end_tour, "tom")  # of who was never recorded to see it: the store was locked
    assert state(store, "tom") == "over"


def test_a_tour_that_nobody_ended_is_over_after_the_first_time(store: Store) -> None:
    does(store, begin_tour, "ann")
    with store.write() as session:
        session.execute(update(Tour).values(created_at=utc_now() - FIRST_TIME + timedelta(hours=1)))
        session.commit()
    assert state(store, "ann") == "shown"
    with store.write() as session:
        session.execute(update(Tour).values(created_at=utc_now() - FIRST_TIME))
        session.commit()
    does(store, begin_tour, "ann")
    assert state(store, "ann") == "over"


@pytest.mark.parametrize("before", [begin_tour, end_tour])
def test_it_is_shown_again_to_who_asks_for_it_and_can_be_ended_again(
    store: Store, before: Callable[[Session, str], None]
) -> None:
    does(store, before, "ann")
    does(store, restart_tour, "ann")
    assert state(store, "ann") == "shown"
    does(store, end_tour, "ann")
    assert state(store, "ann") == "over"
    with store.read() as session:
        assert len(session.scalars(select(Tour)).all()) == 1


def test_the_local_admin_who_makes_the_first_account_is_not_shown_it_again(store: Store) -> None:
    does(store, end_tour, LOCAL_ADMIN)
    with store.write() as session:
        add_account(session, "ada", PASSWORD, role="admin", actor=LOCAL_ADMIN)
        add_account(session, "tom", PASSWORD, role="admin", actor="ada")
        session.commit()
    assert (state(store, "ada"), state(store, "tom")) == ("over", "new")
