"""Accounts: the command, the rules of the last admin, passwords."""

import io
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta

import pytest
from conftest import Ran
from sqlalchemy import select

from app.access.identity import SessionUser, read_cookie, write_cookie
from app.access.permissions import REQUIRED_ROLE, require
from db.errors import BadInput, Refused
from db.modules import run_module
from db.people.accounts import (
    account_of_cookie,
    add_account,
    check_password,
    get_account,
    list_audit,
    record_audit,
    reset_password,
    set_disabled,
    set_role,
    sign_out_everywhere,
)
from db.people.invitations import accept_invitation, invite, open_invitation
from db.store.store import Store
from db.tables import Audit, Invitation, utc_now

PASSWORD = "correct horse battery"


def test_a_password_comes_from_standard_input_and_is_stored_only_as_a_hash(
    store: Store, inf: Callable[..., Ran]
) -> None:
    done = subprocess.run(
        [
            sys.executable,
            *run_module("app.cli.main"),
            "users",
            "add",
            "ann",
            "--role",
            "curator",
            "--json",
        ],
        input=f"{PASSWORD}\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"name": "ann"' in done.stdout and PASSWORD not in done.stdout + done.stderr
    with store.read() as session:
        stored = get_account(session, "ann").password_hash
        assert stored and stored.startswith("$argon2id$")
    assert inf("users", "list", "--json").json["accounts"][0]["role"] == "curator"
    ran = inf("users", "add", "bob", "--json")
    assert ran.code == 1 and "standard input" in ran.json["error"]


def test_the_commands_reset_a_password_change_a_role_disable_and_are_noted(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite_store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        session.commit()
        cookie = (ann.id, ann.epoch)
    monkeypatch.setattr(sys, "stdin", io.StringIO("another long password\n"))
    assert "signed out everywhere" in inf("users", "reset-password", "ann").out
    with sqlite_store.write() as session:
        assert account_of_cookie(session, *cookie) is None
        assert check_password(session, "ann", PASSWORD) is None
        assert check_password(session, "ann", "another long password") is not None
    assert inf("users", "role", "ann", "curator", "--json").json["role"] == "curator"
    assert inf("users", "disable", "ann", "--json").json["disabled"] is True
    assert inf("users", "disable", "ann", "--enable", "--json").json["disabled"] is False
    last = inf("users", "disable", "root", "--json")
    assert last.code == 1 and "the last admin" in last.json["error"]
    assert inf("users", "reset-password", "eve").code == 1
    with sqlite_store.read() as session:
        actions = [row.action for row in reversed(list_audit(session)[0]) if row.subject == "ann"]
    assert actions == [
        f"account.{action}" for action in ("add", "reset-password", "role", "disable", "enable")
    ]


def test_only_name_and_password_together_of_an_enabled_account_are_let_in(store: Store) -> None:
    with store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        assert check_password(session, "ann", PASSWORD).name == "ann"
        assert check_password(session, " ann ", PASSWORD).name == "ann"
        assert check_password(session, "ann", PASSWORD + "x") is None
        assert check_password(session, "bob", PASSWORD) is None
        set_disabled(session, "ann", True, actor="root")
        assert check_password(session, "ann", PASSWORD) is None
        refused = [row.subject for row in list_audit(session, actions=["sign-in.refused"])[0]]
        assert len(refused) == 3


@pytest.mark.parametrize(
    "end", [reset_password, sign_out_everywhere, set_disabled], ids=lambda f: f.__name__
)
def test_what_ends_sessions_makes_every_earlier_cookie_worthless(
    store: Store, end: Callable[..., object]
) -> None:
    with store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        cookie = write_cookie(ann)
        assert account_of_cookie(session, *read_cookie(cookie)) is ann
        arguments = {"reset_password": ["another password"], "set_disabled": [True]}
        end(session, "ann", *arguments.get(end.__name__, []), actor="root")
        assert account_of_cookie(session, *read_cookie(cookie)) is None


def test_the_last_admin_stays(store: Store) -> None:
    with store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        with pytest.raises(Refused, match="last admin"):
            set_disabled(session, "root", True, actor="root")
        with pytest.raises(Refused, match="last admin"):
            set_role(session, "root", "curator", actor="root")
        add_account(session, "two", PASSWORD, role="admin", actor="root")
        assert set_role(session, "root", "curator", actor="two").role == "curator"


@pytest.mark.parametrize(
    ("name", "password", "role"),
    [
        ("", PASSWORD, "admin"),
        ("a" * 81, PASSWORD, "admin"),
        ("a\nb", PASSWORD, "admin"),
        ("ann", "short", "admin"),
        ("ann", "x" * 1025, "admin"),
        ("ann", PASSWORD, "owner"),
    ],
)
def test_a_bad_account_is_refused_in_words(
    store: Store, name: str, password: str, role: str
) -> None:
    with store.write() as session, pytest.raises(BadInput):
        add_account(session, name, password, role=role, actor="test")


def test_a_name_is_given_once(store: Store) -> None:
    with store.write() as session:
        add_account(session, "ann", PASSWORD, role="admin", actor="test")
        with pytest.raises(Refused, match="already"):
            add_account(session, " ann ", PASSWORD, role="curator", actor="test")


@pytest.mark.parametrize("permission", REQUIRED_ROLE)
def test_a_permission_is_refused_below_its_role_and_when_signed_out(permission: str) -> None:
    with pytest.raises(Refused, match="signed out"):
        require(None, permission)
    annotator = SessionUser("ann", "annotator", 1)
    if REQUIRED_ROLE[permission] != "annotator":
        with pytest.raises(Refused, match=REQUIRED_ROLE[permission]):
            require(annotator, permission)
    assert require(SessionUser("root", "admin", 2), permission).name == "root"


def test_an_invitation_that_expired_or_was_never_made_is_refused(store: Store) -> None:
    with store.write() as session:
        with pytest.raises(Refused, match="inf users add"):
            invite(session, role="annotator", days=1, actor="local admin")
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        token = invite(session, role="annotator", days=1, actor="root")
        assert open_invitation(session, token).role == "annotator"
        session.scalars(select(Invitation)).one().expires_at = utc_now() - timedelta(seconds=1)
        session.flush()
        for bad in (token, "never made", ""):
            with pytest.raises(Refused, match="ask for another"):
                accept_invitation(session, bad, "ann", PASSWORD)
        with pytest.raises(BadInput, match="1 to 60"):
            invite(session, role="annotator", days=0, actor="root")


def test_wrong_attempts_from_elsewhere_do_not_lock_a_person_out(store: Store) -> None:
    with store.write() as session:
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        for _ in range(5):
            assert check_password(session, "ann", "wrong", address="10.0.0.1") is None
        with pytest.raises(Refused, match="too many"):
            check_password(session, "ann", PASSWORD, address="10.0.0.1")
        assert check_password(session, "ann", PASSWORD, address="10.0.0.2") is not None
        for row in session.scalars(select(Audit)):
            row.created_at -= timedelta(minutes=16)
        session.flush()
        assert check_password(session, "ann", PASSWORD, address="10.0.0.1") is not None


def test_an_address_cannot_try_every_name(store: Store) -> None:
    with store.write() as session:
        for number in range(30):
            record_audit(session, f"name {number}", "sign-in.refused", address="10.0.0.1")
        with pytest.raises(Refused, match="too many"):
            check_password(session, "another", "x", address="10.0.0.1")
