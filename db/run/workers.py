"""The workers of a run: heartbeats, counts, and budget reserved before it is spent.

A call's maximum cost is reserved in the transaction that also searched the journal for it, so that
several workers together never exceed the budget. It is freed in the transaction that stores the
answer with its real cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from db.tables import Run, RunWorker, utc_now

DEAD_AFTER_SECONDS = 45.0
ROUNDING_USD = 1e-9


@dataclass(frozen=True)
class WorkerTotals:
    """Totals over all workers of a run; `alive` counts those with a recent heartbeat."""

    alive: int
    in_flight: int
    width: float
    made: int
    reused: int
    failures: int
    throttled: int
    first_started_at: datetime | None


@dataclass(frozen=True)
class Grant:
    """Whether a call's cost is reserved; `others_usd` is what was reserved before it."""

    granted: bool
    others_usd: float


def add_worker(session: Session, run_id: int, owner: str) -> None:
    """Register a worker that starts. Does not commit."""
    session.add(RunWorker(run_id=run_id, owner=owner))
    session.flush()


def beat_worker(
    session: Session,
    owner: str,
    *,
    in_flight: int,
    width: float,
    made: int,
    reused: int,
    failures: int,
    throttled: int,
) -> None:
    """Renew a worker's heartbeat and its counts. Does not commit."""
    session.execute(
        update(RunWorker)
        .where(RunWorker.owner == owner)
        .values(
            heartbeat_at=utc_now(),
            in_flight=in_flight,
            width=width,
            made=made,
            reused=reused,
            failures=failures,
            throttled=throttled,
        )
    )


def end_workers(session: Session, owners: Sequence[str]) -> None:
    """End these workers, or declare them dead: their reservations are freed. Does not commit."""
    session.execute(
        update(RunWorker)
        .where(RunWorker.owner.in_(owners), RunWorker.ended_at.is_(None))
        .values(ended_at=utc_now(), reserved_usd=0.0, in_flight=0)
    )


def working_owners(session: Session, run_id: int) -> list[str]:
    """The owner names of the workers that have not ended."""
    return list(
        session.scalars(
            select(RunWorker.owner).where(RunWorker.run_id == run_id, RunWorker.ended_at.is_(None))
        )
    )


def silent_owners(session: Session, run_id: int) -> list[str]:
    """The owner names of workers that have not ended but whose heartbeat is old."""
    limit = utc_now() - timedelta(seconds=DEAD_AFTER_SECONDS)
    return list(
        session.scalars(
            select(RunWorker.owner).where(
                RunWorker.run_id == run_id,
                RunWorker.ended_at.is_(None),
                RunWorker.heartbeat_at < limit,
            )
        )
    )


def set_aside(
    session: Session, run_id: int, owner: str, wanted_usd: Sequence[float]
) -> list[Grant]:
    """Reserve the cost of calls, in order, as far as the budget allows. Does not commit."""
    if not wanted_usd:
        return []
    run = session.execute(
        select(Run.budget_usd, Run.spent_usd).where(Run.id == run_id).with_for_update()
    ).one()
    reserved = float(
        session.scalar(
            select(func.coalesce(func.sum(RunWorker.reserved_usd), 0.0)).where(
                RunWorker.run_id == run_id, RunWorker.ended_at.is_(None)
            )
        )
        or 0.0
    )
    grants, added = [], 0.0
    for usd in wanted_usd:
        others = reserved + added
        fits = run.budget_usd is None or (
            run.spent_usd + others + usd <= run.budget_usd + ROUNDING_USD
        )
        grants.append(Grant(fits, others))
        added += usd if fits else 0.0
    change_reserved(session, owner, added)
    return grants


def change_reserved(session: Session, owner: str, by_usd: float) -> None:
    """Change a worker's reservation by an amount. Does not commit."""
    if by_usd:
        session.execute(
            update(RunWorker)
            .where(RunWorker.owner == owner)
            .values(reserved_usd=RunWorker.reserved_usd + by_usd)
        )


def worker_totals(session: Session, run_id: int) -> WorkerTotals:
    """Totals over the workers of a run, ended and alive."""
    limit = utc_now() - timedelta(seconds=DEAD_AFTER_SECONDS)
    alive = (RunWorker.ended_at.is_(None)) & (RunWorker.heartbeat_at >= limit)
    row = session.execute(
        select(
            func.count().filter(alive),
            func.coalesce(func.sum(RunWorker.in_flight).filter(alive), 0),
            func.coalesce(func.sum(RunWorker.width).filter(alive), 0.0),
            func.coalesce(func.sum(RunWorker.made), 0),
            func.coalesce(func.sum(RunWorker.reused), 0),
            func.coalesce(func.sum(RunWorker.failures), 0),
            func.coalesce(func.sum(RunWorker.throttled), 0),
            func.min(RunWorker.started_at),
        ).where(RunWorker.run_id == run_id)
    ).one()
    return WorkerTotals(*row)
