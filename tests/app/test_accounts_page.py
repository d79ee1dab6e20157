"""The Accounts page: optional fields of an account are entered, changed and refused there."""

import pytest
from app_pages import PASSWORD, open_page, sign_in

from app.access import openid
from db.people.accounts import get_account
from db.store.store import Store


def test_the_form_and_the_list_set_an_account_s_optional_fields(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    at = open_page("accounts")
    assert "accounts.email" not in {field.key for field in at.text_input}  # no provider: no use
    monkeypatch.setattr(openid, "providers", lambda: ["default"])
    at = at.run()
    at.text_input(key="accounts.name").set_value("ann")
    at.text_input(key="accounts.password").set_value(PASSWORD)
    at.text_input(key="accounts.email").set_value("not an address")
    at.button(key="accounts.submit").click().run()
    assert "is not an e-mail address" in at.error[0].value.replace("\\", "")
    at.text_input(key="accounts.name").set_value("ann")
    at.text_input(key="accounts.password").set_value(PASSWORD)
    at.text_input(key="accounts.email").set_value("Ann@Example.org")
    at.button(key="accounts.submit").click().run()
    with sqlite_store.read() as session:
        ann = get_account(session, "ann")
        assert ann.email == "ann@example.org"
    at.text_input(key=f"accounts.email-{ann.id}").set_value("").run()
    with sqlite_store.read() as session:
        assert get_account(session, "ann").email is None
