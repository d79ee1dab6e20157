"""Optional fields of accounts, e-mail addresses first: by command, and what is refused."""

from collections.abc import Callable

import pytest
from app_pages import PASSWORD
from conftest import Ran

from app.cli.store.people import people
from db.errors import BadInput, NotFound, Refused
from db.people.accounts import add_account, check_password
from db.people.fields import FIELDS, checked_line, set_field, set_fields, sign_in_by_email
from db.store.store import Store


def test_an_address_is_one_account_s_alone_and_small_letters_do_not_matter(store: Store) -> None:
    with store.write() as session:
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        add_account(session, "bob", None, role="annotator", actor="test")
        assert set_field(session, "ann", "email", " Ann@Example.org ", actor="root").email == (
            "ann@example.org"
        )
        set_field(session, "ann", "email", "ann@example.org", actor="root")
        with pytest.raises(Refused, match="account 'ann' has it"):
            set_field(session, "bob", "email", "ANN@example.org", actor="root")
        for bad in ("ann", "a b@example.org", "@", "x" * 255 + "@example.org"):
            with pytest.raises(BadInput, match="not an e-mail address"):
                set_field(session, "bob", "email", bad, actor="root")
        assert sign_in_by_email(session, "ANN@example.org").name == "ann"
        set_field(session, "ann", "email", "", actor="root")
        for nobody in ("ann@example.org", ""):
            with pytest.raises(Refused, match="ask an admin"):
                sign_in_by_email(session, nobody)
        assert check_password(session, "bob", "") is None


def test_an_account_for_the_provider_only_is_made_by_command(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    refused = inf("users", "add", "ann", "--role", "admin", "--no-password", "--json")
    assert refused.code == 2 and "--email" in refused.json["error"]
    made = inf(
        "users", "add", "ann", "--role", "admin", "--no-password", "--email", "a@b", "--json"
    )
    assert (made.code, made.json["email"]) == (0, "a@b")
    assert inf("users", "email", "ann", "ann@b.org", "--json").json["email"] == "ann@b.org"
    assert "ann@b.org" in inf("users", "list").out


def test_every_field_has_an_option_a_command_and_a_key_in_the_json(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    with sqlite_store.write() as session:
        add_account(session, "ann", PASSWORD, role="admin", actor="test")
        session.commit()
    row = inf("users", "list", "--json").json["accounts"][0]
    options = {parameter.name for parameter in people.commands["add"].params}
    for field in FIELDS:
        assert row[field.column] is None
        assert field.column in options
        assert field.column in people.commands


def test_unknown_fields_and_texts_of_several_lines_are_refused(sqlite_store: Store) -> None:
    with sqlite_store.write() as session:
        add_account(session, "ann", PASSWORD, role="admin", actor="test")
        with pytest.raises(NotFound, match="no account field 'password_hash': email"):
            set_field(session, "ann", "password_hash", "x", actor="root")
        set_fields(session, "ann", {"email": ""}, actor="root")  # an empty text changes nothing
    assert checked_line("  University  ") == "University"
    for bad in ("two\nlines", "x" * 201):
        with pytest.raises(BadInput, match="200 printable"):
            checked_line(bad)
