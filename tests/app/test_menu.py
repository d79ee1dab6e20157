"""The menu: eight entries with tabs, and what each person's menu leaves out."""

import pytest

from app.access.identity import SessionUser
from app.kit.menu import MENU, entries_for, entry_of, views_for
from db.people.rights import ALL_RIGHTS, Rights

ADMIN = SessionUser("ann", "admin", 1, rights=ALL_RIGHTS)


def with_rights(*names: str) -> SessionUser:
    return SessionUser("ann", "", 1, rights=Rights(on_datasets={1: frozenset(names)}))


def labels(user: SessionUser) -> list[str]:
    return [entry.label for entry in entries_for(user)]


def test_an_admin_has_eight_entries_that_hold_every_page_once() -> None:
    assert labels(ADMIN) == [
        "Home",
        "Data",
        "Groups",
        "People",
        "Insight",
        "Models",
        "Jobs",
        "Settings",
    ]
    held = [view.name for entry in entries_for(ADMIN) for view in entry.views]
    assert sorted(held) == sorted(view.name for view in MENU)


def test_who_holds_only_judge_has_judge_and_my_answers_and_nothing_else() -> None:
    assert labels(with_rights("judge")) == ["Judge", "My answers"]


def test_who_judges_and_reviews_finds_the_judging_pages_without_an_entry_above_them() -> None:
    assert labels(with_rights("judge", "review")) == ["Home", "Groups", "Judge", "My answers"]


def test_an_entry_with_one_page_left_goes_by_the_name_of_that_page() -> None:
    assert labels(with_rights("release")) == ["Home", "Releases", "Jobs"]


@pytest.mark.parametrize("right", ["judge", "review", "adjudicate", "curate", "train", "release"])
def test_no_right_loses_a_page_or_gains_one_by_the_entries(right: str) -> None:
    user = with_rights(right)
    held = {view.name for entry in entries_for(user) for view in entry.views}
    assert held | {"home"} == {view.name for view in views_for(user)}


def test_home_without_a_path_in_the_address_and_every_inner_page_know_their_entry() -> None:
    home, coverage = entry_of(ADMIN, ""), entry_of(ADMIN, "coverage")
    assert home is not None and home.label == "Home"
    assert coverage is not None and coverage.label == "Insight"
    assert entry_of(with_rights("judge"), "coverage") is None
