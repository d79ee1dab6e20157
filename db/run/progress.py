"""The funnel of a run at work, counted by one of its workers for all that read it.

A full count reads every group of the run. The worker that works longest counts, stores the result
in its own row, and spends at most one part in SHARE of its time on it; the other workers, pages and
metrics read that. A run that is not at work is counted in full by whoever reads it: what it says at
its end, after a retry or a re-decision is exact.
"""

import json
import time
from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.clock import store_now
from db.run.runs import Funnel, funnel
from db.run.workers import DEAD_AFTER_SECONDS
from db.tables import Run, RunWorker

COUNT_SECONDS = 5.0  # between two counts, at least
SHARE = 20
MAX_ROUNDS = 3  # after that many without a new one a count is of a worker that is gone


def latest_funnel(session: Session, run_id: int) -> Funnel:
    """The funnel of a run: at most MAX_ROUNDS counts old while it is at work, else of now."""
    found = _noted(session, run_id, MAX_ROUNDS)
    return funnel(session, run_id) if found is None else found


def shared_funnel(session: Session, run_id: int, owner: str) -> Funnel:
    """As `latest_funnel`, for a worker: where it is due, and its turn, it is counted anew and
    stored for the others. Does not commit."""
    now = store_now(session)
    alive = RunWorker.heartbeat_at >= now - timedelta(seconds=DEAD_AFTER_SECONDS)
    working = RunWorker.run_id == run_id, RunWorker.ended_at.is_(None)
    first = session.scalar(select(RunWorker.owner).where(*working, alive).order_by(RunWorker.id))
    found = _noted(session, run_id, MAX_ROUNDS if first != owner else 1)
    if found is not None:
        return found
    began = time.monotonic()
    counted = funnel(session, run_id)
    noted = json.dumps({"seconds": time.monotonic() - began, "funnel": vars(counted)})
    session.execute(
        update(RunWorker)
        .where(RunWorker.owner == owner, RunWorker.ended_at.is_(None))
        .values(counted=noted, counted_at=now)
    )
    return counted


def _noted(session: Session, run_id: int, rounds: int) -> Funnel | None:
    """The newest count of a worker that has not ended; None where it is older than `rounds`."""
    newest = session.execute(
        select(RunWorker.counted, RunWorker.counted_at)
        .join(Run, Run.id == RunWorker.run_id)
        .where(
            RunWorker.run_id == run_id,
            Run.status == "running",
            RunWorker.ended_at.is_(None),
            RunWorker.counted_at.is_not(None),
        )
        .order_by(RunWorker.counted_at.desc())
        .limit(1)
    ).first()
    if newest is None or newest.counted is None:
        return None
    noted = json.loads(newest.counted)
    age = (store_now(session) - newest.counted_at).total_seconds()
    is_young = age < rounds * max(COUNT_SECONDS, SHARE * noted["seconds"])
    return Funnel(**noted["funnel"]) if is_young else None
