"""A run loses workers while it works: what they hold is completed or given back, nothing twice."""

import threading
from pathlib import Path

import pytest
from curation_runs import add_dataset
from openai_server import Server
from sqlalchemy import select
from waiting import until

from app.access.identity import owner
from app.jobs import launching, supervisors
from app.jobs.supervisor import supervise
from app.operations import runs
from app.operations.runs import RunShrink
from curation.run.starting import RunWork, start_run
from db.errors import Refused
from db.run.runs import funnel, get_run
from db.store.store import Store
from db.tables import Group, Job

ADA, PAIRS = owner("Ada"), 60


def statuses(store: Store) -> list[str]:
    with store.read() as session:
        return list(session.scalars(select(Job.status).order_by(Job.id)))


def test_workers_leave_a_run_which_the_others_end(
    postgres_store: Store, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = postgres_store
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)  # here: the thread below
    add_dataset(store, pairs=PAIRS)
    with Server(latency_seconds=0.1) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
        with store.write() as session:
            asked = {"dataset": "small", "provider": "openai", "settings": ["model=small"]}
            run_id = start_run(session, **asked, concurrency=6).id
            session.commit()
        launching.launch(store, "curate", RunWork(run_id=run_id, workers=3).config(), actor=ADA)
        supervisor = threading.Thread(target=supervise, args=(store,), kwargs={"idle_seconds": 2})
        supervisor.start()
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
