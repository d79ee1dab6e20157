"""Every page, for every role, on an empty and on a full store."""

from typing import Any

import pytest
import streamlit as st
from app_pages import MAIN, open_page, page_names, page_path, send_cookies, sign_in, words
from full_store import fill
from grown_dataset import grown
from statement_count import StatementCount, statements_counted
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from app.access.identity import COOKIE
from app.access.permissions import NEEDS
from app.kit.menu import MENU
from app.text.languages import text
from app.text.plain import sentence
from db.people.accounts import add_account, set_disabled
from db.store.store import Store
from db.values import ACCOUNT_ROLES

ONLY_ADMINS = {"accounts", "audit", "connections", "members"}
PAGES = {
    "annotator": {"home", "judge", "answers", "groups"},
    "curator": {view.name for view in MENU} - ONLY_ADMINS,
    "admin": {view.name for view in MENU},
}
STATEMENTS_BEFORE_A_TITLE = 10
STATEMENTS_OF_GROUPS = 56  # three groups in full, and what surrounds them
REACHABLE = [(role, view.name) for role in PAGES for view in MENU if view.name in PAGES[role]]


@pytest.mark.parametrize(("role", "name"), REACHABLE)
def test_every_page_of_a_role_draws_on_an_empty_and_on_a_full_store(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, role: str, name: str
) -> None:
    sign_in(sqlite_store, monkeypatch, role)
    empty = open_page(name)
    assert empty.title or empty.get("html")
    assert not empty.error
    fill(sqlite_store)
    full = open_page(name)
    assert not full.error


def test_no_title_waits_for_the_figures_of_its_page(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_store)
    for name in page_names():
        with statements_counted() as found, monkeypatch.context() as patched:
            asked = _statements_at_titles(patched, found)
            open_page(name)
        assert asked[0] <= STATEMENTS_BEFORE_A_TITLE, name


def _statements_at_titles(patched: pytest.MonkeyPatch, found: StatementCount) -> list[int]:
    """How many statements were sent when a title is drawn, for each title from now on."""
    asked: list[int] = []
    true_title = st.title

    def title(*given: Any, **more: Any) -> Any:
        asked.append(found.total)
        return true_title(*given, **more)

    patched.setattr(st, "title", title)
    return asked


@pytest.mark.parametrize("role", ACCOUNT_ROLES)
def test_a_page_not_meant_for_a_role_is_not_reachable(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    sign_in(sqlite_store, monkeypatch, role)
    at = open_page("home")
    for name in set(page_names()) - {name for who, name in REACHABLE if who == role}:
        with pytest.raises(ValueError, match="Could not find a navigation page"):
            at.switch_page(page_path(name))


def test_the_address_of_a_page_without_the_right_to_it_names_the_right_in_the_users_language(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_store)
    sign_in(sqlite_store, monkeypatch, "annotator")
    for locale, language in (("en-GB", "en"), ("de-DE", "de")):
        monkeypatch.setattr(type(st.context), "locale", locale)
        for name in set(page_names()) - PAGES["annotator"]:
            at = AppTest.from_file(str(MAIN), default_timeout=180)
            at._page_hash = calc_hash(name)
            at.run()
            view = next(view for view in MENU if view.name == name)
            assert [each.value for each in at.title] == [view.title]
            wanted = {"name": "a annotator", "required": NEEDS[view.permission].required}
            said = sentence(text(language, "refused.no_right", **wanted))
            assert [each.value.replace("\\", "") for each in at.error] == [said]


def test_without_accounts_whoever_is_there_is_the_local_admin(sqlite_store: Store) -> None:
    assert "local admin" in words(open_page("accounts"))


@pytest.mark.parametrize("cookie", ["", "forged", "WzEsMF0.aR.forged"])
def test_without_a_valid_cookie_the_page_has_only_a_link_to_sign_in(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, cookie: str
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    send_cookies(monkeypatch, {COOKIE: cookie})
    at = AppTest.from_file(str(MAIN)).run()
    assert "You are signed out" in words(at)
    assert not at.title


def test_an_account_that_is_disabled_is_out_at_its_next_action(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(sqlite_store, monkeypatch, "curator")
    at = open_page("jobs")
    with sqlite_store.write() as session:
        add_account(session, "root", "a long password", role="admin", actor="test")
        set_disabled(session, "a curator", True, actor="root")
        session.commit()
    assert "You are signed out" in words(at.run())


def test_texts_of_the_data_are_shown_as_they_are(sqlite_store: Store) -> None:
    fill(sqlite_store)
    page = open_page("groups", group="1")
    assert "script" not in words(page)  # a study of the run is open
    assert any("You may judge items of group 1" in each.value for each in page.warning)
    shown = page.button("groups.open-1").click().run()
    assert "<script>" not in words(shown)
    # as data of the card, which draws it by textContent (tests/e2e/test_workbench.py)
    assert "<script>alert(1)</script>" in " ".join(str(each.proto) for each in shown.main)
    shown = words(open_page("datasets"))
    assert "&lt;script&gt;alert(1)&lt;/script&gt; **bold** $\\LaTeX$" in shown


def test_what_was_made_offline_or_simulated_is_labelled(sqlite_store: Store) -> None:
    fill(sqlite_store)
    for name in ("home", "groups", "studies"):
        assert "offline" in words(open_page(name)), name
    for name in ("home", "studies"):
        assert "simulated" in words(open_page(name)), name


def test_groups_reads_three_groups_and_who_may_see_them_once(sqlite_store: Store) -> None:
    grown(sqlite_store, groups=16)
    open_page("groups")
    with statements_counted() as found:
        assert not open_page("groups").error
    assert found.total <= STATEMENTS_OF_GROUPS, str(found.statements.most_common())
