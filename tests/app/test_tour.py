"""The tour of the pages: who sees which step where, and that it ends for good."""

import pytest
from app_pages import cookies_of, open_page, send_cookies, sign_in
from full_store import fill
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

from app.access.identity import SessionUser
from app.kit.frame.tour import ENDED, STEPS, steps_for
from app.kit.menu import MENU
from db.people.rights import ALL_RIGHTS, Rights, set_rights
from db.store.store import Store
from db.tables import Account, Tour

PAGES = ("home", "datasets", "groups", "studies", "train")


def step_of(at: AppTest) -> str:
    """The heading of the card; "" where there is none."""
    return next((each.value for each in at.header if each.value.startswith("Tour ")), "")


def test_five_steps_lead_over_the_entries_of_the_menu(sqlite_store: Store) -> None:
    fill(sqlite_store)
    assert [step_of(open_page(name)) for name in PAGES] == [
        "Tour 1 of 5 · Home",
        "Tour 2 of 5 · Data",
        "Tour 3 of 5 · Groups",
        "Tour 4 of 5 · People",
        "Tour 5 of 5 · Models",
    ]
    assert step_of(open_page("evaluations")) == "Tour 5 of 5 · Models"
    assert [step_of(open_page(name)) for name in ("jobs", "coverage", "accounts")] == [""] * 3


@pytest.mark.parametrize(("page", "button"), [("home", "tour.skip"), ("train", "tour.finish")])
def test_skipped_or_finished_it_is_shown_on_no_page_and_in_no_other_browser(
    sqlite_store: Store, page: str, button: str
) -> None:
    at = open_page(page)
    at.button(button).click().run()
    assert step_of(at) == "" == step_of(at.run())
    assert ENDED in [each.value for each in at.markdown]  # the page does not move up
    assert [step_of(open_page(name)) for name in PAGES] == [""] * 5


def test_each_person_has_a_tour_of_their_own(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    open_page("home").button("tour.skip").click().run()
    assert step_of(open_page("home")) == ""
    sign_in(sqlite_store, monkeypatch, "curator")
    assert step_of(open_page("home")) == "Tour 1 of 5 · Home"


def test_it_can_be_taken_again_on_purpose(sqlite_store: Store) -> None:
    open_page("home").button("tour.skip").click().run()
    at = open_page("home")
    at.button("tour.again").click().run()
    assert step_of(at) == step_of(open_page("home")) == "Tour 1 of 5 · Home"


def test_no_page_on_which_people_judge_has_it_or_reads_for_it(sqlite_store: Store) -> None:
    fill(sqlite_store)
    for name in ("judge", "answers", "adjudicate"):
        assert step_of(open_page(name)) == "", name
    with sqlite_store.read() as session:  # though it is their first time
        assert session.scalars(select(Tour)).all() == []


def test_who_judges_and_reviews_has_none(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(sqlite_store, monkeypatch, "annotator")
    assert step_of(open_page("home")) == step_of(open_page("groups")) == ""
    assert "Take the tour again" not in [each.label for each in open_page("home").button]


def test_the_steps_are_those_whose_page_the_person_may_open(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookies = cookies_of(sqlite_store, "annotator")
    with sqlite_store.write() as session:
        account = session.scalars(select(Account)).one()
        set_rights(session, account, ["judge", "train"], actor="test")
        session.commit()
    send_cookies(monkeypatch, cookies)
    assert step_of(open_page("home")) == "Tour 1 of 2 · Home"
    assert step_of(open_page("train")) == "Tour 2 of 2 · Models"


def test_no_step_leads_to_a_page_that_the_person_may_not_open() -> None:
    sections = {view.section for view in MENU}
    assert len(STEPS) == 5 and {step.section for step in STEPS} <= sections
    for right in ("judge", "review", "adjudicate", "curate", "train", "release"):
        rights = Rights(everywhere=frozenset([right]))
        found = steps_for(SessionUser("ann", "", 1, rights=rights))
        assert bool(found) == (right in ("curate", "train", "release")), right
    admin = steps_for(SessionUser("ann", "admin", 1, rights=ALL_RIGHTS))
    assert [view.name for _, view in admin] == list(PAGES)
