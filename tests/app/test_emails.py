"""E-mail addresses of accounts: by command, and what is refused."""

from collections.abc import Callable

import pytest
from app_pages import PASSWORD
from conftest import Ran

from db.errors import BadInput, Refused
from db.people.accounts import add_account, check_password
from db.people.emails import set_email, sign_in_by_email
from db.store.store import Store


def test_an_address_is_one_account_s_alone_and_small_letters_do_not_matter(store: Store) -> None:
    with store.write() as session:
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        add_account(session, "bob", None, role="annotator", actor="test")
        assert set_email(session, "ann", " Ann@Example.org ", actor="root").email == (
            "ann@example.org"
        )
        set_email(session, "ann", "ann@example.org", actor="root")
        with pytest.raises(Refused, match="'ann' has the address"):
            set_email(session, "bob", "ANN@example.org", actor="root")
        for bad in ("ann", "a b@example.org", "@", "x" * 255 + "@example.org"):
            with pytest.raises(BadInput, match="not an e-mail address"):
                set_email(session, "bob", bad, actor="root")
        assert sign_in_by_email(session, "ANN@example.org").name == "ann"
        set_email(session, "ann", "", actor="root")
        for nobody in ("ann@example.org", ""):
            with pytest.raises(Refused, match="ask an admin"):
                sign_in_by_email(session, nobody)
        assert check_password(session, "bob", "") is None


def test_an_account_for_the_provider_only_is_made_by_command(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    refused = inf("users", "add", "ann", "--role", "admin", "--no-password", "--json")
    assert refused.code == 1 and "--email" in refused.json["error"]
    made = inf(
        "users", "add", "ann", "--role", "admin", "--no-password", "--email", "a@b", "--json"
    )
    assert (made.code, made.json["email"]) == (0, "a@b")
    assert inf("users", "email", "ann", "ann@b.org", "--json").json["email"] == "ann@b.org"
    assert "ann@b.org" in inf("users", "list").out
