"""People: page, command and operation show the same rows; each operation asks for its right."""

from collections.abc import Callable
from typing import Any

import pytest
from app_pages import open_page, sign_in
from conftest import Ran
from sqlalchemy import func, select

from app.access.identity import Actor, owner
from app.operations import people
from app.operations.people import Invitation
from db.errors import BadInput, Refused
from db.people.accounts import add_account
from db.people.rights import Rights
from db.store.store import Store
from db.tables import Account, Event

PASSWORD = "correct horse battery"
NEEDING_ADMIN: dict[str, Callable[[Actor], Any]] = {
    "list_all": people.list_all,
    "show": lambda actor: people.show(actor, "ann"),
    "add": lambda actor: people.add(
        actor, people.PersonAdd(name="eve", role="annotator"), PASSWORD
    ),
    "change_field": lambda actor: people.change_field(actor, "ann", "email", "a@b.org"),
    "change_role": lambda actor: people.change_role(actor, "ann", "admin"),
    "disable": lambda actor: people.disable(actor, "ann"),
    "sign_out": lambda actor: people.sign_out(actor, "ann"),
    "rename": lambda actor: people.rename(actor, "ann", "anna"),
    "delete": lambda actor: people.delete(actor, "ann"),
    "reset_password": lambda actor: people.reset_password(actor, "ann", PASSWORD),
    "password_link": lambda actor: people.password_link(actor, "ann"),
    "invite": lambda actor: people.invite(actor, Invitation(role="admin")),
    "invite as annotator": lambda actor: people.invite(actor, Invitation()),
    "invite a curator into a study": lambda actor: people.invite(
        actor, Invitation(role="curator", study_id=1)
    ),
    "members": people.members,
    "places": people.places,
    "set_rights": lambda actor: people.set_rights(actor, "ann", ["train"]),
    "add_rights": lambda actor: people.add_rights(actor, "ann", ["train"], people.EVERYWHERE),
    "audit": people.audit,
    "audit_names": people.audit_names,
}


@pytest.fixture
def team(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    with sqlite_store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        add_account(session, "ann", PASSWORD, role="curator", actor="test")
        session.commit()
    return sqlite_store


@pytest.mark.parametrize("name", NEEDING_ADMIN)
def test_an_operation_on_people_is_an_admin_s(team: Store, name: str) -> None:
    curator = Actor("ann", rights=Rights(everywhere=frozenset(("curate", "judge", "train"))))
    with team.read() as session:
        before = session.scalar(select(func.count(Event.id)))
    with pytest.raises(Refused, match="requires admin"):
        NEEDING_ADMIN[name](curator)
    with team.read() as session:
        assert session.scalar(select(func.count(Event.id))) == before


def test_every_operation_on_people_is_among_them() -> None:
    own = {name for name, each in vars(people).items() if callable(each)}
    named = {name for name in own if getattr(people, name).__module__ == people.__name__}
    operations = {name for name in named if name[0] != "_" and name[0].islower()}
    assert operations == {name for name in NEEDING_ADMIN if " " not in name}


def test_command_and_operation_print_the_same_rows_under_both_names(
    team: Store, inf: Callable[..., Ran]
) -> None:
    listed, former = inf("people", "list", "--json"), inf("users", "list", "--json")
    rows = people.list_all(owner("ada")).as_json()
    assert {name: listed.json[name] for name in rows} == rows
    assert former.json == listed.json and former.json["accounts"] == rows["data"]
    assert "`inf people" in former.err and not listed.err
    assert inf("people", "show", "ann", "--json").json == rows["data"][0]
    members = people.members(owner("ada")).as_json()
    assert (
        members["total"] == 6
        and inf("people", "members", "--json").json["data"] == (members["data"])
    )
    done = inf("users", "delete", "ann", "--yes", "--json").json
    assert (done["deleted"], done["as"]) == ("ann", done["pseudonym"]) and done["id"]


def test_the_pages_show_what_the_operations_return(
    team: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(team, monkeypatch, "admin")
    named = [row.name for row in people.list_all(owner("ada")).data]
    assert list(open_page("accounts").dataframe[0].value["Name"]) == named
    assert list(open_page("members").table[0].value["Person"]) == named
    audit = people.audit(owner("ada"))
    table = open_page("audit").dataframe[0].value.to_dict("records")
    names = ("id", "at", "actor", "name", "subject")
    assert [{name: row[name] for name in names} for row in table[-audit.total :]] == [
        {name: row[name] for name in names} for row in audit.as_json()["data"]
    ]


def test_only_the_command_line_may_begin_with_someone_who_is_no_admin(sqlite_store: Store) -> None:
    with pytest.raises(BadInput, match="must be an admin"):
        people.add(owner("local", "page"), people.PersonAdd(name="ann", role="curator"), PASSWORD)
    people.add(owner("cli"), people.PersonAdd(name="ann", role="curator"), PASSWORD)
    with sqlite_store.read() as session:
        assert session.scalars(select(Account.name)).all() == ["ann"]
