"""Connections: keys go in and never come out, runs name their server, rights and reach hold."""

import io
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from curation_runs import add_dataset
from openai_server import Server
from sqlalchemy import select

from app.access.identity import Actor, owner
from app.operations import connections, runs
from app.operations.connections import ConnectionAdd, ConnectionChange
from curation.recipe.prices import Price, load_prices
from curation.run.starting import RunStart
from db.errors import BadInput, InfError, NotFound, ProviderError, Refused
from db.home import home
from db.people.accounts import add_account
from db.people.rights import Rights
from db.servers import sealing
from db.store import secrets
from db.store.copying import copy_store
from db.store.store import Store, open_store
from db.tables import Call, Connection, Event, Job, Run

KEY = "sk-typed-0123456789abcdef"
OTHER_KEY = "sk-other-fedcba9876543210"
COMMAND = owner("cli:ada")
ADMIN = owner("ada", via="page")  # an admin of a shared server, at a page


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that a test opens are redacted in its own texts only."""
    for held in ("_used_here", "_put_here"):
        monkeypatch.setattr(secrets, held, {})
    monkeypatch.setattr(secrets, "_of_the_file", set())
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "LAB_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(schema="taken", key=KEY) as running:
        yield running


def add(actor: Actor = COMMAND, key: str = "", **given: Any) -> connections.ConnectionRow:
    return connections.add(actor, ConnectionAdd(**{"name": "lab"} | given), key)


NEEDING: dict[str, tuple[str, Callable[[Actor], Any]]] = {
    "add": ("admin", lambda actor: add(actor, url="https://example.org/v1")),
    "change": ("admin", lambda actor: connections.change(actor, ConnectionChange(name="lab"))),
    "remove": ("admin", lambda actor: connections.remove(actor, "lab")),
    "list_all": ("curate", connections.list_all),
    "show": ("curate", lambda actor: connections.show(actor, "lab")),
    "test": ("curate", lambda actor: connections.test(actor, "lab")),
    "save_price": ("curate", lambda actor: connections.save_price(actor, "tiny", Price(1, 2))),
}


@pytest.mark.parametrize("name", NEEDING)
def test_only_admins_make_connections_and_only_curators_use_them(
    sqlite_store: Store, name: str
) -> None:
    right, act = NEEDING[name]
    held = {"judge", "review", "train", "release", "adjudicate"}
    with pytest.raises(Refused, match=f"requires {right}"):
        act(Actor("eve", rights=Rights(everywhere=frozenset(held))))
    if right == "admin":
        with pytest.raises(Refused, match="requires admin"):
            act(Actor("cur", rights=Rights(everywhere=frozenset({"curate"}))))
    with sqlite_store.read() as session:
        assert session.scalars(select(Connection)).all() == []
        assert session.scalars(select(Event)).all() == []


def test_a_price_that_is_saved_is_in_the_audit_log(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_HOME", str(tmp_path))
    connections.save_price(COMMAND, "tiny", Price(1.0, 2.0))
    assert load_prices()["tiny"] == Price(1.0, 2.0)
    with sqlite_store.read() as session:
        (event,) = session.scalars(select(Event)).all()
    assert (event.name, event.noun_id, event.data["output"]) == ("price.save", "tiny", 2.0)


def test_every_operation_on_connections_is_among_them() -> None:
    own = {name for name, each in vars(connections).items() if callable(each)}
    named = {name for name in own if getattr(connections, name).__module__ == connections.__name__}
    operations = {name for name in named if name[0] != "_" and name[0].islower()}
    assert operations - {"read_prices", "may_be_private"} == NEEDING.keys()


def test_a_typed_key_is_in_no_byte_of_the_store_its_backups_and_its_logs(
    sqlite_store: Store,
    server: Server,
    inf: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A whole life: typed, tested, a run, its failure with another key, a backup, a copy."""
    add_dataset(sqlite_store, pairs=3)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{KEY}\n"))
    added = inf("connections", "add", "lab", "--url", server.url, "--key", "--json")
    assert added.code == 0, added.err
    assert added.json["secret"] == "typed" and added.json["problem"] is None
    told = [added.out + added.err]
    settings = ("--set", "model=small", "--concurrency", 2)
    for command in (
        ("connections", "test", "lab", "--json"),
        ("connections", "list"),
        ("connections", "show", "lab", "--json"),
        ("curate", "small", "--connection", "lab", *settings, "--json"),
    ):
        ran = inf(*command)
        assert ran.code == 0, ran.err
        told.append(ran.out + ran.err)
    shown = inf("runs", "show", 1, "--json").json
    assert (shown["connection"], shown["url"]) == ("lab", server.url)
    assert (
        shown["provider"] == "openai"
        and shown["kept"] + sum(shown["funnel"]["dropped"].values()) == 3
    )
    server.key = OTHER_KEY  # the key was changed at the server: what it refuses is not told either
    failed = inf("curate", "small", "--connection", "lab", *settings, "--fresh")
    assert failed.code == 1 and "refuses the key" in failed.err
    told.append(failed.out + failed.err)
    backup = tmp_path / "all.backup"
    assert inf("store", "backup", backup).code == 0
    monkeypatch.setenv("INF_DATABASE_URL", f"sqlite:///{tmp_path / 'copy.db'}")
    target = open_store()
    copied = copy_store(sqlite_store, target)
    assert copied["tables"]["connection"] == 1
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    sealed = (home() / sealing.FILE).read_bytes()
    places = [*home().rglob("*"), *tmp_path.rglob("*")]
    for file in places:
        if file.is_file():
            content = file.read_bytes()
            assert KEY.encode() not in content, file
            assert sealed not in content or file.name == sealing.FILE, file
    with zipfile.ZipFile(backup) as archive:
        with sqlite_store.read() as session:
            row = session.scalars(select(Connection)).one()
            assert row.sealed_key and KEY not in row.sealed_key
        for name in archive.namelist():
            held = archive.read(name)
            assert KEY.encode() not in held and row.sealed_key.encode() not in held, name
    assert not any(KEY in text or OTHER_KEY in text for text in told)
    with sqlite_store.read() as session:
        for config in session.scalars(select(Job.config)):
            assert set(config) <= {"run_id", "concurrency", "path"}, config
        for event in session.scalars(select(Event)):
            assert KEY not in str(event.data)
    with target.read() as session:  # the copy goes on with the same key file
        copy = session.scalars(select(Connection)).one()
        assert sealing.unseal(str(copy.sealed_key)) == KEY
    target.close()


def test_the_key_file_is_its_owners_alone_and_a_store_without_it_has_no_key(
    sqlite_store: Store,
) -> None:
    add(url="https://example.org/v1", key=KEY)
    path = home() / sealing.FILE
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    assert "can be read by others" in str(connections.show(COMMAND, "lab").problem)
    path.chmod(0o600)
    assert connections.show(COMMAND, "lab").problem is None
    path.unlink()
    assert "cannot be opened on this machine" in str(connections.show(COMMAND, "lab").problem)
    add(name="other", url="https://example.org/v1", key=OTHER_KEY)  # another key file is made
    with pytest.raises(InfError) as refused:
        connections.test(COMMAND, "lab")
    assert refused.value.code == "connection_key_sealed_elsewhere"
    given_again = connections.change(COMMAND, ConnectionChange(name="lab"), KEY)
    assert given_again.problem is None


def test_a_restored_connection_asks_for_its_typed_key(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    add(url="https://example.org/v1", key=KEY)
    assert inf("store", "backup", tmp_path / "b").code == 0
    assert inf("store", "restore", tmp_path / "b", "--replace").code == 0
    found = connections.show(COMMAND, "lab")
    assert found.secret == "typed" and "a restored backup has none" in str(found.problem)


def test_a_run_uses_the_key_of_now_also_where_it_was_refused_before(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=3)
    with Server(key=KEY) as server:
        (home() / secrets.FILE).write_text(f'LAB_API_KEY = "{OTHER_KEY}"\n')
        (home() / secrets.FILE).chmod(0o600)
        add(url=server.url, secret="LAB_API_KEY")
        # a supervisor that began with the old file hands no old value down
        secrets.load_secrets()
        assert "LAB_API_KEY" not in secrets.inherited()
        ran = inf("curate", "small", "--connection", "lab", "--set", "model=small", "--json")
        assert ran.code == 1 and ran.json["code"] == "server_refuses_key"
        assert "refuses the key" in ran.json["error"] and OTHER_KEY not in ran.out + ran.err
        (home() / secrets.FILE).write_text(f'LAB_API_KEY = "{KEY}"\n')
        done = inf("runs", "resume", 1, "--json")
        assert done.code == 0, done.err
        assert done.json["status"] == "done"
        monkeypatch.setenv("LAB_API_KEY", "sk-third-0123456789")  # the environment takes precedence
        assert secrets.secret_now("LAB_API_KEY") == "sk-third-0123456789"


def test_a_run_goes_to_its_connection_whatever_the_environment_names(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=2)
    with Server() as lab, Server() as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        monkeypatch.setenv("OPENAI_API_KEY", OTHER_KEY)
        add(url=lab.url)
        assert inf("curate", "small", "--connection", "lab", "--set", "model=small").code == 0
        assert lab.answered.total() > 0 and other.answered.total() == 0
        assert not any(OTHER_KEY in str(each) for each in lab.headers)
        answered = lab.answered.total()
        ran = inf("curate", "small", "--connection", "environment", "--set", "model=small")
        assert ran.code == 0 and other.answered.total() > 0 and lab.answered.total() == answered
        group = inf("groups", "show", 1, "--json").json
        assert {call["server"] for call in group["calls"]} == {lab.url}
        shown = [inf("runs", "show", each, "--json").json for each in (1, 2)]
        assert [each["connection"] for each in shown] == ["lab", "environment"]
        assert [each["url"] for each in shown] == [lab.url, other.url]
    with sqlite_store.read() as session:
        groups = set(session.scalars(select(Call.server_group)))
    assert groups == {lab.url, other.url}


def test_a_run_and_its_card_name_the_model_that_answered(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    add_dataset(sqlite_store, pairs=3)
    with Server() as server:
        server.other_model = (0, "small-2026-08")
        add(url=server.url)
        asked = ("--connection", "lab", "--set", "model=small", "--json")
        assert inf("curate", "small", *asked).code == 0
        models = inf("runs", "show", 1, "--json").json["models"]
        assert {of["answered_as"] for of in models.values()} == {"small-2026-08"}
        released = inf("releases", "create", "small", "--out", tmp_path / "release", "--json")
        assert released.code == 0, released.err
    card = (tmp_path / "release" / "README.md").read_text(encoding="utf-8")
    assert "provider `openai` at a server of its makers' own network" in card
    assert "small (answered as small-2026-08)" in card and server.url not in card


def test_a_run_that_is_not_over_keeps_its_connection_and_its_address(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    add_dataset(sqlite_store, pairs=2)
    with Server() as server:
        add(url=server.url)
        wanted = RunStart(dataset="small", connection="lab", settings=("model=small",))
        runs.create(COMMAND, wanted, lambda *_: None)
        with pytest.raises(Refused) as refused:
            connections.remove(COMMAND, "lab")
        assert refused.value.code == "connection_in_use"
        with sqlite_store.write() as session:  # as somebody with the store's password might
            session.scalars(select(Connection)).one().url = "https://elsewhere.example/v1"
            session.commit()
        ran = inf("runs", "resume", 1, "--json")
        assert ran.code == 1 and "elsewhere.example" in ran.json["error"]
        assert server.answered.total() == 0


def test_a_test_names_models_time_and_what_the_server_supports(
    sqlite_store: Store, server: Server
) -> None:
    server.reasoning_tokens = 12
    add(url=server.url, key=KEY)
    tested = connections.test(COMMAND, "lab", "judge").tested
    assert tested is not None and tested.models == ("judge", "small") and tested.model == "judge"
    assert 0 < tested.seconds < 30 and tested.answered_as == "judge"
    assert tested.supports_reasoning is True and tested.supports_batch is True
    assert connections.show(COMMAND, "lab").tested == tested
    assert connections.list_all(COMMAND).data[1].tested == tested


def test_a_test_of_a_plain_server_does_not_promise_what_it_lacks(sqlite_store: Store) -> None:
    with Server(schema="refused", list_models=False) as server:
        server.batches.there = False
        add(url=server.url)
        with pytest.raises(BadInput) as refused:
            connections.test(COMMAND, "lab")
        assert refused.value.code == "model_unknown_to_server"
        tested = connections.test(COMMAND, "lab", "small").tested
    assert tested is not None and tested.models == ()
    assert tested.supports_schema is False and tested.supports_reasoning is None


def test_a_server_that_ignores_a_schema_does_not_support_it(sqlite_store: Store) -> None:
    with Server(schema="ignored") as server:
        add(url=server.url)
        tested = connections.test(COMMAND, "lab").tested
    assert tested is not None and tested.supports_schema is False


@pytest.mark.parametrize(
    ("code", "make"),
    [
        ("server_refuses_key", lambda: Server(key="sk-something-else")),
        ("server_refuses_call", lambda: _down()),
    ],
)
def test_a_test_names_what_is_wrong(
    sqlite_store: Store, code: str, make: Callable[[], Server]
) -> None:
    with make() as server:
        add(url=server.url, key=KEY)
        with pytest.raises(ProviderError) as refused:
            connections.test(COMMAND, "lab")
    assert refused.value.code == code and KEY not in str(refused.value)


def _down() -> Server:
    server = Server()
    server.down = (0, 500, "broken")
    return server


def test_a_test_of_nothing_names_that(sqlite_store: Store) -> None:
    add(url="http://127.0.0.1:9/v1")
    with pytest.raises(ProviderError) as refused:
        connections.test(COMMAND, "lab")
    assert refused.value.code == "server_unreachable"


def test_an_address_without_its_v1_is_named_with_the_one_that_answers(sqlite_store: Store) -> None:
    with Server(key=KEY) as server, Server(list_models=False) as unlisted:
        for name, key, model in (
            ("lab", KEY, ""),
            ("refused", "sk-other-key", ""),
            ("m", KEY, "small"),
        ):
            add(name=name, url=server.url.removesuffix("/v1"), key=key)
            with pytest.raises(ProviderError) as refused:
                connections.test(COMMAND, name, model)
            assert refused.value.code == "server_address_without_v1"
            assert server.url in refused.value.remedy
        add(name="plain", url=unlisted.url)  # a server that lists nothing may be as good
        with pytest.raises(BadInput) as unnamed:
            connections.test(COMMAND, "plain")
        assert unnamed.value.code == "model_unknown_to_server"
        assert connections.test(COMMAND, "plain", "small").tested is not None


def test_on_a_shared_server_private_addresses_are_its_owners_to_allow(
    sqlite_store: Store,
) -> None:
    with sqlite_store.write() as session:
        add_account(session, "ada", None, role="admin", actor="test", dataset_ids=None)
        session.commit()
    with Server() as server:
        for actor in (ADMIN, COMMAND):
            with pytest.raises(ProviderError) as refused:
                add(actor, url=server.url)
            assert refused.value.code == "server_address_private"
        with pytest.raises(Refused) as denied:
            add(ADMIN, url=server.url, private=True)
        assert denied.value.code == "private_network_needs_owner"
        assert add(COMMAND, url=server.url, private=True).private
        assert connections.test(ADMIN, "lab").tested is not None
        connections.change(ADMIN, ConnectionChange(name="lab", private=None))
        with sqlite_store.write() as session:  # the permission is asked for at every call
            session.scalars(select(Connection)).one().private = False
            session.commit()
        with pytest.raises(ProviderError) as refused:
            connections.test(ADMIN, "lab")
        assert refused.value.code == "server_address_private"
        assert server.asked.total() == 3


def test_the_reach_of_a_connection_changes_only_where_that_is_asked(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    with sqlite_store.write() as session:
        add_account(session, "ada", None, role="admin", actor="test", dataset_ids=None)
        session.commit()
    add(COMMAND, url="http://127.0.0.1:9/v1", private=True)
    assert inf("connections", "change", "lab", "--price", "a=1/2", "--json").json["private"]
    assert not inf("connections", "change", "lab", "--public", "--json").json["private"]
    with pytest.raises(Refused) as refused:
        connections.change(ADMIN, ConnectionChange(name="lab", private=True))
    assert refused.value.code == "private_network_needs_owner"
    assert inf("connections", "change", "lab", "--private", "--json").json["private"]


@pytest.mark.parametrize("private", [False, True])
def test_a_metadata_service_is_nobodys_connection(sqlite_store: Store, private: bool) -> None:
    with pytest.raises(ProviderError) as refused:
        add(url="http://169.254.169.254/v1", private=private)
    assert refused.value.code == "server_address_metadata"


def test_a_redirect_is_not_followed(sqlite_store: Store) -> None:
    from aiohttp import web

    with Server() as inner, Server() as outer:

        async def send_on(request: web.Request, *_: Any) -> web.StreamResponse:
            return web.Response(status=307, headers={"Location": f"{inner.url}/chat/completions"})

        outer.reply = send_on
        add(url=outer.url, key=KEY)
        with pytest.raises(ProviderError) as refused:
            connections.test(COMMAND, "lab")
        assert refused.value.code == "server_redirects"
        assert inner.asked.total() == 0 and outer.asked.total() == 1


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("connection_name_invalid", {"name": "environment", "url": "https://a.example/v1"}),
        ("connection_name_invalid", {"name": "7", "url": "https://a.example/v1"}),
        ("connection_name_invalid", {"name": "a b", "url": "https://a.example/v1"}),
        ("connection_url_missing", {}),
        ("connection_without_url", {"kind": "offline", "url": "https://a.example/v1"}),
        ("server_address_invalid", {"url": "https://me:sk-1@a.example/v1"}),
        ("connection_secret_invalid", {"url": "https://a.example/v1", "secret": KEY}),
        ("connection_secret_invalid", {"url": "https://a.example/v1", "secret": "HF_TOKEN"}),
        ("connection_secret_invalid", {"url": "https://a.example/v1", "secret": "INF_INDEX_KEY"}),
        ("connection_secret_invalid", {"url": "https://a.example/v1", "secret": "PATH"}),
    ],
)
def test_what_is_no_connection_is_refused_without_repeating_a_key(
    sqlite_store: Store, code: str, given: dict[str, Any]
) -> None:
    with pytest.raises(InfError) as refused:
        add(**given)
    assert refused.value.code == code
    assert KEY not in str(refused.value) and "sk-1" not in str(refused.value)


def test_two_connections_are_not_called_alike(sqlite_store: Store) -> None:
    add(name="lab", url="https://a.example/v1")
    with pytest.raises(Refused) as refused:
        add(name="LAB", url="https://b.example/v1")
    assert refused.value.code == "connection_exists"
    with pytest.raises(NotFound):
        connections.show(COMMAND, "labor")


def test_prices_of_a_connection_are_those_of_its_runs(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    add_dataset(sqlite_store, pairs=2)
    with Server(usage=(1000, 1000)) as server:
        ran = inf(
            *("connections", "add", "lab", "--url", server.url),
            *("--price", "small=1/3", "--json"),
        )
        assert ran.json["prices"] == {"small": {"input": 1.0, "output": 3.0}}
        asked = ("small", "--connection", "lab", "--set", "model=small")
        assert inf("runs", "estimate", *asked, "--json").json["usd"] > 0
        wanted = RunStart(dataset="small", connection="lab", settings=("model=small",))
        assert runs.unpriced(COMMAND, wanted) == ()
        by_environment = wanted.model_copy(update={"connection": None, "provider": "openai"})
        assert runs.unpriced(COMMAND, by_environment) == ("small",)
        offline = RunStart(dataset="small", provider="offline")
        assert runs.unpriced(COMMAND, offline) == ()
        done = inf("curate", *asked, "--json").json
        assert done["unpriced"] == []
        made = done["calls"]["made"]
        assert done["spent_usd"] == pytest.approx(made * 0.004)
    wrong = inf("connections", "change", "lab", "--price", "small=1", "--json")
    assert wrong.code == 2 and "0.15/0.6" in wrong.json["error"]


def test_a_provider_and_a_connection_of_another_are_refused_together(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    add_dataset(sqlite_store, pairs=2)
    add(name="rules", kind="offline")
    assert inf("curate", "small", "--connection", "rules", "--provider", "openai").code == 1
    assert inf("curate", "small").code == 2
    ran = inf("curate", "small", "--connection", "nowhere", "--json")
    assert ran.code == 1 and ran.json["code"] == "connection_unknown"
    with sqlite_store.read() as session:
        assert session.scalars(select(Run)).all() == []


def test_command_and_operation_print_the_same_rows(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:pass@localhost:1234/v1")
    add(url="https://a.example/v1", secret="LAB_API_KEY")
    listed = inf("connections", "list", "--json").json
    assert listed == connections.list_all(COMMAND).as_json() and listed["total"] == 2
    first, second = listed["data"]
    assert first["name"] == "environment" and first["url"] == "http://localhost:1234/v1"
    assert first["id"] is None and first["kind"] == "compatible"
    assert "LAB_API_KEY is neither in the environment" in second["problem"]
    assert inf("connections", "show", "lab", "--json").json == second
    assert inf("connections", "show", second["id"], "--json").json == second
