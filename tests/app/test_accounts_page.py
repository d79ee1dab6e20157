"""The Accounts page: optional fields of an account are entered, changed and refused there."""

import pytest
from app_pages import PASSWORD, open_page, sign_in
from sqlalchemy import select

from app.access import openid
from db.events import list_events
from db.people.accounts import add_account, get_account
from db.store.store import Store
from db.tables import Account


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
    at.query_params["account"] = str(ann.id)
    at.run().text_input(key=f"accounts.email-{ann.id}").set_value("").run()
    with sqlite_store.read() as session:
        assert get_account(session, "ann").email is None


def test_an_admin_renames_and_deletes_accounts_but_not_their_own(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    with sqlite_store.write() as session:
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test").id
        add_account(session, "bob", PASSWORD, role="annotator", actor="test")
        me = session.scalars(select(Account.id).where(Account.role == "admin")).one()
        session.commit()
    at = open_page("accounts", account=str(ann))
    assert list(at.dataframe[0].value["Name"]) == ["a admin", "ann", "bob"] and at.get("popover")
    at.text_input(key=f"accounts.name-{ann}").set_value("BOB").run()
    at.button(key=f"accounts.rename-do-{ann}").click().run()
    assert "can be taken for that of another account" in at.error[0].value
    at.text_input(key=f"accounts.name-{ann}").set_value("anna").run()
    at.button(key=f"accounts.rename-do-{ann}").click().run()
    with sqlite_store.read() as session:
        assert session.get_one(Account, ann).name == "anna"
    at.query_params["account"] = str(me)
    at.run().button(key=f"accounts.delete-do-{me}").click().run()
    assert "own account" in at.error[0].value
    at.query_params["account"] = str(ann)
    at.run().button(key=f"accounts.delete-do-{ann}").click().run()
    with sqlite_store.read() as session:
        assert session.get(Account, ann) is None
        assert {row.name for row in list_events(session)[0]} >= {
            "account.rename",
            "account.delete",
        }


def test_a_name_that_is_refused_today_is_marked(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    with sqlite_store.write() as session:
        named = Account(name="openai:gpt-4o-mini", role="annotator")
        session.add(named)
        session.commit()
    at = open_page("accounts", account=str(named.id))
    assert list(at.dataframe[0].value["State"]).count("rename") == 1
    texts = [each.value for each in at.markdown]
    assert sum("orange-badge[rename]" in one for one in texts) == 1
