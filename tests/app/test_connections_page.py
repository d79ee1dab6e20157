"""The Connections page and the connection of a run's form: from a URL to a run without a shell."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page, sign_in, words
from curation_runs import add_dataset
from openai_server import Server
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

from app.access.identity import owner
from app.operations import connections
from app.operations.connections import ConnectionAdd
from db.people.accounts import add_account
from db.store import secrets
from db.store.store import Store
from db.tables import Connection, Job, Run

KEY = "sk-typed-0123456789abcdef"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_used_here", {})


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(key=KEY, models=("large", "small")) as running:
        yield running


def fill_form(at: AppTest, **given: Any) -> AppTest:
    for name, value in given.items():
        at.text_input(key=f"connections.{name}").set_value(value)
    return at.button(key="connections.submit").click().run()


def drawers(at: AppTest) -> dict[str, bool]:
    """The folded parts of a run's first two steps that are there, and whether each is open."""
    return {
        each.label: each.proto.expanded
        for each in at.expander
        if each.label in ("New file", "Connect a model server")
    }


def everything(at: AppTest) -> str:
    """All that a page holds: what is shown, what fields hold, and the session's state."""
    held = [each.value for each in (*at.text_input, *at.text_area)]
    return f"{words(at)} {held} {at.session_state!r}"


def test_an_engineer_comes_from_a_url_to_a_queued_run_without_a_shell(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=3)
    at = open_page("connections")
    assert "No connections yet" in words(at) and "environment" in words(at)
    at = fill_form(at, name="lab", url=server.url, key=KEY)
    assert not at.error, at.error
    shown = words(at).replace("\\", "")
    assert "2 models" in shown and "reasoning unknown" in shown and "a typed key" in shown
    assert KEY not in everything(at)
    assert at.session_state["curate.provider"] == "connection lab"  # the next run's
    at = open_page("curate")
    assert at.selectbox(key="curate.provider").options[-1] == f"lab ({server.url})"
    at.selectbox(key="curate.provider").select("connection lab").run()
    assert at.selectbox(key="curate.model-lab-").value == "large"  # the recipe's is not listed
    at.selectbox(key="curate.model-lab-validation").select("small").run()
    assert "an unknown price" in words(at)
    at.button(key="curate.start").click().run()
    assert not at.exception and not at.error
    with sqlite_store.read() as session:
        run, job = session.scalars(select(Run)).one(), session.scalars(select(Job)).one()
        assert run.server == {"connection": "lab", "kind": "compatible", "url": server.url}
        models = {of["model"] for task, of in run.models.items() if task != "validation"}
        assert models == {"large"} and run.models["validation"]["model"] == "small"
        assert job.config == {"run_id": run.id}
        row = session.scalars(select(Connection)).one()
        assert row.tested["models"] == ["large", "small"]
    captions = [re.sub(r"[\\`]", "", each.value) for each in open_page("curate").caption]
    assert any(
        f"written by large, judged by small · lab: {server.url}" in each for each in captions
    )


def test_the_models_of_the_environment_s_server_are_offered_once_it_was_tested(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=3)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    at = open_page("connections")
    at.button(key="connections.test-environment").click().run()
    assert not at.error and "2 models" in words(at)
    tested = at.session_state["connections.tested"]
    at = open_page("curate")
    at.session_state["connections.tested"] = tested
    at.selectbox(key="curate.provider").select("openai").run()
    assert at.selectbox(key="curate.model-environment-").options[1:] == ["large", "small"]


def test_the_models_of_a_tested_connection_are_offered_as_judges(
    sqlite_store: Store, server: Server
) -> None:
    run_id = make_world(sqlite_store, 4)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=2, overlap=1)
        session.commit()
    fill_form(open_page("connections"), name="lab", url=server.url, key=KEY)
    offered = open_page("studies").selectbox(key="studies.judge").options
    assert offered[-2:] == ["connection:lab:large", "connection:lab:small"]


def test_the_key_of_a_connection_is_changed_and_not_shown(
    sqlite_store: Store, server: Server
) -> None:
    at = fill_form(open_page("connections"), name="lab", url=server.url, key="sk-wrong-0123456")
    assert "refuses the key" in at.error[0].value and "sk-wrong" not in everything(at)
    assert "curate.provider" not in at.session_state
    row = connections.add(
        owner("me"), ConnectionAdd(name="lab", url=server.url), "sk-wrong-0123456"
    )
    at = open_page("connections")
    at.text_input(key=f"connections.key-{row.id}").set_value(KEY)
    at.button(key=f"connections.key-do-{row.id}").click().run()
    assert not at.error
    at.button(key=f"connections.test-{row.id}").click().run()
    assert not at.error and "2 models" in words(at)
    assert KEY not in everything(at)
    at.text_area(key=f"connections-{row.name}.prices").set_value("large = 1/2").run()
    at.button(key=f"connections.prices-do-{row.id}").click().run()
    assert connections.show(owner("me"), "lab").prices == {"large": {"input": 1.0, "output": 2.0}}
    at.text_area(key=f"connections-{row.name}.prices").set_value("small=2/3").run()
    at.button(key=f"connections.prices-do-{row.id}").click().run()
    assert connections.show(owner("me"), "lab").prices == {"small": {"input": 2.0, "output": 3.0}}
    at.button(key=f"connections.remove-do-{row.id}").click().run()
    assert "No connections yet" in words(at)


def test_a_failed_add_keeps_what_was_typed_and_names_the_field(
    sqlite_store: Store, server: Server
) -> None:
    connections.add(owner("me"), ConnectionAdd(name="taken", url=server.url), KEY)
    silent = "http://127.0.0.1:9/v1"
    for given, field, wrong in (
        ({"name": "lab", "url": silent, "key": KEY}, "url", "No server responds at `http"),
        ({"name": "lab", "url": "what"}, "url", "is no address of a server"),
        ({"name": "lab", "url": server.url[:-3], "key": KEY}, "url", "its models are listed at"),
        ({"name": "lab", "url": server.url, "key": "sk-wrong-0123456"}, "key", "refuses the key"),
        ({"name": "taken", "url": server.url, "key": KEY}, "name", "connection taken already"),
        ({"name": "lab", "url": server.url, "secret": "no name"}, "secret", "is no name of"),
    ):
        at = fill_form(open_page("connections"), **given)
        (error,) = at.error
        assert wrong in error.value.replace("\\", "") and not error.value[0].islower()
        order = [each.key or each.type for each in at.main if each.type in ("text_input", "error")]
        assert order[order.index("error") - 1] in (f"connections.{field}", "connections.secret")
        held = {name: at.text_input(key=f"connections.{name}").value for name in given}
        assert held == given | ({"key": ""} if "key" in given else {})
        at = at.run()
        assert not at.error, "said once"
        assert [each.name for each in connections.list_all(owner("me")).data[1:]] == ["taken"]
    at = fill_form(at, url=server.url, secret="", key=KEY)
    assert not at.error and connections.show(owner("me"), "lab").tested is not None


def test_the_page_refuses_a_private_network_on_a_shared_server_in_its_words(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(sqlite_store, monkeypatch, "admin")
    at = fill_form(open_page("connections"), name="lab", url=server.url)
    assert "a private network" in at.error[0].value
    with sqlite_store.read() as session:
        assert session.scalars(select(Connection)).all() == []
    assert server.asked.total() == 0


def test_the_whole_path_of_a_run_is_one_page_from_an_empty_store_on(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at = open_page("curate")
    steps = [each.value for each in at.markdown if re.match(r"\*\*\d", each.value)]
    assert steps == ["**1. Pairs**", "**2. Connection**", "**3. Recipe**", "**4. Budget**"]
    assert drawers(at) == {"New file": True, "Connect a model server": True}
    assert at.button(key="curate.start").disabled
    at = fill_form(at, name="lab", url=server.url, key=KEY)
    assert at.selectbox(key="curate.provider").value == "connection lab"
    assert drawers(at) == {"New file": True, "Connect a model server": False}
    assert at.button(key="curate.start").disabled, "there are no pairs"
    (tmp_path / "odd.csv").write_text("Frage;Antwort\nWas ist Tee?;Blätter in Wasser.\n")
    at.text_input(key="datasets.name").set_value("faq")
    at.text_input(key="datasets.pairs").set_value(str(tmp_path / "odd.csv"))
    at = at.button(key="datasets.submit").click().run()
    for name, theirs in (("query", "Frage"), ("passage", "Antwort")):
        at.selectbox(key=f"datasets.column_pairs_{name}").select(theirs)
    at = at.button(key="datasets.submit").click().run()
    assert not at.exception and not at.error, [each.value for each in at.error]
    assert drawers(at) == {"New file": False, "Connect a model server": False}
    at.button(key="curate.start").click().run()
    assert not at.exception and not at.error
    with sqlite_store.read() as session:
        assert session.scalars(select(Run)).one().server["connection"] == "lab"


def test_a_curator_without_any_server_reads_who_can_connect_one(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=3)
    sign_in(sqlite_store, monkeypatch, "curator")
    at = open_page("curate")
    assert at.session_state["curate.provider"] == "offline"
    assert "An admin can connect a model server" in words(at)
    assert "Connect a model server" not in drawers(at)


def test_a_curator_is_told_who_connects_a_server_and_uses_what_there_is(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=3)
    connections.add(owner("me"), ConnectionAdd(name="lab", url=server.url), KEY)
    sign_in(sqlite_store, monkeypatch, "curator")
    at = open_page("curate")
    at.selectbox(key="curate.provider").select("openai").run()
    assert "An admin can connect a model server" in words(at)
    assert at.button(key="curate.start").disabled
    at.selectbox(key="curate.provider").select("connection lab").run()
    assert not at.button(key="curate.start").disabled


def test_an_annotator_sees_no_server(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections.add(owner("me"), ConnectionAdd(name="lab", url=server.url), KEY)
    with sqlite_store.write() as session:
        add_account(session, "root", None, role="admin", actor="test")
        session.commit()
    sign_in(sqlite_store, monkeypatch, "annotator")
    for name in ("home", "judge", "answers", "groups"):
        assert server.url not in everything(open_page(name))
