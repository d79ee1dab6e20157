"""Every noun: command, operation, page and job have the same rows, byte for byte.

A noun is a command with `list`: one that is added without a row of `NOUNS` fails here.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from app_pages import open_page
from conftest import Ran
from full_store import fill
from records_world import make_run

from app.access.identity import owner
from app.cli.main import inf as commands
from app.kit import page as page_kit
from app.operations import (
    connections,
    datasets,
    evaluations,
    groups,
    jobs,
    models,
    people,
    releases,
    runs,
    trainings,
)
from app.operations.connections import ConnectionAdd
from app.operations.doors import tokens, webhooks
from app.operations.doors.tokens import TokenCreate
from app.operations.doors.webhooks import WebhookAdd
from app.operations.judging import judgments, reviews, studies
from db.people.accounts import add_account
from db.review.queue import QueueFilter
from db.store.store import Store

ADA = owner("ada")


def as_bytes(rows: Any) -> bytes:
    return json.dumps(rows, ensure_ascii=False).encode()


@dataclass(frozen=True)
class Noun:
    """How a noun is listed and shown by command and by operation.

    page: the page whose table has these rows; "" where the rows are no table, but a card or a
    choice, of which `drawn_otherwise` names the test or the reason. in_full: what a list abridges.
    """

    listed: Callable[[], Any]
    shown: Callable[[int], Any] | None
    words: tuple[object, ...] = ()
    page: str = ""
    drawn_otherwise: str = ""
    in_full: frozenset[str] = frozenset()


NOUNS: Mapping[str, Noun] = {
    "datasets": Noun(
        lambda: datasets.list_all(ADA), lambda _: datasets.show(ADA, "world"), page="datasets"
    ),
    "recipes": Noun(runs.list_recipes, None, drawn_otherwise="files of this version: a choice"),
    "runs": Noun(
        lambda: runs.list_all(ADA),
        lambda one: runs.show(ADA, one),
        drawn_otherwise="a choice on Curate, and its figures",
    ),
    "groups": Noun(
        lambda: groups.list_some(ADA, QueueFilter(run_id=1)),
        lambda one: groups.show(ADA, one),
        ("--run", 1),
        drawn_otherwise="the workbench's card: test_groups.py",
        in_full=frozenset({"review"}),
    ),
    "reviews": Noun(
        lambda: reviews.list_some(ADA, 1),
        lambda one: reviews.show(ADA, one),
        (1,),
        drawn_otherwise="the group's header: in the rows of groups and their details",
    ),
    "studies": Noun(
        lambda: studies.list_all(ADA),
        lambda one: studies.show(ADA, one),
        drawn_otherwise="a choice by name: below",
    ),
    "judgments": Noun(
        lambda: judgments.list_some(ADA, 1),
        lambda one: judgments.show(ADA, one),
        ("--study", 1),
        drawn_otherwise="the own answers of a judge: test_card.py",
    ),
    "releases": Noun(
        lambda: releases.list_all(ADA), lambda one: releases.show(ADA, one), page="releases"
    ),
    "trainings": Noun(
        lambda: trainings.list_some(ADA),
        lambda one: trainings.show(ADA, one),
        drawn_otherwise="the table of a sweep: test_trainings.py",
    ),
    "models": Noun(lambda: models.list_some(ADA), lambda one: models.show(ADA, one), page="train"),
    "evaluations": Noun(
        lambda: evaluations.list_some(ADA),
        lambda one: evaluations.show(ADA, one),
        drawn_otherwise="scores side by side: test_evaluations.py",
    ),
    "jobs": Noun(lambda: jobs.list_some(ADA), lambda one: jobs.show(ADA, one), page="jobs"),
    "people": Noun(
        lambda: people.list_all(ADA),
        lambda _: people.show(ADA, "ann"),
        drawn_otherwise="a card for each: test_people.py",
    ),
    "tokens": Noun(
        lambda: tokens.list_all(ADA, everybody=True),
        None,
        drawn_otherwise="a card for each: test_tokens.py",
    ),
    "webhooks": Noun(
        lambda: webhooks.list_all(ADA),
        lambda one: webhooks.show(ADA, one),
        drawn_otherwise="a card for each: test_webhooks.py",
    ),
    "connections": Noun(
        lambda: connections.list_all(ADA),
        lambda _: connections.show(ADA, "lab"),
        drawn_otherwise="a card for each: test_connections_page.py",
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
        session.commit()
    with monkeypatch.context() as patch:
        patch.setenv("INF_DATABASE_URL", sqlite_store.url)
        connections.add(ADA, ConnectionAdd(name="lab", url="https://a.example/v1"))
        tokens.create(ADA, TokenCreate(name="ci", rights=("curate",), person="ann"))
        webhooks.add(ADA, WebhookAdd(url="https://a.example/hook"))
    return sqlite_store


def test_every_noun_with_a_list_is_among_them() -> None:
    context = click.Context(commands)
    found = set()
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        if isinstance(command, click.Group) and "list" in command.commands:
            found.add(name)
    assert found - OTHERS == set(NOUNS)
    assert all(each.page or each.drawn_otherwise for each in NOUNS.values())


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


@pytest.mark.parametrize("noun", [name for name, each in NOUNS.items() if each.page])
def test_a_page_s_table_has_the_rows_of_the_operation(
    world: Store, monkeypatch: pytest.MonkeyPatch, noun: str
) -> None:
    """What the page adds for the eye comes behind the row's own keys."""
    drawn: list[list[dict[str, Any]]] = []
    true_table = page_kit.draw_table

    def table(rows: Any, *given: Any, **more: Any) -> Any:
        drawn.append(list(rows))
        return true_table(rows, *given, **more)

    monkeypatch.setattr(page_kit, "draw_table", table)
    with world.write() as session:
        session.connection().exec_driver_sql("DELETE FROM account")
        session.commit()
    monkeypatch.setenv("INF_DATABASE_URL", world.url)
    rows = NOUNS[noun].listed().as_json()["data"]
    open_page(NOUNS[noun].page, dataset="world")
    own = [
        [{name: row[name] for name in rows[0] if name in row} for row in one]
        for one in drawn
        if one and isinstance(one[0], dict)
    ]
    assert as_bytes(rows) in [as_bytes(one) for one in own]


def test_the_studies_to_choose_from_are_those_of_the_list(
    world: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world.write() as session:
        session.connection().exec_driver_sql("DELETE FROM account")
        session.commit()
    monkeypatch.setenv("INF_DATABASE_URL", world.url)
    rows = studies.list_all(ADA).data
    chooser = next(each for each in open_page("studies").selectbox if "study" in each.label.lower())
    assert [text for text in chooser.options if rows[0].name in text]
    assert len(chooser.options) == len(rows)


def test_a_job_s_result_is_what_the_command_prints(
    sqlite_store: Store,
    inf: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of every kind that a command waits for here without a model to train or to ask."""
    make_run(sqlite_store)
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"query_id": "q", "query": "who", "passage_id": "p", "passage": "me"}\n')
    for words in (
        ("releases", "create", "books", "--out", tmp_path / "one"),
        ("analyze", "near-duplicates", "--dataset", "books"),
        ("analyze", "diversity", "--dataset", "books"),
        ("store", "backup", tmp_path / "backup.zip"),
        ("reviews", "validate", 1),
    ):
        done = inf(*words, "--json")
        assert done.code == 0, done.err
        monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
        stored = jobs.show(ADA, done.json["job_id"]).result
        printed = {name: value for name, value in done.json.items() if name != "job_id"}
        assert stored is not None and printed.keys() == stored.keys(), words
        assert as_bytes(printed) == as_bytes({name: stored[name] for name in printed}), words
