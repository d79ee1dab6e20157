"""Agents: their tools over the routes, what a token and its budget leave of them, a whole path."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from api_world import COMMAND, ApiWorld, make_api_world, new_token
from curation_runs import pairs_file
from httpx import Response
from live_server import serving
from openai_server import Server
from sqlalchemy import func, select

from app.access.identity import TokenHolder
from app.api import agents
from app.api.limits import AT_A_TIME
from app.api.routes import by_name, routes
from app.jobs import supervisors
from app.operations import connections, datasets, groups, jobs, people, runs
from app.operations.acting import queued
from app.operations.doors import tokens
from app.operations.doors.tokens import AgentStart, session_of
from app.operations.judging import studies
from curation.judging.request import JudgeStart, StudyChange
from curation.mining.request import NegativesMine
from curation.run.starting import RunResume, RunStart, RunWork
from db.errors import Refused
from db.home import home
from db.modules import run_module
from db.people.budgets import committed_usd
from db.people.sign_ins import start_session
from db.store.scope import unscoped
from db.store.settings import owners_process
from db.store.store import Store
from db.tables import (
    Account,
    ApiToken,
    ApiTokenJob,
    ApiTokenRun,
    Event,
    Group,
    Job,
    Judge,
    Review,
    ReviewProposal,
    Run,
    utc_now,
)

MCP = "/mcp"
VERSION = "2025-06-18"
PAID: dict[str, Any] = {"provider": "openai", "recipe": "msmarco", "settings": ("model=small",)}


def price_small() -> None:
    """Give the model of these runs a price: a budget needs one."""
    home().mkdir(parents=True, exist_ok=True)
    (home() / "prices.toml").write_text('["small"]\ninput = 1.0\noutput = 10.0\n')


@pytest.fixture
def world(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiWorld]:
    price_small()
    made = make_api_world(sqlite_store)
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)  # no job is to run
    owners_process(False)
    yield made
    owners_process(True)


def post(world: ApiWorld, token: str | None, method: str, **params: Any) -> Response:
    """A message of the protocol at `/mcp`."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": VERSION}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return world.client.post(MCP, json=body, headers=headers)


def call(world: ApiWorld, token: str, tool: str, **arguments: Any) -> tuple[Any, bool]:
    """What a tool answers a holder of a token, and whether that is an error."""
    answer = post(world, token, "tools/call", name=tool, arguments=arguments)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    found = json.loads(result["content"][0]["text"])
    assert result["structuredContent"] == found
    return found, result["isError"]


def holder(person: str = "cora", **given: Any) -> TokenHolder:
    return tokens.presented(new_token(person, **given).token)


def test_no_tool_deletes_and_each_of_a_route_takes_its_request(world: ApiWorld) -> None:
    answer = post(world, world.tokens["cora"], "tools/list")
    listed = {one["name"]: one for one in answer.json()["result"]["tools"]}
    assert set(listed) == set(agents.tools()) and 10 <= len(listed) <= 14
    deleting = {one.request for one in routes() if one.method == "DELETE"} - {
        one.request for one in routes() if one.method != "DELETE"
    }
    for name, tool in agents.tools().items():
        assert tool.request not in deleting
        assert listed[name]["inputSchema"] == tool.request.model_json_schema()
        assert listed[name]["annotations"]["destructiveHint"] is False
    start = listed["start_run"]["inputSchema"]
    assert start == by_name()["runs create"].request.model_json_schema()


def test_a_tool_answers_what_its_route_answers(world: ApiWorld) -> None:
    found, failed = call(world, world.tokens["mina"], "find_datasets")
    assert not failed and [row["name"] for row in found["data"]] == ["mine"]
    assert found == world.ask("mina", "GET", "/datasets").json()
    shown, failed = call(world, world.tokens["mina"], "explain_drops", id=world.mine.run)
    assert not failed
    assert shown == world.ask("mina", "GET", f"/runs/{world.mine.run}/drops").json()


def test_cookies_and_other_methods_admit_nobody(world: ApiWorld) -> None:
    assert post(world, None, "tools/list").status_code == 401
    with unscoped(), world.store.write() as session:
        account = session.scalars(select(Account).where(Account.name == "boss")).one()
        cookie = start_session(session, account)
        session.commit()
    world.client.cookies.set("inf_session", cookie)
    refused = post(world, None, "tools/list")
    assert (refused.status_code, refused.json()["code"]) == (401, "token_missing")
    assert post(world, "inf_made-up", "tools/list").json()["code"] == "token_unknown"
    bearer = {"Authorization": f"Bearer {world.tokens['boss']}"}
    assert world.client.get(MCP, headers=bearer).status_code == 405


def test_limits_of_a_token_are_those_of_the_routes(world: ApiWorld) -> None:
    """Requests at the routes are counted, and places at a time are shared."""
    assert world.ask("cora", "GET", "/me").status_code == 200
    from app.server import web

    limits = web._loaded_api().limits
    token_id = tokens.presented(world.tokens["cora"]).token_id
    with ExitStack() as held:
        for _ in range(AT_A_TIME):
            held.enter_context(limits.one_of("requests at a time", token_id, AT_A_TIME))
        refused = post(world, world.tokens["cora"], "tools/list")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
        assert post(world, world.tokens["mina"], "tools/list").status_code == 200
    assert post(world, world.tokens["cora"], "tools/list").status_code == 200
    limits._left[token_id] = (0.0, limits._clock())
    assert post(world, world.tokens["cora"], "tools/list").status_code == 429


def test_an_agent_reaches_nothing_of_foreign_datasets(world: ApiWorld) -> None:
    token, other = world.tokens["mina"], world.other
    for tool, arguments in (
        ("follow_run", {"id": other.run, "seconds": 0}),
        ("explain_drops", {"id": other.run}),
        ("sample_groups", {"run_id": other.run}),
        ("show_group", {"id": other.group}),
        ("study_agreement", {"id": other.study}),
        ("create_study", {"dataset": "other", "items": 1, "overlap": 1}),
        ("start_run", {"dataset": "other", "provider": "offline"}),
        ("propose_review", {"group_id": other.group, "action": "reject", "reason": "no"}),
        ("compare_models", {"base": other.evaluation, "others": [world.mine.evaluation]}),
        ("import_dataset", {"name": "other", "lines": json.dumps(LINE)}),
    ):
        found, failed = call(world, token, tool, **arguments)
        assert failed and "other" not in found["detail"].replace("'other'", ""), (tool, found)
        assert set(found) == {"code", "detail", "remedy"}
    with unscoped(), world.store.read() as session:
        assert session.scalar(select(func.count(ReviewProposal.id))) == 0


LINE = {"query_id": "1", "query": "what is tea", "passage_id": "a", "passage": "Tea is a drink."}


def test_an_annotators_token_has_no_tool_of_a_curator(world: ApiWorld) -> None:
    found, failed = call(world, world.tokens["ann"], "find_datasets")
    assert failed and found["code"] == "no_right"
    found, failed = call(world, world.tokens["ann"], "import_dataset", name="x", lines="{}")
    assert failed and found["code"] == "no_right"


def test_a_proposal_is_of_a_model_and_no_review(world: ApiWorld) -> None:
    studies.change(COMMAND, StudyChange(study_id=world.mine.study, status="closed"))
    agent, group = new_token("mina", name="scout").token, world.mine.group
    wanted = {"group_id": group, "action": "approve", "reason": "it holds"}
    made, failed = call(world, agent, "propose_review", **wanted)
    assert not failed and made["judge"] == "agent:scout"
    call(world, agent, "propose_review", **wanted | {"action": "reject", "reason": "a leak"})
    shown, _ = call(world, agent, "show_group", id=group)
    assert [(one["action"], one["reason"]) for one in shown["proposals"]] == [("reject", "a leak")]
    assert shown["review"] is None
    with unscoped(), world.store.read() as session:
        judge = session.scalars(select(Judge).where(Judge.name == "agent:scout")).one()
        assert (judge.kind, judge.account_id) == ("model", None)
        assert session.scalar(select(func.count(ReviewProposal.id))) == 2
        proposed = select(func.count(Event.id)).where(Event.name == "review.propose")
        assert session.scalar(proposed) == 2
        assert session.scalar(select(func.count(Review.id)).where(Review.group_id == group)) == 0
    empty, failed = call(world, agent, "propose_review", **wanted | {"reason": ""})
    assert failed and empty["code"] == "request_invalid"


def test_drops_are_counted_with_examples_that_are_not_hidden(world: ApiWorld) -> None:
    studies.change(COMMAND, StudyChange(study_id=world.mine.study, status="closed"))
    found = groups.drops(holder("mina"), world.mine.run)
    shown = runs.show(holder("mina"), world.mine.run).funnel.dropped
    assert {row.reason: row.groups for row in found.data} == shown
    with unscoped(), world.store.write() as session:
        group = session.get_one(Group, world.mine.group)
        group.verdict, group.drop_reason, group.drop_detail = "dropped", "too_long", "9,000 words"
        group.state = "done"
        session.commit()
    found = groups.drops(holder("mina"), world.mine.run)
    assert sorted(found.data, key=lambda one: -one.groups) == list(found.data)
    (row,) = [one for one in found.data if one.reason == "too_long"]
    assert row.groups == 1
    assert [(one.id, one.detail) for one in row.examples] == [(group.id, "9,000 words")]


# Budgets: what costs money, by a token.


def start(actor: TokenHolder, **given: Any) -> int:
    wanted = RunStart.read({"dataset": "mine", "limit": 1, **PAID, **given})
    runs.create(actor, wanted, queued)
    with unscoped(), tokens.open_store().read() as session:
        return session.scalars(select(func.max(Run.id))).one() or 0


def refusal(work: Callable[[], object]) -> str:
    with pytest.raises(Refused) as refused:
        work()
    return refused.value.code


def test_a_token_spends_within_its_budget_and_not_a_cent_more(world: ApiWorld) -> None:
    agent = holder(budget_usd=1.00)
    assert refusal(lambda: start(agent)) == "run_without_budget"
    assert refusal(lambda: start(agent, budget_usd=1.01)) == "token_budget_exceeded"
    with unscoped(), world.store.read() as session:
        assert session.scalar(select(func.count(ApiTokenRun.run_id))) == 0
    first = start(agent, budget_usd=0.40)
    assert refusal(lambda: start(agent, budget_usd=0.61)) == "token_budget_exceeded"
    with unscoped(), world.store.write() as session:  # it is over and has spent less
        run = session.get_one(Run, first)
        run.status, run.other_usd = "done", 0.25
        session.commit()
    assert refusal(lambda: start(agent, budget_usd=0.76)) == "token_budget_exceeded"
    second = start(agent, budget_usd=0.75)
    resume = RunResume(run_id=second, budget_usd=0.76)
    assert refusal(lambda: runs.resume(agent, resume, queued)) == "token_budget_exceeded"
    runs.resume(agent, RunResume(run_id=second, budget_usd=0.70), queued)
    with unscoped(), world.store.read() as session:
        assert committed_usd(session, agent.token_id) == pytest.approx(0.95)
    (row,) = [one for one in tokens.list_all(agent).data if one.id == agent.token_id]
    assert (row.budget_usd, row.left_usd) == (1.00, pytest.approx(0.05))


def test_a_token_without_a_budget_starts_nothing_that_costs_money(world: ApiWorld) -> None:
    agent = holder()
    assert refusal(lambda: start(agent, budget_usd=0.01)) == "token_without_budget"
    tried = lambda: connections.test(agent, "environment")  # noqa: E731
    assert refusal(tried) == "token_without_budget"
    assert refusal(lambda: judged(agent, budget_usd=0.01)) == "token_without_budget"
    studies.judge(agent, JudgeStart(study_id=world.mine.study, judge="simulated:1"), queued)
    answer = world.ask(
        "cora", "POST", "/runs", json={"dataset": "mine", **PAID, "budget_usd": 1, "limit": 1}
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "token_without_budget")
    offline = RunStart(dataset="mine", provider="offline", limit=1)
    assert runs.create(agent, offline, queued) > 0


def judged(actor: TokenHolder, *, study: int = 1, **given: Any) -> int:
    """The job of a model judge that costs money."""
    return studies.judge(actor, JudgeStart(study_id=study, judge="openai:small", **given), queued)


def test_a_judge_that_a_token_starts_is_counted_on_its_budget(world: ApiWorld) -> None:
    study = world.mine.study
    agent, other = holder(budget_usd=1.00), holder(budget_usd=50)
    assert refusal(lambda: judged(agent, study=study)) == "judge_without_budget"
    assert refusal(lambda: judged(agent, study=study, budget_usd=1.01)) == "token_budget_exceeded"
    with unscoped(), world.store.read() as session:
        assert session.scalar(select(func.count(ApiTokenJob.job_id))) == 0
        assert session.scalar(select(func.count(Job.id)).where(Job.kind == "judge")) == 0
    first = judged(agent, study=study, budget_usd=0.40)
    assert refusal(lambda: start(agent, budget_usd=0.61)) == "token_budget_exceeded"
    with unscoped(), world.store.write() as session:  # killed: it may have spent as much
        job = session.get_one(Job, first)
        job.status, job.shown, job.finished_at = "lost", {"spent_usd": 0.25}, utc_now()
        session.commit()
    start(agent, budget_usd=0.65)
    assert refusal(lambda: judged(agent, study=study, budget_usd=0.11)) == "token_budget_exceeded"
    assert refusal(lambda: jobs.resume(agent, first)) == "token_budget_exceeded"  # it takes 0.40
    assert refusal(lambda: jobs.resume(other, first)) == "job_of_another"
    with unscoped(), world.store.read() as session:
        assert session.get_one(Job, first).status == "lost"
        assert committed_usd(session, agent.token_id) == pytest.approx(0.90)
    (row,) = [one for one in tokens.list_all(agent).data if one.id == agent.token_id]
    assert row.left_usd == pytest.approx(0.10)
    with unscoped(), world.store.write() as session:
        session.get_one(ApiToken, agent.token_id).budget_usd = 2.0
        session.commit()
    assert jobs.resume(agent, first).status == "queued"
    with unscoped(), world.store.read() as session:
        assert committed_usd(session, agent.token_id) == pytest.approx(1.05)
    again = world.ask(
        "cora", "POST", f"/studies/{study}:judge", json={"judge": "openai:small", "budget_usd": 1}
    )
    assert (again.status_code, again.json()["code"]) == (403, "token_without_budget")


def test_mining_that_costs_money_is_refused_to_a_token_for_what_it_is(world: ApiWorld) -> None:
    agent = holder(budget_usd=1.00)
    paid = NegativesMine(name="mine", judge="openai:small")
    assert refusal(lambda: datasets.mine(agent, paid, queued)) == "mining_without_budget"
    assert datasets.mine(agent, NegativesMine(name="mine"), queued)


def test_two_judges_that_start_at_once_do_not_both_get_the_rest(world: ApiWorld) -> None:
    agent = holder(budget_usd=1.00)

    def begin(_: int) -> str:
        try:
            judged(agent, study=world.mine.study, budget_usd=0.40)
        except Refused as refused:
            return refused.code
        return ""

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(begin, range(4)))
    assert sorted(found) == ["", "", *["token_budget_exceeded"] * 2]


def test_a_token_goes_on_with_no_run_of_another(world: ApiWorld) -> None:
    """Neither by a resumed run nor by a worker or job of it: it would spend another's budget."""
    one, other = holder(budget_usd=1), holder(budget_usd=50)
    run_id = start(one, budget_usd=0.5)
    wanted = RunResume(run_id=run_id, budget_usd=9)
    assert refusal(lambda: runs.resume(other, wanted, queued)) == "run_of_another"
    work = RunWork(run_id=run_id, joins=True)
    assert refusal(lambda: runs.work_on(other, work, queued)) == "run_of_another"
    assert runs.work_on(one, work, queued) > 0
    with unscoped(), world.store.write() as session:
        run = session.get_one(Run, run_id)
        run.status = "paused"
        session.commit()
    runs.resume(COMMAND, wanted, queued)  # its owner may, and the token's rest is then less
    with unscoped(), world.store.read() as session:
        assert committed_usd(session, one.token_id) == pytest.approx(9)
    assert refusal(lambda: start(one, budget_usd=0.01)) == "token_budget_exceeded"


def test_the_token_of_a_session_ends_with_it(world: ApiWorld) -> None:
    start_of = AgentStart(person="cora", rights=("curate",), datasets=("mine",), budget_usd=2)
    with session_of(COMMAND, start_of) as agent:
        assert (agent.datasets, agent.budget_usd) == (frozenset({world.mine.dataset}), 2)
        text, failed = agents.called(agent, "find_datasets", {})
        assert not failed and [row["name"] for row in json.loads(text)["data"]] == ["mine"]
    text, failed = agents.called(agent, "find_datasets", {})
    assert failed and json.loads(text)["code"] == "token_revoked"


Ask = Callable[..., Awaitable[tuple[Any, bool]]]


async def over(ask: Ask, run_id: int) -> dict[str, Any]:
    """The run once it is over or paused."""
    run: dict[str, Any] = {"status": ""}
    for _ in range(20):
        if run["status"] in agents.AT_REST:
            break
        run, failed = await ask("follow_run", id=run_id, seconds=10)
        assert not failed, run
    return run


async def journey(ask: Ask, lines: str) -> dict[str, Any]:
    """From a file to a kept group within 2 USD, and not a cent more."""
    report, failed = await ask("import_dataset", name="logs", lines=lines)
    assert not failed, report
    wanted = {"dataset": "logs", **PAID, "limit": 4}
    estimate, failed = await ask("estimate_run", **wanted)
    assert not failed and estimate["pairs"] == 4 and estimate["usd"] > 0
    assert (await ask("start_run", **wanted))[0]["code"] == "run_without_budget"
    refused, failed = await ask("start_run", **wanted, budget_usd=2.01)
    assert failed and refused["code"] == "token_budget_exceeded"
    made, failed = await ask("start_run", **wanted, budget_usd=2.0)
    assert not failed, made
    run = await over(ask, made["run_id"])
    assert run["status"] == "done" and 0 < run["spent_usd"] < 2.0, run
    listed, _ = await ask("sample_groups", run_id=run["id"], verdict="kept", limit=1)
    (group,) = listed["data"]
    shown, _ = await ask("show_group", id=group["id"])
    assert shown["verdict"] == "kept" and shown["triplets"]
    proposal = {"group_id": group["id"], "action": "approve", "reason": "it follows"}
    assert not (await ask("propose_review", **proposal))[1]
    left = 2.0 - run["spent_usd"]
    more = {**wanted, "limit": 12}
    refused, failed = await ask("start_run", **more, budget_usd=left + 0.01)
    assert failed and refused["code"] == "token_budget_exceeded"
    again, failed = await ask("start_run", **more, budget_usd=left)
    assert not failed, again
    assert (await over(ask, again["run_id"]))["status"] == "done"
    return {"group": group["id"], "run": made["run_id"]}


@asynccontextmanager
async def asking(place: Any) -> AsyncIterator[Ask]:
    """The tools by the SDK's own client."""
    from mcp import Client

    async with Client(place, read_timeout_seconds=120) as client:
        assert len((await client.list_tools()).tools) == len(agents.tools())

        async def ask(tool: str, **arguments: Any) -> tuple[Any, bool]:
            result = await client.call_tool(tool, arguments)
            return json.loads(result.content[0].text), bool(result.is_error)

        yield ask


@asynccontextmanager
async def asking_at(url: str, token: str) -> AsyncIterator[Ask]:
    """As `asking`, over HTTP with a token."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as client,
        asking(streamable_http_client(f"{url}{MCP}", http_client=client)) as ask,
    ):
        yield ask


@pytest.fixture
def priced(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Store, str]]:
    """A store whose runs ask a server with prices, and lines to import."""
    price_small()
    with Server(usage=(300, 40)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
        monkeypatch.setenv("INF_HOME", str(home()))
        yield sqlite_store, pairs_file(tmp_path, 12).read_text(encoding="utf-8")


def require_kept(store: Store, made: dict[str, Any], person: str) -> None:
    with store.read() as session:
        assert session.get_one(Group, made["group"]).verdict == "kept"
        assert session.get_one(Run, made["run"]).created_by == person


@pytest.mark.long
def test_an_agent_goes_from_a_file_to_a_kept_group_within_its_budget(
    priced: tuple[Store, str],
) -> None:
    """`inf mcp` as a process, a scripted client of the SDK, and a server with prices."""
    from mcp import StdioServerParameters, stdio_client

    store, lines = priced
    command = StdioServerParameters(
        command=sys.executable,
        args=[*run_module("app.cli.main"), "mcp", "--budget-usd", "2"],
        env=dict(os.environ),
    )

    async def served() -> dict[str, Any]:
        async with asking(stdio_client(command)) as ask:
            return await journey(ask, lines)

    require_kept(store, asyncio.run(served()), "local admin")


@pytest.mark.long
def test_an_agent_of_a_server_does_so_over_http_by_its_token(
    priced: tuple[Store, str], tmp_path: Path
) -> None:
    """`/mcp` of a real server by the SDK's HTTP client; other tokens reach what they are for."""
    store, lines = priced
    people.add(COMMAND, people.PersonAdd(name="cora", role="curator"), "correct horse battery")
    agent = new_token("cora", name="agent", budget_usd=2.0).token

    async def served(url: str) -> dict[str, Any]:
        async with asking_at(url, agent) as ask:
            made = await journey(ask, lines)
            await ask("import_dataset", name="others", lines=lines)
        limited = new_token("cora", name="limited", datasets=["others"]).token
        async with asking_at(url, limited) as ask:
            found, _ = await ask("find_datasets")
            assert [row["name"] for row in found["data"]] == ["others"]
            for tool, wanted, code in (
                ("follow_run", {"id": made["run"], "seconds": 0}, "run_unknown"),
                ("show_group", {"id": made["group"]}, "group_unknown"),
                ("estimate_run", {"dataset": "logs", "provider": "offline"}, "dataset_unknown"),
            ):
                refused, failed = await ask(tool, **wanted)
                assert failed and refused["code"] == code, refused
            costs = {"dataset": "others", **PAID, "limit": 1, "budget_usd": 0.01}
            refused, failed = await ask("start_run", **costs)
            assert failed and refused["code"] == "token_without_budget"
        for wrong in ("", f"{agent}x"):
            with pytest.raises(Exception) as caught:  # of the client, in groups of its own
                async with asking_at(url, wrong):
                    pass
            assert "MCPError: Server returned an error" in "".join(format_exception(caught.value))
        return made

    with serving(tmp_path / "server") as server:
        made = asyncio.run(served(server.url))
        assert agent not in server.log.read_text()
    require_kept(store, made, "cora")
