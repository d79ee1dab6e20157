"""Answers are kept by server group; older ones, without a server, are found and reported."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from curation_runs import add_dataset, run_curation, work_on
from openai_server import Server
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.groups.workbench import _notes
from curation.judges.judge import ItemView
from curation.judges.openai_compatible import OpenAIJudge
from curation.recipe.recipe import load_recipe
from curation.run.reuse import Reusable, count_reusable, describe_reuse
from curation.run.starting import recipe_of, start_run
from db.errors import BadInput
from db.run.calls import add_calls, count_unknown_servers
from db.run.group_detail import get_group
from db.store.store import Store
from db.tables import Call, Group, Run, ServerGroup, utc_now

ASKED: dict[str, Any] = {
    "dataset": "small",
    "provider": "openai",
    "settings": ["model=small"],
    "concurrency": 6,
}
ALL = 24  # calls of three pairs
# the journal of a run of three pairs on the test server, written by the commit before this test
BEFORE = Path(__file__).with_name("calls_before_servers.jsonl")


@pytest.fixture
def servers(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Server]]:
    """Two servers of the same models; the first is the one of the environment."""
    add_dataset(sqlite_store, pairs=3)
    with Server() as one, Server() as other:
        monkeypatch.setenv("OPENAI_BASE_URL", one.url)
        yield [one, other]


def made(store: Store, **more: Any) -> int:
    """How many calls a run of all pairs makes; the rest is reused."""
    result = run_curation(store, **(ASKED | more))
    assert result["kept"] == 3 and sum(result["calls"].values()) >= ALL
    return int(result["calls"]["made"])


def reusable(session: Session, **more: Any) -> Reusable:
    run = start_run(session, **(ASKED | more))
    found = count_reusable(session, run, recipe_of(session, run))
    session.rollback()
    return found


def add_older_answers(store: Store) -> None:
    rows = [json.loads(line) for line in BEFORE.read_text(encoding="utf-8").splitlines()]
    with store.write() as session:
        add_calls(
            session,
            [
                row
                | {"server_group": None, "reasoning_tokens": 0, "cost_usd": 0.0, "attempts": 1}
                | {"latency_seconds": 0.0, "created_at": utc_now()}
                for row in rows
            ],
        )
        session.commit()


def test_answers_from_before_servers_were_recorded_are_found_and_reported(
    sqlite_store: Store, servers: list[Server]
) -> None:
    add_older_answers(sqlite_store)
    with sqlite_store.write() as session:
        assert reusable(session) == Reusable(3, ALL, ALL)
        assert reusable(session, seed=1).answers == 0 == reusable(session, fresh=True).answers
    result = run_curation(sqlite_store, **ASKED)
    assert result["calls"] == {"made": 0, "reused": ALL, "unknown_server": ALL}
    assert not servers[0].answered
    with sqlite_store.read() as session:
        assert count_unknown_servers(session, result["run_id"]) == ALL
        assert session.scalars(select(Call.server_group).distinct()).all() == [None]


def test_a_run_from_before_goes_on_with_the_keys_that_it_has(
    sqlite_store: Store, servers: list[Server]
) -> None:
    with sqlite_store.write() as session:
        run_id = start_run(session, **ASKED, seed=7).id
        session.execute(update(Run).values(server_group=None))
        session.commit()
    assert work_on(sqlite_store, run_id)["calls"]["made"] == ALL
    older = {json.loads(line)["key"] for line in BEFORE.read_text().splitlines()}
    with sqlite_store.read() as session:
        assert session.get_one(Run, run_id).server_group is None
        keys = set(session.scalars(select(Call.key).where(Call.task != "validation")))
    assert len(keys) == 15 and keys <= older, "the judge's orders alone follow from the seed"


def test_another_server_of_the_same_model_name_is_asked(
    sqlite_store: Store, servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made(sqlite_store) == ALL and made(sqlite_store) == 0
    monkeypatch.setenv("OPENAI_BASE_URL", servers[1].url)
    assert made(sqlite_store) == ALL == servers[1].answered.total()
    with sqlite_store.read() as session:
        assert count_unknown_servers(session, 3) == 0
        groups = session.scalars(select(Run.server_group).order_by(Run.id)).all()
    assert groups == [servers[0].url, servers[0].url, servers[1].url]


def test_an_endpoint_joins_a_group_without_changing_the_keys(
    sqlite_store: Store, servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made(sqlite_store) == ALL
    monkeypatch.setenv("OPENAI_BASE_URL", ",".join(server.url for server in reversed(servers)))
    assert made(sqlite_store) == 0
    monkeypatch.setenv("OPENAI_BASE_URL", servers[1].url)
    assert made(sqlite_store) == 0, "it belongs to the group from then on"
    with sqlite_store.read() as session:
        (group,) = session.scalars(select(ServerGroup))
        assert group.name == servers[0].url
        assert group.endpoints == [server.url for server in servers]


@pytest.mark.long
def test_a_named_group_is_the_same_whatever_its_endpoints(
    sqlite_store: Store, servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {"settings": ["model=small", "server_group=lab"]}
    assert made(sqlite_store) == ALL and made(sqlite_store, **named) == ALL
    monkeypatch.setenv("OPENAI_BASE_URL", servers[1].url)
    assert made(sqlite_store, **named) == 0
    assert made(sqlite_store) == ALL, "no run without the name takes a named group's answers"
    with sqlite_store.read() as session:
        ids = session.scalars(select(Group.id).order_by(Group.id)).all()
        shown = get_group(session, ids[3])  # of the run that uses the name
        both = ", ".join(server.url for server in servers)
        assert {each.answered_by for each in shown.calls} == {f"small at {both}"}
        assert _notes(shown, None)[0] == f"Written and judged by the model small at {both}"
    with pytest.raises(BadInput, match="is not a name"):
        load_recipe("msmarco", ["server_group=http://a/v1"])


@pytest.mark.parametrize(
    ("provider", "where"),
    [
        ("offline", "(offline, on this machine: no server)"),
        ("recorded", "(replayed from a recording: no server)"),
        ("openai", "(openai: its server was not recorded)"),
    ],
)
def test_where_no_server_is_known_a_group_has_what_there_was_instead(
    sqlite_store: Store, servers: list[Server], provider: str, where: str
) -> None:
    assert made(sqlite_store) == ALL
    with sqlite_store.write() as session:
        for call in session.scalars(select(Call)):
            call.provider, call.server_group = provider, None
        session.flush()
        shown = get_group(session, session.scalars(select(Group.id)).first() or 0)
        assert _notes(shown, None)[0] == f"Written and judged by the model small {where}"
        assert all(f"small {where}" in call.title for call in shown.calls)
        for call in session.scalars(select(Call).where(Call.task == "validation")):
            call.model = "other"
        session.flush()
        shown = get_group(session, shown.id)
        noted = f"Written by the model small, judged by the model other {where}"
        assert _notes(shown, None)[0] == noted


@pytest.mark.long
def test_a_fresh_run_requests_everything_and_another_seed_generates_anew(
    sqlite_store: Store, servers: list[Server]
) -> None:
    assert made(sqlite_store) == ALL
    assert made(sqlite_store, fresh=True) == ALL and made(sqlite_store, fresh=True) == ALL
    assert made(sqlite_store, seed=5) == ALL and made(sqlite_store, seed=5) == 0
    assert made(sqlite_store) == 0
    with sqlite_store.write() as session:
        assert reusable(session, seed=5) == Reusable(3, ALL, 0)


def test_the_count_before_the_start_ends_where_an_answer_is_missing(
    sqlite_store: Store, servers: list[Server]
) -> None:
    run_curation(sqlite_store, **ASKED, limit=2)
    with sqlite_store.write() as session:
        assert reusable(session) == Reusable(3, 16, 0)
        assert reusable(session, settings=["model=judge"]).answers == 0
        other_judge = reusable(session, settings=["model=small", "validation.model=judge"])
        assert other_judge == Reusable(3, 10, 0)
        offline = reusable(session, provider="offline", settings=[])
    assert offline == Reusable(0, 0, 0) and describe_reuse(offline) == ""
    assert describe_reuse(Reusable(5000, 1234, 3)) == (
        "At least 1,234 stored answers are reused; the server of 3 of them is unknown (older "
        "answers). Use `fresh=` for new ones."
    )


@pytest.mark.long
def test_the_command_shows_what_is_reused_before_it_starts(
    sqlite_store: Store, servers: list[Server], inf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(sqlite_store)
    monkeypatch.setattr("app.cli.kit.report.work", lambda *_, **__: {"job_id": 1})
    asked = ("curate", "--dataset", "small", "--provider", "openai", "--set", "model=small")
    shown = inf(*asked, "--detach")
    assert "24 stored answers are reused. Use --fresh" in shown.err
    assert "reused" not in inf(*asked, "--detach", "--fresh").err


def test_a_judge_of_study_items_is_not_answered_from_another_server(
    sqlite_store: Store, servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    view = ItemView("I only want to read about kalo", "who", ("about kalo", "about nothing"))

    def judge() -> None:
        OpenAIJudge(sqlite_store, "small").choose([view])

    judge()
    judge()
    assert servers[0].answered.total() == 1
    monkeypatch.setenv("OPENAI_BASE_URL", servers[1].url)
    judge()
    assert servers[1].answered.total() == 1
