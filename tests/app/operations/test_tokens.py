"""Tokens: less than their person's rights, for a time, never stored, and over at once."""

import hashlib
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import Ran
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select
from study_world import make_world

from app.access.identity import (
    Actor,
    SessionUser,
    TokenHolder,
    holder_of_token,
    owner,
    still_holds,
)
from app.operations import datasets, people, runs
from app.operations.acting import writing
from app.operations.doors import tokens, webhooks
from app.operations.doors.tokens import TokenCreate, TokenCreated
from app.operations.doors.webhooks import WebhookAdd
from curation.importing.request import DatasetImport
from db.errors import BadInput, InfError, NotFound, Refused
from db.people.accounts import add_account
from db.people.rights import Rights
from db.people.tokens import narrowed
from db.store.backup import restore_backup, write_backup
from db.store.copying import copy_store
from db.store.store import Store, open_store
from db.tables import ApiToken, Dataset, Event, Member, utc_now
from db.values import RIGHTS, STUDY_RIGHTS, TOKEN_RIGHTS

PASSWORD = "correct horse battery"
COMMAND = owner("cli:ada")


@pytest.fixture
def world(sqlite_store: Store) -> Store:
    """Datasets `mine` and `other`; cora curates both, mina has curate on `mine`, ann judges."""
    make_world(sqlite_store, 4, name="mine")
    make_world(sqlite_store, 4, name="other")
    for name, role in (("root", "admin"), ("cora", "curator"), ("ann", "annotator")):
        people.add(COMMAND, people.PersonAdd(name=name, role=role), PASSWORD)
    people.add(COMMAND, people.PersonAdd(name="mina", role="curator", datasets=("mine",)), PASSWORD)
    return sqlite_store


def token(person: str = "cora", **given: object) -> TokenCreated:
    wanted = {"name": "notebook", "rights": ("curate",), "person": person} | given
    return tokens.create(COMMAND, TokenCreate.read(wanted))


def holder(created: TokenCreated) -> TokenHolder:
    return holder_of_token(open_store(), created.token)


def names(actor: Actor) -> list[str]:
    return [row.name for row in datasets.list_all(actor).data]


def refused(created: TokenCreated) -> str:
    with pytest.raises(Refused) as caught:
        holder(created)
    return caught.value.code


rights = st.frozensets(st.sampled_from(RIGHTS))
PERSONS = st.builds(
    Rights,
    is_admin=st.booleans(),
    everywhere=rights,
    on_datasets=st.dictionaries(st.integers(1, 4), rights),
    on_studies=st.dictionaries(st.integers(1, 4), st.frozensets(st.sampled_from(STUDY_RIGHTS))),
    dataset_of=st.just({one: one for one in range(1, 5)}),
)


@given(PERSONS, rights, st.none() | st.frozensets(st.integers(1, 5)))
def test_a_token_has_no_more_than_its_person_and_no_more_than_it_names(
    person: Rights, named: frozenset[str], limit: frozenset[int] | None
) -> None:
    held = narrowed(person, named, limit)
    assert not held.is_admin
    for right in RIGHTS:
        for dataset in range(1, 6):
            expected = (
                right in named
                and person.on_dataset(right, dataset)
                and (limit is None or dataset in limit)
            )
            assert held.on_dataset(right, dataset) == expected
            own = person.datasets(right)
            seen = held.datasets(right)
            assert (seen is None or dataset in seen) <= (own is None or dataset in own)
        for study in held.studies(right):
            assert study in person.studies(right) and right in named
            assert limit is None or person.dataset_of[study] in limit
        assert (held.datasets(right) is None) <= (limit is None)


def test_a_holder_sees_what_the_token_leaves_of_the_person_s(world: Store) -> None:
    assert names(holder(token())) == ["mine", "other"]
    assert names(holder(token(datasets=["mine"]))) == ["mine"]
    assert names(holder(token("mina"))) == ["mine"]
    with pytest.raises(Refused):
        datasets.list_all(holder(token(rights=["train"])))
    limited = holder(token(datasets=["mine"]))
    with pytest.raises(NotFound):
        datasets.show(limited, "other")
    with pytest.raises(NotFound):
        datasets.archive(limited, dataset="other")
    assert {row.dataset_id for row in runs.list_all(limited).data} == {
        datasets.show(limited, "mine").id
    }


def test_no_token_has_a_permission_of_admins(world: Store) -> None:
    held = holder(token("root", rights=RIGHTS))
    assert not held.is_admin and names(held) == ["mine", "other"]
    for read in (people.list_all, people.audit):
        with pytest.raises(Refused):
            read(held)
    with pytest.raises(Refused, match="files on the server"):
        datasets.import_files(
            held, DatasetImport(name="new", pairs="/etc/passwd"), lambda *_: pytest.fail("launched")
        )


def test_a_token_of_an_admin_may_read_accounts_and_endpoints_and_change_nothing(
    world: Store,
) -> None:
    webhooks.add(COMMAND, WebhookAdd(url="https://a.example/hook"))
    held = holder(token("root", rights=["audit"]))
    assert not held.is_admin and not names_of_rights(held) & set(RIGHTS)
    assert {row.name for row in people.list_all(held).data} == {"root", "cora", "ann", "mina"}
    (hook,) = webhooks.list_all(held).data
    assert webhooks.deliveries(held, hook.id).total == 0 and "secret" not in hook.as_json()
    for refused in (
        lambda: datasets.list_all(held),
        lambda: people.members(held),
        lambda: people.disable(held, "cora"),
        lambda: people.add(held, people.PersonAdd(name="eve", role="admin"), PASSWORD),
        lambda: webhooks.add(held, WebhookAdd(url="https://a.example/other")),
        lambda: tokens.list_all(held, everybody=True),
        lambda: token_by(held),
    ):
        with pytest.raises(Refused):
            refused()
    # of admins alone, and of one only while it is one
    for who, limit in (("cora", ()), ("root", ("mine",))):
        with pytest.raises(Refused) as caught:
            token(who, rights=["audit"], datasets=limit)
        assert caught.value.code == "token_beyond_person"
    people.add(COMMAND, people.PersonAdd(name="second", role="admin"), PASSWORD)
    people.change_role(COMMAND, "root", "curator")
    now = still_holds(world, held)
    for read in (people.list_all, webhooks.list_all):
        with pytest.raises(Refused):
            read(now)


def names_of_rights(held: Actor) -> set[str]:
    return {right for right in (*RIGHTS, *TOKEN_RIGHTS) if held.rights.anywhere(right)} - {"audit"}


def token_by(held: TokenHolder) -> TokenCreated:
    return tokens.create(held, TokenCreate(name="more", rights=("curate",)))


def test_a_right_that_the_person_loses_is_lost_to_the_token_in_the_same_transaction(
    world: Store,
) -> None:
    held = holder(token())
    people.set_rights(COMMAND, "cora", ["judge"])
    with pytest.raises(Refused), writing(held, "curate"):
        pytest.fail("admitted")
    people.set_rights(COMMAND, "cora", ["curate"])
    datasets.archive(held, dataset="mine")
    with world.read() as session:
        event = session.query(Event).order_by(Event.id.desc()).first()
        assert event is not None and event.data["via"] == "token" and event.actor == "cora"


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("revoke", "token_revoked"),
        ("expire", "token_expired"),
        ("disable", "token_revoked"),
        ("password", "token_revoked"),
        ("sign_out", "token_revoked"),
        ("delete", "token_unknown"),
    ],
)
def test_an_ended_token_is_refused_from_the_next_transaction_on(
    world: Store, end: str, code: str
) -> None:
    created = token()
    held = holder(created)
    if end == "revoke":
        tokens.revoke(COMMAND, created.id)
    elif end == "expire":
        with world.write() as session:
            session.get_one(ApiToken, created.id).expires_at = utc_now() - timedelta(seconds=1)
            session.commit()
    elif end == "disable":
        people.disable(COMMAND, "cora")
    elif end == "password":
        people.reset_password(COMMAND, "cora", "an altogether new one")
    elif end == "sign_out":
        people.sign_out(COMMAND, "cora")
    else:
        people.delete(COMMAND, "cora")
    assert refused(created) == code
    assert still_holds(world, held) is None
    with pytest.raises(Refused), writing(held, "curate"):
        pytest.fail("admitted")
    if end == "disable":
        people.disable(COMMAND, "cora", disabled=False)
        assert refused(created) == "token_revoked"


def test_nobody_creates_more_than_they_have_and_no_token_creates_a_token(world: Store) -> None:
    with pytest.raises(Refused, match="lacks the right curate") as caught:
        token("ann")
    assert caught.value.code == "token_beyond_person"
    with pytest.raises(Refused):
        token("mina", datasets=["other"])
    with pytest.raises(Refused) as caught:
        tokens.create(holder(token()), TokenCreate(name="heir", rights=("curate",), days=365))
    assert caught.value.code == "token_by_token"
    with world.read() as session:
        cora = session.query(Member).filter_by(right_held="curate", dataset_id=None).one()
    user = SessionUser(
        "cora", "curator", cora.account_id, rights=Rights(everywhere=frozenset(RIGHTS))
    )
    with pytest.raises(Refused) as caught:
        tokens.create(user, TokenCreate(name="a", rights=("curate",), person="root"))
    assert caught.value.code in ("token_of_another", "signed_out")
    with pytest.raises(InfError):
        TokenCreate.read({"name": "a", "rights": ["admin"]})
    with pytest.raises(BadInput) as bad:
        tokens.create(COMMAND, TokenCreate(name="a", rights=("curate",)))
    assert bad.value.code == "token_person_missing"


def test_a_limited_token_makes_no_new_dataset(world: Store, tmp_path: Path) -> None:
    held = holder(token(datasets=["mine"]))
    wanted = DatasetImport(name="new", pairs=str(tmp_path / "pairs.jsonl"))
    with pytest.raises(Refused) as caught:
        datasets.import_files(held, wanted, lambda *_: pytest.fail("launched"), uploads=tmp_path)
    assert caught.value.code == "token_limited"


def test_the_limit_of_a_purged_dataset_is_not_that_of_the_next_one(world: Store) -> None:
    """SQLite gives a new row the number of the last one, once that is deleted."""
    created = token(datasets=["other"])
    with world.write() as session:
        number = session.scalars(select(Dataset.id).where(Dataset.name == "other")).one()
        session.execute(delete(Dataset).where(Dataset.id == number))
        session.commit()
    with world.write() as session:
        later = {"id": number, "name": "later", "source": "", "licence": ""}
        session.execute(insert(Dataset).values(**later, created_at=utc_now()))
        session.commit()
    held = holder(created)
    assert held.datasets == frozenset()
    with pytest.raises(Refused):
        datasets.list_all(held)


def test_only_its_hash_is_stored_and_no_backup_nor_log_has_either(
    world: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    created = token()
    digest = hashlib.sha256(created.token.encode()).hexdigest()
    with world.read() as session:
        row = session.get_one(ApiToken, created.id)
        assert row.token_sha256 == digest and created.token not in repr(row)
        assert created.token not in repr([(one.data, one.noun_id) for one in session.query(Event)])
    path = tmp_path / "backup.zip"
    write_backup(world, path)
    with zipfile.ZipFile(path) as backup:
        held = b"".join(backup.read(name) for name in backup.namelist())
    assert b"notebook" in held and digest.encode() not in held
    assert created.token.encode() not in held and created.token not in caplog.text
    restore_backup(world, path, replace=True)
    assert refused(created) == "token_unknown"
    (row_now,) = tokens.list_all(COMMAND, everybody=True).data
    assert row_now.status == "revoked"


def test_a_copied_store_has_no_valid_token(
    world: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = token()
    monkeypatch.setenv("INF_DATABASE_URL", f"sqlite:///{tmp_path / 'copy.db'}")
    assert copy_store(world, open_store())["tables"]["api_token"] == 1
    assert refused(created) == "token_unknown"


def test_each_lists_and_revokes_their_own_and_an_admin_all(world: Store) -> None:
    mine, hers = token("cora"), token("mina")
    cora, mina = holder(mine), holder(hers)
    assert [row.id for row in tokens.list_all(cora).data] == [mine.id]
    with pytest.raises(NotFound):
        tokens.revoke(cora, hers.id)
    with pytest.raises(Refused):
        tokens.list_all(cora, everybody=True)
    assert tokens.revoke(mina, hers.id).status == "revoked"
    assert [row.status for row in tokens.list_all(COMMAND, everybody=True).data] == [
        "revoked",
        "valid",
    ]
    assert tokens.revoke(COMMAND, mine.id).revoked_at is not None
    assert "token" not in tokens.list_all(COMMAND, everybody=True).as_json()["data"][0]


def test_use_is_recorded_once_a_minute(world: Store) -> None:
    created = token()
    (row,) = tokens.list_all(COMMAND, everybody=True).data
    assert row.used_at is None
    holder(created)
    (first,) = tokens.list_all(COMMAND, everybody=True).data
    holder(created)
    (second,) = tokens.list_all(COMMAND, everybody=True).data
    assert first.used_at is not None and first.used_at == second.used_at


def test_a_local_admin_s_token_ends_with_the_first_account(sqlite_store: Store) -> None:
    make_world(sqlite_store, 2, name="mine")
    created = tokens.create(COMMAND, TokenCreate(name="local", rights=("curate",)))
    assert names(holder(created)) == ["mine"]
    with sqlite_store.write() as session:
        add_account(session, "root", PASSWORD, role="admin", actor="test")
        session.commit()
    assert refused(created) == "token_without_account"


def test_the_command_creates_lists_and_revokes(world: Store, inf: Ran) -> None:
    made = inf(
        *("tokens", "create", "nightly", "--person", "cora", "--right", "curate"),
        *("--dataset", "mine", "--days", "7", "--json"),
    )
    assert made.code == 0, made.err
    text = made.json["token"]
    assert text.startswith("inf_") and len(text) > 40
    listed = inf("tokens", "list")
    assert text not in listed.out and f"…{text[-4:]}" in listed.out and "mine" in listed.out
    assert inf("tokens", "revoke", str(made.json["id"])).code == 0
    with pytest.raises(Refused):
        holder_of_token(world, text)
