"""What can be changed while a run is at work, and what its calls are said to have cost."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from curation_runs import add_dataset, claimed_job
from openai_server import Server
from sqlalchemy import func, select
from waiting import until

from curation.run.engine import curate
from curation.run.starting import start_run
from db.run.calls import call_totals
from db.run.runs import set_concurrency
from db.run.workers import worker_totals
from db.store.store import Store
from db.tables import Call

LIMIT_SECONDS = 120.0


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(reasoning_tokens=30, usage=(100, 40)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


wait_until = partial(until, seconds=LIMIT_SECONDS)


def test_the_concurrency_of_a_run_is_changed_while_it_runs(store: Store, server: Server) -> None:
    add_dataset(store)
    server.hold_after = 4  # the first instructions; then every call stays at the server
    with store.write() as session:
        run_id = start_run(
            session, dataset="small", provider="openai", settings=["model=small"], concurrency=2
        ).id
        session.commit()
    worker = threading.Thread(target=curate, args=(claimed_job(store, run_id),))
    worker.start()
    try:
        wait_until(lambda: server.answered.total() == 4 and server.in_flight == 2)
        assert server.most_in_flight == 2
        with store.write() as session:
            set_concurrency(session, run_id, 7)
            session.commit()
        wait_until(lambda: server.in_flight == 7)
        with store.write() as session:
            set_concurrency(session, run_id, 3)
            session.commit()
        # those at the server stay; once they are answered no more than three are sent
        wait_until(lambda: _width(store, run_id) == 3)
        server.hold_after = 4 + 7
        wait_until(lambda: server.answered.total() >= 11 and server.in_flight == 3)
    finally:
        server.hold_after = None
        worker.join(LIMIT_SECONDS)
    assert not worker.is_alive() and server.most_in_flight == 7


def _width(store: Store, run_id: int) -> float:
    with store.read() as session:
        return worker_totals(session, run_id).width


def test_reasoning_tokens_are_counted_and_paid_as_output(
    store: Store, server: Server, own_home: Path
) -> None:
    add_dataset(store, pairs=3)
    own_home.mkdir(exist_ok=True)
    (own_home / "prices.toml").write_text('["small"]\ninput = 1.0\noutput = 10.0\n')
    with store.write() as session:
        run_id = start_run(session, dataset="small", provider="openai", settings=["model=small"]).id
        session.commit()
    result = curate(claimed_job(store, run_id)).as_json()
    with store.read() as session:
        one = session.scalars(select(Call)).first()
        assert one is not None
        told = (one.input_tokens, one.output_tokens, one.reasoning_tokens)
        counted = session.scalar(select(func.sum(Call.reasoning_tokens)))
        by_stage = call_totals(session, run_id)
    # 40 tokens came, 30 of them were thoughts: (100 x 1 + 40 x 10) / 1,000,000 USD
    assert told == (100, 40, 30) and one.cost_usd == pytest.approx(0.0005)
    assert counted == 30 * 24 == sum(each.reasoning_tokens for each in by_stage)
    assert result["spent_usd"] == pytest.approx(24 * 0.0005)
