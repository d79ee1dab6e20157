"""Accounts: the command, the rules of the last admin, passwords."""

import io
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import pytest
from conftest import Ran
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.access.identity import COOKIE, DEVICE_COOKIE, SessionUser, note_seen, user_of_cookies
from app.server.own_account import _changed, _used
from app.server.routes import ROUTES, _accepted
from db.errors import BadInput, NotFound, Refused
from db.events import list_events
from db.modules import run_module
from db.people import sign_ins
from db.people.accounts import (
    add_account,
    check_password,
    get_account,
    reset_password,
    set_disabled,
    set_role,
    sign_out_everywhere,
)
from db.people.attempts import place_of, record_failure
from db.people.invitations import accept_invitation, invite, open_invitation
from db.people.passwords import create_password_link, hash_password, use_password_link
from db.people.rights import Rights, rights_of, set_rights
from db.people.sign_ins import open_session, start_session
from db.store.store import Store
from db.tables import (
    Account,
    AccountSession,
    Dataset,
    Event,
    Invitation,
    PasswordLink,
    utc_now,
)

PASSWORD = "correct horse battery"


@pytest.mark.long
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
        # a process of its own: tests/paid_once.py cheapens what is hashed in this one
        assert stored and stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert inf("users", "list", "--json").json["accounts"][0]["role"] == "curator"
    ran = inf("users", "add", "bob", "--json")
    assert ran.code == 1 and "standard input" in ran.json["error"]


def test_the_commands_reset_a_password_change_a_role_disable_and_are_noted(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite_store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        cookie = start_session(session, ann)
        session.commit()
    monkeypatch.setattr(sys, "stdin", io.StringIO("another long password\n"))
    assert "signed out everywhere" in inf("users", "reset-password", "ann").out
    with sqlite_store.write() as session:
        assert open_session(session, cookie) is None
        assert check_password(session, "ann", PASSWORD) is None
        assert check_password(session, "ann", "another long password") is not None
    assert inf("users", "role", "ann", "curator", "--json").json["role"] == "curator"
    assert inf("users", "disable", "ann", "--json").json["disabled"] is True
    assert inf("users", "disable", "ann", "--enable", "--json").json["disabled"] is False
    last = inf("users", "disable", "root", "--json")
    assert last.code == 1 and "the last admin" in last.json["error"]
    assert inf("users", "reset-password", "eve").code == 1
    with sqlite_store.read() as session:
        actions = [row.name for row in reversed(list_events(session)[0]) if row.subject == "ann"]
    assert [one for one in actions if one != "member.rights"] == [
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
        refused = [row.subject for row in list_events(session, names=["sign-in.refused"])[0]]
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
        cookie = start_session(session, ann)
        found = open_session(session, cookie)
        assert found is not None and found[1] is ann
        arguments = {"reset_password": ["another long password"], "set_disabled": [True]}
        end(session, "ann", *arguments.get(end.__name__, []), actor="root")
        assert open_session(session, cookie) is None


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


def test_an_invitation_that_expired_or_was_never_made_is_refused(store: Store) -> None:
    with store.write() as session:
        with pytest.raises(Refused, match="`people add NAME role=admin`"):
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


def guess(session: Session, name: str, address: str, times: int = 1) -> None:
    for _ in range(times):
        record_failure(session, name, place_of(address))


def test_wrong_attempts_from_elsewhere_do_not_lock_a_person_out(store: Store) -> None:
    with store.write() as session:
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        for _ in range(5):
            assert check_password(session, "ann", "wrong", address="10.0.0.1") is None
        with pytest.raises(Refused, match="too many"):
            check_password(session, "ann", PASSWORD, address="10.0.0.1")
        assert check_password(session, "ann", PASSWORD, address="10.0.0.2") is not None
        for row in session.scalars(select(Event)):
            row.at -= timedelta(minutes=16)
        session.flush()
        assert check_password(session, "ann", PASSWORD, address="10.0.0.1") is not None


def test_a_browser_where_a_person_signed_in_is_not_locked_out_by_others_at_its_address(
    store: Store,
) -> None:
    with store.write() as session:
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        bob = add_account(session, "bob", PASSWORD, role="annotator", actor="test")
        own, others = start_session(session, ann), start_session(session, bob)
        sign_ins.end_sessions(session, ann.id)
        guess(session, "ann", "10.0.0.1", times=40)
        for token in ("", "made up", others):
            with pytest.raises(Refused, match="too many"):
                check_password(session, "ann", PASSWORD, address="10.0.0.1", device=token)
        for _ in range(5):
            assert check_password(session, "ann", "wrong", address="10.0.0.1", device=own) is None
        with pytest.raises(Refused, match="too many"):
            check_password(session, "ann", PASSWORD, address="10.0.0.1", device=own)
        newer = start_session(session, ann)
        assert check_password(session, "ann", PASSWORD, address="10.0.0.1", device=newer) is ann


def test_another_role_takes_rights_away_everywhere_and_gives_none_where_there_were_none(
    store: Store,
) -> None:
    with store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        datasets = [Dataset(name=name) for name in ("a", "b")]
        session.add_all(datasets)
        session.flush()
        here = datasets[0].id
        ann = add_account(
            session, "ann", PASSWORD, role="curator", actor="test", dataset_ids=[here]
        )
        set_role(session, "ann", "annotator", actor="root")
        assert rights_of(session, ann) == Rights(on_datasets={here: frozenset({"judge", "review"})})
        set_rights(session, ann, [], actor="root", dataset_id=here)
        set_role(session, "ann", "curator", actor="root")
        assert rights_of(session, ann) == Rights()
        set_role(session, "ann", "admin", actor="root")
        set_role(session, "ann", "annotator", actor="root")
        assert rights_of(session, ann) == Rights(everywhere=frozenset({"judge", "review"}))


def test_a_locked_store_lets_who_only_reads_in(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> None:
        raise OperationalError("UPDATE", {}, sqlite3.OperationalError("database is locked"))

    with sqlite_store.write() as session:
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        token = start_session(session, ann)
        for row in session.scalars(select(AccountSession)):
            row.seen_at -= timedelta(hours=1)
        session.commit()
    user = user_of_cookies(sqlite_store, {COOKIE: token})
    assert user is not None
    with monkeypatch.context() as patched:
        patched.setattr(sign_ins, "note_seen", locked)
        note_seen(sqlite_store, user)
    note_seen(sqlite_store, user)
    again = user_of_cookies(sqlite_store, {COOKIE: token})
    assert again is not None and again.seen_at is not None
    assert utc_now() - again.seen_at < timedelta(minutes=1)
    with sqlite_store.write() as session:
        sign_ins.note_seen(session, again.session_id or 0)
        session.commit()
    assert user_of_cookies(sqlite_store, {COOKIE: token}).seen_at == again.seen_at


def test_the_sign_in_form_knows_a_browser_again_after_sign_out(sqlite_store: Store) -> None:
    with sqlite_store.write() as session:
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        session.commit()
    form, app = {"name": "ann", "password": PASSWORD}, Starlette(routes=ROUTES)
    with TestClient(app, follow_redirects=False) as known, TestClient(app) as new:
        assert known.post("/sign-in", data=form).status_code == 303
        known.post("/sign-out", data={"where": "everywhere"})
        with sqlite_store.write() as session:
            guess(session, "ann", "testclient", times=5)
            session.commit()
        assert new.post("/sign-in", data=form).status_code == 429
        assert known.post("/sign-in", data=form).status_code == 303


@pytest.mark.parametrize(
    ("public", "scheme", "is_secure"),
    [("", "http", False), ("https://a.example", "http", True), ("http://a.example", "https", True)],
)
def test_cookies_are_secure_where_the_browser_speaks_tls(
    sqlite_store: Store,
    monkeypatch: pytest.MonkeyPatch,
    public: str,
    scheme: str,
    is_secure: bool,
) -> None:
    monkeypatch.setenv("INF_PUBLIC_URL", public)
    with sqlite_store.write() as session:
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        session.commit()
    with TestClient(Starlette(routes=ROUTES), base_url=f"{scheme}://10.0.0.7") as client:
        form = {"name": "ann", "password": PASSWORD}
        answer = client.post("/sign-in", data=form, follow_redirects=False)
    cookies = answer.headers.get_list("set-cookie")
    assert {one.partition("=")[0] for one in cookies} == {COOKIE, DEVICE_COOKIE}
    for one in cookies:
        assert ("; secure" in one.lower()) is is_secure and "httponly" in one.lower()


def test_an_address_cannot_try_every_name(store: Store) -> None:
    with store.write() as session:
        for number in range(30):
            guess(session, f"name {number}", "10.0.0.1")
        with pytest.raises(Refused, match="too many"):
            check_password(session, "another", "x", address="10.0.0.1")


def test_a_guesser_in_an_office_locks_out_nobody_who_works_there(sqlite_store: Store) -> None:
    with sqlite_store.write() as session:
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        start_session(session, ann, address="10.0.0.1")
        guess(session, "ann", "10.0.0.1", times=4)
        for number in range(300):
            guess(session, f"name {number}", "10.0.0.1")
        guess(session, "ann", "10.9.9.9", times=200)  # from everywhere, who knows her name
        assert check_password(session, "ann", PASSWORD, address="10.0.0.1") is not None
        guess(session, "ann", "10.0.0.1")
        with pytest.raises(Refused, match="too many"):
            check_password(session, "ann", PASSWORD, address="10.0.0.1")


def test_mistakes_of_those_who_work_there_do_not_lock_out_who_signs_in_first(
    sqlite_store: Store,
) -> None:
    with sqlite_store.write() as session:
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        for number in range(10):
            name = f"colleague {number}"
            account = Account(name=name, role="annotator", password_hash=ann.password_hash)
            session.add(account)
            session.flush()
            start_session(session, account, address="10.0.0.1")
            guess(session, name, "10.0.0.1", times=4)
        assert check_password(session, "ann", PASSWORD, address="10.0.0.1") is not None


def test_a_name_that_many_addresses_try_is_limited_where_it_is_not_known(
    sqlite_store: Store,
) -> None:
    with sqlite_store.write() as session:
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        for number in range(100):
            guess(session, "ann", f"10.0.1.{number}")
        with pytest.raises(Refused, match="too many"):
            check_password(session, "ann", PASSWORD, address="10.0.0.1")


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb::2", "2001:db8:1:2::/64"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_of_an_ipv6_address_the_network_counts(address: str, place: str) -> None:
    assert place_of(address) == place


@pytest.mark.parametrize(
    "password",
    [
        "short",
        "elevenchars",
        "passwordpassword",
        "Password1234",
        "123456789012",
        "qwertyuiop12",
        "aaaaaaaaaaaa",
        "iloveyou1234",
        "marianne weber",  # the name of the account
        "x" * 1025,
    ],
)
def test_a_short_or_common_password_is_refused(password: str) -> None:
    with pytest.raises(BadInput):
        hash_password(password, known=["marianne weber"])


def test_a_password_full_of_look_alikes_is_estimated_at_once() -> None:
    hash_password("warm the word lists up")
    before = time.process_time()
    hash_password("4@8({[</369&#!1/|0$5+7%2" * 3)
    assert time.process_time() - before < 1.0  # half a minute by the whole of it


def test_a_long_name_is_no_password_either() -> None:
    name = "wilhelmina-hohenzollern-of-nowhere"
    with pytest.raises(BadInput):
        hash_password(name, known=[name])


def test_nobody_waits_for_the_store_while_a_password_is_estimated(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimated: list[str] = []

    def estimate(password: str, known: list[str]) -> dict[str, int]:
        path = sqlite_store.url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")  # raises if the store is locked
        estimated.append(password)
        return {"guesses": 10**9}

    with sqlite_store.write() as session:
        root = add_account(session, "root", PASSWORD, role="admin", actor="test")
        invitation = invite(session, role="annotator", days=1, actor="root")
        link = create_password_link(session, root, actor="root")
        session.commit()
    monkeypatch.setattr("zxcvbn.zxcvbn", estimate)
    _accepted(invitation, "ann", "the one of ann")
    user = SessionUser("root", "admin", root.id)
    _used(link, "the one of a link")
    _changed(user, "the one of a link", "the next one", "", "")
    assert len(estimated) == 3
    for token in (link, "never made"):
        with pytest.raises(Refused):
            _used(token, "costs no estimate")
    with pytest.raises(Refused):
        _accepted(invitation, "bob", "costs no estimate")
    assert len(estimated) == 3


@pytest.mark.parametrize("end", [reset_password, set_disabled], ids=lambda f: f.__name__)
def test_an_open_password_link_ends_with_a_new_password_and_when_the_account_is_disabled(
    store: Store, end: Callable[..., object]
) -> None:
    with store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        token = create_password_link(session, ann, actor="root")
        end(session, "ann", "another long password" if end is reset_password else True, actor="x")
        set_disabled(session, "ann", False, actor="root")
        with pytest.raises(Refused):
            use_password_link(session, token, "a new long password")


def test_a_password_link_works_once_for_a_day_and_ends_every_session(store: Store) -> None:
    with store.write() as session:
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        cookie = start_session(session, ann)
        first = create_password_link(session, ann, actor="root")
        second = create_password_link(session, ann, actor="root")
        for token in (first, "never made", ""):
            with pytest.raises(Refused, match="another"):
                use_password_link(session, token, "a new long password")
        with pytest.raises(BadInput):
            use_password_link(session, second, "short")
        assert open_session(session, cookie) is not None
        assert use_password_link(session, second, "a new long password") is ann
        assert open_session(session, cookie) is None
        assert check_password(session, "ann", "a new long password") is ann
        with pytest.raises(Refused):
            use_password_link(session, second, "a newer long password")
        late = create_password_link(session, ann, actor="root")
        for row in session.scalars(select(PasswordLink)):
            row.expires_at -= timedelta(hours=25)
        session.flush()
        with pytest.raises(Refused, match="expired"):
            use_password_link(session, late, "a new long password")
        rows = session.scalars(select(PasswordLink.token_sha256)).all()
        assert not {first, second, late} & set(rows)


def test_a_session_is_ended_by_its_person_alone_and_expires(store: Store) -> None:
    with store.write() as session:
        ann = add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        bob = add_account(session, "bob", PASSWORD, role="annotator", actor="test")
        here, there = start_session(session, ann), start_session(session, ann, device="a\x00phone")
        found = {one.device: one.id for one in sign_ins.list_sessions(session, ann.id)}
        assert set(found) == {"", "aphone"}
        with pytest.raises(NotFound):
            sign_ins.end_session(session, bob.id, found["aphone"])
        sign_ins.end_session(session, ann.id, found["aphone"])
        assert open_session(session, there) is None
        assert open_session(session, here) is not None
        for row in session.scalars(select(AccountSession)):
            row.expires_at -= timedelta(days=31)
        session.flush()
        assert open_session(session, here) is None
        assert sign_ins.list_sessions(session, ann.id) == []


def test_the_commands_rename_and_delete_an_account(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    with sqlite_store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        session.add(Account(name="simulated:1", role="annotator"))
        session.commit()
    listed = {row["name"]: row for row in inf("users", "list", "--json").json["accounts"]}
    assert listed["simulated:1"]["name_problem"] == "reserved"
    assert "rename it" in inf("users", "list").out
    assert inf("users", "rename", "simulated:1", "bob", "--json").json["name"] == "bob"
    refused = inf("users", "rename", "bob", "ANN", "--json")
    assert refused.code == 1 and "another account" in refused.json["error"]
    kept = inf("users", "delete", "ann", "--json")  # no terminal: --yes is required
    assert kept.code == 1 and "--yes" in kept.json["error"]
    done = inf("users", "delete", "ann", "--yes", "--json").json
    assert done["as"].startswith("deleted person ")
    last = inf("users", "delete", "root", "--yes", "--json")
    assert last.code == 1 and "last admin" in last.json["error"]
    names = [row["name"] for row in inf("users", "list", "--json").json["accounts"]]
    assert names == ["bob", "root"]
    assert inf("users", "delete", "ann", "--yes").code == 1
    assert (
        inf("users", "add", "cli:root", "--no-password", "--email", "c@x.org", "--json")
        .json["error"]
        .startswith("account name 'cli:root'")
    )
