"""Every noun: command, operation, page and job have the same rows, byte for byte.

A noun is a command with `list`: one that is added without a row of `NOUNS` fails here.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest
import streamlit as st
from app_pages import open_page, sign_in, words
from conftest import Ran
from full_store import fill
from records_world import make_run
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

from analysis.embed.model_source import DEFAULT_MODEL
from analysis.found.texts import Analysed
from analysis.text.diversity_tables import compared_rows, published_rows, table_one
from analysis.text.sharing import overlap_rows, repeated_rows
from app.access.identity import owner
from app.cli.main import inf as commands
from app.operations import (
    analyses,
    connections,
    datasets,
    evaluations,
    groups,
    jobs,
    models,
    people,
    recipes,
    releases,
    runs,
    trainings,
)
from app.operations.connections import ConnectionAdd
from app.operations.doors import tokens, webhooks
from app.operations.doors.tokens import TokenCreate
from app.operations.doors.webhooks import WebhookAdd
from app.operations.judging import desk, judgments, reviews, studies
from app.text.plain import plain
from db.people.accounts import add_account
from db.review.queue import QueueFilter
from db.servers.webhooks import queue_events
from db.store.store import Store
from db.tables import Judge, Release, Study, StudyJudge, Webhook

ADA = owner("ada")


def as_bytes(rows: Any) -> bytes:
    return json.dumps(rows, ensure_ascii=False).encode()


@dataclass(frozen=True)
class Noun:
    """How a noun is listed and shown by command and by operation, and its rows drawn by a page.

    page: the page with its rows, and of which address. They are in a table of it; else `instead`
    says why there is none and `source`, module and name, is the operation that hands the page the
    rows of which it makes that; without a page `instead` says why no page has them. in_full: what a
    list abridges.
    """

    listed: Callable[[], Any]
    shown: Callable[[int], Any] | None
    words: tuple[object, ...] = ()
    page: str = ""
    at: Mapping[str, str] = field(default_factory=dict)
    instead: str = ""
    source: tuple[Any, str] | None = None
    in_full: frozenset[str] = frozenset()


NOUNS: Mapping[str, Noun] = {
    "datasets": Noun(
        lambda: datasets.list_all(ADA), lambda _: datasets.show(ADA, "world"), page="datasets"
    ),
    "recipes": Noun(lambda: recipes.list_all(ADA), None, page="recipes"),
    "runs": Noun(
        lambda: runs.list_all(ADA),
        lambda one: runs.show(ADA, one),
        page="groups",
        source=(runs, "list_all"),
        instead="one is chosen, by a box above its groups",
    ),
    "groups": Noun(
        lambda: groups.list_some(ADA, QueueFilter(run_id=1)),
        lambda one: groups.show(ADA, one),
        (1,),
        page="groups",
        source=(desk, "page"),
        instead="the workbench is a card of the browser's, which takes them as JSON",
        in_full=frozenset({"review"}),
    ),
    "reviews": Noun(
        lambda: reviews.list_some(ADA, 1),
        lambda one: reviews.show(ADA, one),
        (1,),
        instead="a group's header has its current one, which is a part of the group's row",
    ),
    "studies": Noun(
        lambda: studies.list_all(ADA),
        lambda one: studies.show(ADA, one),
        page="studies",
        source=(studies, "list_all"),
        instead="one is chosen, by a box",
    ),
    "judgments": Noun(
        lambda: judgments.list_some(ADA, 1),
        lambda one: judgments.show(ADA, one),
        (1,),
        instead="pages have their figures, and a judge their own answers without labels",
    ),
    "releases": Noun(
        lambda: releases.list_all(ADA), lambda one: releases.show(ADA, one), page="releases"
    ),
    "trainings": Noun(
        lambda: trainings.list_some(ADA), lambda one: trainings.show(ADA, one), page="train"
    ),
    "models": Noun(lambda: models.list_some(ADA), lambda one: models.show(ADA, one), page="train"),
    "evaluations": Noun(
        lambda: evaluations.list_some(ADA),
        lambda one: evaluations.show(ADA, one),
        page="evaluations",
    ),
    "jobs": Noun(lambda: jobs.list_some(ADA), lambda one: jobs.show(ADA, one), page="jobs"),
    "people": Noun(
        lambda: people.list_all(ADA),
        lambda _: people.show(ADA, "ann"),
        page="accounts",
        source=(people, "list_all"),
        instead="a box with buttons for each",
    ),
    "tokens": Noun(
        lambda: tokens.list_all(ADA, everybody=True),
        None,
        page="tokens",
        source=(tokens, "list_all"),
        instead="a box with a button for each; those that ended are in a table, below",
    ),
    "webhooks": Noun(
        lambda: webhooks.list_all(ADA),
        lambda one: webhooks.show(ADA, one),
        page="tokens",
        source=(webhooks, "list_all"),
        instead="a box with buttons for each",
    ),
    "connections": Noun(
        lambda: connections.list_all(ADA),
        lambda _: connections.show(ADA, "lab"),
        page="connections",
        source=(connections, "list_all"),
        instead="a box with buttons for each",
    ),
}
BY_NAME = {"datasets": "world", "people": "ann", "connections": "lab"}
# What is no list of a noun's, though its command is called so; `analyze` has results, no list.
OTHERS = {"study", "users", "evaluate"}  # former names


@pytest.fixture
def world(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Something of everything."""
    fill(sqlite_store)
    with sqlite_store.write() as session:
        add_account(session, "ann", "correct horse battery", role="admin", actor="test")
        first = session.get_one(Release, 1)
        named = (
            "dataset_id",
            "content_sha256",
            "path",
            "format",
            "filter",
            "counts",
            "card",
            "offline",
        )
        again = {name: getattr(first, name) for name in named}
        session.add(Release(**again | {"name": "world-2", "path": "/nowhere/world-2"}))
        session.add(StudyJudge(study_id=1, judge_id=1))
        session.get_one(Study, 1).status = "closed"  # an open one hides its groups from who judges
        session.commit()
    with monkeypatch.context() as patch:
        patch.setenv("INF_DATABASE_URL", sqlite_store.url)
        connections.add(ADA, ConnectionAdd(name="lab", url="https://a.example/v1"))
        tokens.create(ADA, TokenCreate(name="ci", rights=("curate",), person="ann"))
        ended = tokens.create(ADA, TokenCreate(name="old", rights=("curate",), person="ann"))
        tokens.revoke(ADA, ended.id)
        webhooks.add(ADA, WebhookAdd(url="https://a.example/hook"))
    with sqlite_store.write() as session:
        queue_events(session, session.get_one(Webhook, 1), [1], 1)
        session.commit()
    return sqlite_store


def test_every_noun_with_a_list_is_among_them() -> None:
    context = click.Context(commands)
    found = set()
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        if isinstance(command, click.Group) and "list" in command.commands:
            found.add(name)
    assert found - OTHERS == set(NOUNS)


@pytest.mark.parametrize("noun", NOUNS)
def test_command_and_operation_have_the_same_rows(
    world: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, noun: str
) -> None:
    each = NOUNS[noun]
    ran = inf(noun, "list", *each.words, "--json")
    assert ran.code == 0 and ran.err == "", ran.err
    monkeypatch.setenv("INF_DATABASE_URL", world.url)
    rows = each.listed().as_json()
    assert rows["data"] and rows["total"] >= len(rows["data"])
    assert as_bytes({name: ran.json[name] for name in rows}) == as_bytes(rows)
    if each.shown is None:
        return
    first = rows["data"][0]
    if noun in BY_NAME:
        first = next(row for row in rows["data"] if row["name"] == BY_NAME[noun])
    shown = each.shown(first["id"]).as_json()
    printed = inf(noun, "show", BY_NAME.get(noun, first["id"]), "--json").json
    assert as_bytes({name: printed[name] for name in shown}) == as_bytes(shown)
    alike = first.keys() & shown.keys() - each.in_full
    assert alike >= {"id"} and {name: shown[name] for name in alike} == {
        name: first[name] for name in alike
    }


@pytest.fixture
def drawn(world: Store, monkeypatch: pytest.MonkeyPatch) -> list[list[dict[str, Any]]]:
    """The rows that pages hand to their tables from now on, opened by an admin."""
    found: list[list[dict[str, Any]]] = []
    true_table = st.dataframe

    def dataframe(rows: Any, *given: Any, **more: Any) -> Any:
        found.append(rows.to_dict("records") if isinstance(rows, pd.DataFrame) else list(rows))
        return true_table(rows, *given, **more)

    monkeypatch.setattr(st, "dataframe", dataframe)
    monkeypatch.setenv("INF_DATABASE_URL", world.url)
    sign_in(world, monkeypatch, "admin")
    return found


def own_keys(table: list[dict[str, Any]], keys: Collection[str]) -> list[dict[str, Any]]:
    """The rows of a table by these keys: what a page adds for the eye comes behind a row's own."""
    return [{name: row[name] for name in keys if name in row} for row in table]


@pytest.mark.parametrize("noun", [name for name, each in NOUNS.items() if not each.instead])
def test_a_page_s_table_has_the_rows_of_the_operation(
    drawn: list[list[dict[str, Any]]], noun: str
) -> None:
    rows = NOUNS[noun].listed().as_json()["data"]
    open_page(NOUNS[noun].page, dataset="world", **NOUNS[noun].at)
    assert as_bytes(rows) in [as_bytes(own_keys(one, rows[0])) for one in drawn]


@pytest.mark.parametrize("noun", [name for name, each in NOUNS.items() if each.source])
def test_a_page_without_a_table_of_a_noun_is_handed_its_rows(
    drawn: list[list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, noun: str
) -> None:
    """Boxes and cards are made of the same rows, byte for byte, and of no table in disguise."""
    each = NOUNS[noun]
    assert each.source is not None
    module, name = each.source
    operation, handed = getattr(module, name), list[Any]()

    def spy(*given: Any, **more: Any) -> Any:
        handed.append(found := operation(*given, **more))
        return found

    monkeypatch.setattr(module, name, spy)
    rows = each.listed().as_json()["data"]
    handed.clear()
    at = open_page(each.page, dataset="world", **each.at)
    assert as_bytes(rows) in [as_bytes(one.as_json()["data"]) for one in handed]
    shown = words(at) + "".join(str(one.options) for one in at.selectbox) + card_text(at)
    shown += str(drawn)
    names = [str(row.get("name", row.get("url"))) for row in rows]
    assert all(plain(name) in shown or name in shown for name in names), noun
    assert names not in [[str(row.get("name")) for row in table] for table in drawn], noun


def card_text(at: AppTest) -> str:
    return "".join(str(each.proto.json) for each in at.main if hasattr(each.proto, "json"))


def test_every_noun_is_on_a_page_or_has_the_reason_why_not() -> None:
    for name, each in NOUNS.items():
        assert bool(each.page and not each.instead) or bool(each.instead), name
        assert bool(each.source) == bool(each.page and each.instead), name


# Tables of what a noun has several of: the command with its rows, the page, and its address.
PARTS: Mapping[str, tuple[tuple[object, ...], str, Mapping[str, str], Mapping[str, Any]]] = {
    "studies people": ((1,), "studies", {"study": "1"}, {}),
    "studies work": ((1,), "studies", {"study": "1"}, {"studies.work": True}),
    "runs versions": ((1,), "curate", {"run": "1"}, {"curate.versions_box": True}),
    "releases diff": ((1, 2), "releases", {"release": "2"}, {"releases.before": 1}),
    "webhooks deliveries": ((1,), "tokens", {}, {}),
}


@pytest.mark.parametrize("command", PARTS)
def test_tables_of_what_a_noun_has_are_the_rows_of_its_command(
    drawn: list[list[dict[str, Any]]], inf: Callable[..., Ran], command: str
) -> None:
    given, page, parameters, state = PARTS[command]
    rows = inf(*command.split(), *given, "--json").json["data"]
    assert rows
    at = open_page(page, dataset="world", **parameters)
    for key, value in state.items():
        at.session_state[key] = value
    if state:
        at.run()
    assert not at.exception
    assert as_bytes(rows) in [as_bytes(own_keys(one, rows[0])) for one in drawn]


def test_the_table_of_tokens_that_ended_has_their_rows(drawn: list[list[dict[str, Any]]]) -> None:
    every = tokens.list_all(ADA, everybody=True).as_json()["data"]
    rows = [row for row in every if row["status"] != "valid"]
    open_page("tokens")
    assert rows and as_bytes(rows) in [as_bytes(one) for one in drawn]


def test_a_job_s_result_is_what_the_command_prints(
    sqlite_store: Store,
    inf: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of every kind that a command waits for here without a model to train or to ask."""
    make_run(sqlite_store)
    assert inf("studies", "create", "books", "--items", 3, "--overlap", 1).code == 0
    for command in (
        ("releases", "create", "books", "--out", tmp_path / "one"),
        ("store", "backup", tmp_path / "backup.zip"),
        ("reviews", "validate", 1),
        ("studies", "judge", 1, "--judge", "simulated:1"),
        ("runs", "create", "books", "--provider", "offline", "--limit", 1),
        ("evaluations", "create", "--model", "bm25", "--benchmark", "dataset:books"),
    ):
        done = inf(*command, "--json")
        assert done.code == 0, done.err + done.out
        monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
        assert "job_id" in done.json, command
        stored = jobs.show(ADA, done.json["job_id"]).result
        printed = {name: value for name, value in done.json.items() if name != "job_id"}
        assert stored is not None and printed.keys() == stored.keys(), command
        assert as_bytes(printed) == as_bytes({name: stored[name] for name in printed}), command


# How the page's tables are made of the result, which holds values, not labels.
ANALYSES: Mapping[str, tuple[tuple[str, ...], str, Callable[[Any], list[dict[str, Any]]]]] = {
    "near_duplicates": (
        ("near-duplicates",),
        "overlaps",
        lambda found: repeated_rows(found.fields),
    ),
    "contamination": (
        ("contamination", "--against-dataset", "films"),
        "overlaps",
        lambda found: [row | {"Group": None} for row in overlap_rows(found.pairs)],
    ),
    "diversity": (
        ("diversity",),
        "diversity",
        lambda found: [*table_one(found.corpora), *published_rows(found.corpora)],
    ),
    "coverage": (
        ("coverage", "--dataset", "films"),
        "coverage",
        lambda found: compared_rows(found.covered),
    ),
}
# What a job finds at its end besides the stored analysis, which may be older.
OF_NOW = {"analysis_id", "known", "circular"}


@pytest.mark.long
@pytest.mark.parametrize("kind", ANALYSES)
def test_a_page_s_tables_of_an_analysis_are_of_the_result_that_the_command_prints(
    drawn: list[list[dict[str, Any]]],
    inf: Callable[..., Ran],
    world: Store,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    given, page, table = ANALYSES[kind]
    make_run(world)
    make_run(world, name="films")  # of the same texts
    with world.write() as session:  # validated by the model that embeds the texts
        for judge in session.scalars(select(Judge)):
            judge.model = DEFAULT_MODEL
        session.commit()
    done = inf("analyze", *given, "--dataset", "books", "--json")
    assert done.code == 0, done.err + done.out
    monkeypatch.setenv("INF_DATABASE_URL", world.url)
    printed = {name: value for name, value in done.json.items() if name != "job_id"}
    result = jobs.show(ADA, done.json["job_id"]).result
    assert result is not None and as_bytes(result) == as_bytes(printed)
    row = next(each for each in Analysed.__subclasses__() if kind == each.KIND)
    (stored,) = analyses.stored(ADA, row, None)
    assert ("circular" in printed) == (kind == "coverage")
    own = [name for name in printed if name not in OF_NOW]
    assert own and printed["analysis_id"] == stored.id and not printed["known"]
    held = stored.result.as_json()
    assert as_bytes([printed[name] for name in own]) == as_bytes([held[name] for name in own])
    at = open_page(page, dataset="books")
    if kind == "contamination":
        at.session_state["overlaps.question"] = kind
        assert not at.run().exception
    rows = table(stored.result)
    keys = rows[0].keys()
    links = [[row | {"Group": None} if "Group" in row else row for row in one] for one in drawn]
    assert as_bytes(rows) in [as_bytes(own_keys(one, keys)) for one in links]
