"""More workers than a run has calls in flight: those without a place are counted."""

import pytest
from records_world import make_run
from sqlalchemy import select, update

from db.run.workers import add_worker, worker_totals
from db.store.store import Store
from db.tables import Run, RunWorker


@pytest.mark.parametrize(("workers", "idle"), [(2, ""), (3, ""), (5, "2 of 5 workers")])
def test_workers_beyond_the_calls_in_flight_are_counted(
    sqlite_store: Store, workers: int, idle: str
) -> None:
    make_run(sqlite_store)
    with sqlite_store.write() as session:
        run_id = session.scalars(select(Run.id)).first()
        assert run_id is not None
        session.execute(update(Run).values(concurrency=3))
        for number in range(workers):
            add_worker(session, run_id, f"worker {number}")
        found = worker_totals(session, run_id).without_place()
        assert found.startswith(idle) and bool(found) == bool(idle)
        session.execute(update(RunWorker).values(leased_calls=None))
        assert not worker_totals(session, run_id).without_place(), "each has calls of its own"
