"""Killed at any moment: nothing lost, hardly anything asked twice, and the end is the same.

The workers are processes of their own, the server is one over a socket, the kill is SIGKILL.
"""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from curation_runs import (
    add_dataset,
    run_curation,
    slots_of,
    start_worker,
    stored_calls,
    texts_of,
    wait_for,
)
from openai_server import Server
from sqlalchemy import func, select

from curation.providers.openai_server import OpenAIProvider
from curation.run.starting import start_run
from db.modules import run_module
from db.run.runs import funnel, get_run
from db.store.store import Store
from db.tables import Call, Job

PAIRS = 60
CALLS = PAIRS * 8
PER_PAIR = {"msmarco": 8, "promptriever": 10}  # calls
IN_FLIGHT = 16
ASKED: dict[str, Any] = {
    "dataset": "small",
    "provider": "openai",
    "settings": ["model=small"],
    "concurrency": IN_FLIGHT,
}
DROPS = {"wrong_candidate": 0.06, "no_agreement": 0.06}  # of judges' answers: every call is made
ROUNDS = int(os.environ.get("INF_TEST_KILL_ROUNDS", "1"))  # of twenty kills, on each engine
CALLS_AT_ONCE = 3  # of one group: its three scenarios are judged side by side


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(latency_seconds=0.02, faults=DROPS) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def new_run(store: Store, recipe: str | None = None) -> int:
    add_dataset(store, pairs=PAIRS, pool=10)
    with store.write() as session:
        run_id = start_run(session, **ASKED, recipe=recipe).id
        session.commit()
    return run_id


@pytest.mark.long
def test_twenty_kills_at_seeded_moments_change_nothing_in_the_store(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = new_run(sqlite_store)
    kills, moments = 20, random.Random(5)
    for moment in sorted(moments.sample(range(10, CALLS - 40), kills)):
        worker = start_worker(sqlite_store, run_id, base_url=server.url)
        # at its moment, or a few calls into this life where that has passed
        goal = max(moment, sum(server.answered.values()) + 3)
        server.hold_after = goal + IN_FLIGHT  # however late the kill comes, it is mid-work
        wait_for(lambda goal=goal: sum(server.answered.values()) >= goal)
        worker.kill()
        worker.join()
        assert worker.exitcode == -9, "it ended before it was killed"
        with sqlite_store.read() as session:
            assert funnel(session, run_id).finished < PAIRS, "the kill did not land mid-work"
            assert get_run(session, run_id).status == "running"
    repeated = sum(server.answered.values()) - len(server.answered)
    assert 0 < repeated <= kills * IN_FLIGHT, "only what was in flight is asked again"
    server.hold_after = None
    result = run_curation(sqlite_store, run_id)
    assert result["status"] == "done"
    assert result["kept"] + sum(result["dropped"].values()) == PAIRS
    assert set(result["dropped"]) == {"unknown_candidate", "judge_none"}
    assert len(server.answered) == CALLS

    with sqlite_store.write() as session:  # the same run in peace, asked anew
        session.execute(Call.__table__.update().values(key=Call.key + "-old"))
        session.commit()
    with Server(faults=DROPS) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        calm = run_curation(sqlite_store, **ASKED)
    assert calm["calls"] == {"made": CALLS, "reused": 0}
    assert texts_of(sqlite_store, run_id) == texts_of(sqlite_store, calm["run_id"])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("recipe", PER_PAIR)
def test_twenty_kills_among_two_workers_change_neither_texts_nor_spending(
    store: Store,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    own_home: Path,
    recipe: str,
    seed: int,
) -> None:
    own_home.mkdir(exist_ok=True)
    (own_home / "prices.toml").write_text('["small"]\ninput = 1.0\noutput = 10.0\n')
    run_id, chance, kills = new_run(store, recipe), random.Random(seed), 20

    def start() -> Any:
        return start_worker(store, run_id, base_url=server.url, concurrency=4)

    workers = [start(), start()]
    for _ in range(kills):
        goal = server.answered.total() + chance.randrange(3, 14)
        server.hold_after = goal + 8  # so that it is mid-work however late the kill comes
        wait_for(lambda goal=goal: server.answered.total() >= goal)
        victim = chance.randrange(2)
        workers[victim].kill()
        workers[victim].join()
        assert workers[victim].exitcode == -9, "it ended before it was killed"
        workers[victim] = start()
    server.hold_after = None
    for worker in workers:
        worker.join(180)
    with store.read() as session:
        run, ended = get_run(session, run_id), funnel(session, run_id)
        paid = session.scalar(select(func.sum(Call.cost_usd)))
    assert run.status == "done" and ended.finished == PAIRS
    assert run.spent_usd == pytest.approx(paid) and paid > 0
    repeated = server.answered.total() - len(server.answered)
    assert repeated <= kills * 4, "only what was in flight is asked again"

    with store.write() as session:  # the same run in peace, asked anew
        session.execute(Call.__table__.update().values(key=Call.key + "-old"))
        session.commit()
    with Server(faults=DROPS) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        calm = run_curation(store, **ASKED, recipe=recipe)
    # two pairs may have one query, and so a negative and its check
    assert sum(calm["calls"].values()) == PAIRS * PER_PAIR[recipe]
    assert calm["calls"]["made"] == len(other.answered) > 0.98 * PAIRS * PER_PAIR[recipe]
    assert calm["spent_usd"] == pytest.approx(run.spent_usd)
    assert texts_of(store, run_id) == texts_of(store, calm["run_id"])
    one, other = (list(slots_of(store, each).values()) for each in (run_id, calm["run_id"]))
    assert one == other


@pytest.mark.long
@pytest.mark.parametrize("recipe", PER_PAIR)
def test_four_workers_share_a_run_and_one_may_be_killed(
    store: Store, server: Server, recipe: str
) -> None:
    run_id, calls = new_run(store, recipe), PAIRS * PER_PAIR[recipe]
    workers = [start_worker(store, run_id, base_url=server.url, concurrency=4) for _ in range(4)]
    server.hold_after = calls // 2
    wait_for(lambda: sum(server.answered.values()) > calls // 4)
    workers[0].kill()
    workers[0].join()
    server.hold_after = None
    for worker in workers:
        worker.join(180)
    assert [worker.exitcode for worker in workers] == [-9, 0, 0, 0]
    with store.read() as session:
        counted = funnel(session, run_id)
        assert get_run(session, run_id).status == "done"
    assert (counted.finished, counted.pairs, counted.in_work) == (PAIRS, PAIRS, 0)
    asked = stored_calls(store)
    # two pairs may have one query, and so a negative and its check
    assert len(server.answered) == asked > 0.98 * calls
    unsaved = (
        4 * OpenAIProvider.groups_per_call * CALLS_AT_ONCE
    )  # of one worker, however slow the disk is
    assert sum(server.answered.values()) - asked <= unsaved
    assert len(texts_of(store, run_id)) == PAIRS


@pytest.mark.long
@pytest.mark.parametrize("recipe", PER_PAIR)
def test_a_command_that_is_killed_goes_on_with_resume(
    sqlite_store: Store, server: Server, inf_process: Callable[..., Any], recipe: str
) -> None:
    calls = 20 * PER_PAIR[recipe]
    add_dataset(sqlite_store, pairs=20, pool=10)
    server.faults.clear()
    server.hold_after = 100
    words = ["--dataset", "small", "--provider", "openai", "--set", "model=small"]
    words += ["--recipe", recipe]
    launched = subprocess.Popen(
        [sys.executable, *run_module("app.cli.main"), "curate", *words, "--concurrency", "4"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: stored_calls(sqlite_store) > 40)
    launched.kill()  # the worker ends with the command that waits for it
    launched.wait()
    with sqlite_store.read() as session:
        job = session.scalars(select(Job)).one()
    wait_for(lambda: not is_alive(job.pid))
    server.hold_after = None
    done = inf_process("curate", "--resume", 1, "--json")
    assert done.code == 0, done.err
    assert done.json["kept"] == 20 and done.json["dropped"] == {}
    made = done.json["calls"]["made"]
    stored = stored_calls(sqlite_store)
    assert 0.98 * calls < stored <= calls and made < calls - 40
    assert sum(server.answered.values()) - stored <= 4 * CALLS_AT_ONCE
    again = inf_process("curate", "--resume", 1, "--json")
    assert again.code == 1 and "nothing to resume" in again.json["error"]
    assert inf_process("curate", "--resume", 1, "--limit", 3).code == 2


def is_alive(pid: int | None) -> bool:
    return pid is not None and psutil.pid_exists(pid)
