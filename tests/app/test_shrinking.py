"""A run gets and loses workers while it works: what they hold is completed or given back, nothing
twice."""

import threading
from pathlib import Path

import pytest
from api_world import COMMAND, PASSWORD, new_token, server_client
from curation_runs import add_dataset
from openai_server import Server
from sqlalchemy import select
from waiting import until

from app.access.identity import owner
from app.jobs import supervisors
from app.jobs.supervisor import supervise
from app.operations import people, runs
from app.operations.runs import RunShrink
from curation.recipe.prices import Price, save_price
from db.errors import Refused
from db.people.rights import PRESETS
from db.run.runs import funnel, get_run
from db.store.store import Store
from db.tables import Group, Job
from inf_studio.client import Studio
from inf_studio.transport import OverHttp

pytestmark = pytest.mark.long

ADA, PAIRS = owner("Ada"), 40


def python_client(store: Store) -> Studio:
    """The Python client of a server of this store, with a curator's token."""
    people.add(COMMAND, people.PersonAdd(name="boss", role="admin"), PASSWORD)
    people.add(COMMAND, people.PersonAdd(name="cora", role="curator"), PASSWORD)
    token = new_token("cora", rights=[*PRESETS["curator"]], budget_usd=100).token
    return Studio(OverHttp("http://localhost", token, server_client()))


def statuses(store: Store) -> list[str]:
    with store.read() as session:
        return list(session.scalars(select(Job.status).order_by(Job.id)))


def test_workers_join_a_run_by_the_api_and_leave_it_and_the_others_end_it(
    postgres_store: Store, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = postgres_store
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)  # here: the thread below
    add_dataset(store, pairs=PAIRS)
    save_price("small", Price(1.0, 2.0))
    with Server(latency_seconds=0.1) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
        small = python_client(store).datasets.get(1)
        run = small.curate(
            provider="openai", settings=["model=small"], concurrency=6, budget_usd=50
        )
        run_id = run.row["id"]
        supervisor = threading.Thread(target=supervise, args=(store,), kwargs={"idle_seconds": 2})
        supervisor.start()
        until(lambda: server.answered.total() > 5, 90)
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # the API server's own
        assert run.join(2).row["status"] == "running"
        until(lambda: statuses(store) == ["running"] * 3 and server.answered.total() > 20, 90)
        with pytest.raises(Refused, match="3 of 3 workers"):
            runs.shrink(ADA, RunShrink(run_id=run_id, by=3))
        left = runs.shrink(ADA, RunShrink(run_id=run_id, by=2))
        assert (left.leaving, left.workers) == ((2, 3), 1)
        with pytest.raises(Refused, match="1 of 1 workers"):
            runs.shrink(ADA, RunShrink(run_id=run_id))
        until(lambda: statuses(store)[1:] == ["cancelled"] * 2, 60)
        assert server.answered.total() < PAIRS * 8, "they left while there was work"
        supervisor.join(240)
        assert statuses(store) == ["done", "cancelled", "cancelled"]
        assert server.answered.total() == len(server.answered) == PAIRS * 8, "no call twice"
    with store.read() as session:
        assert get_run(session, run_id).status == "done"
        assert funnel(session, run_id).finished == PAIRS
        assert session.scalars(select(Group.lease_owner).distinct()).all() == [None]
