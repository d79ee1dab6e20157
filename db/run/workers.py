"""The workers of a run: heartbeats, counts, and budget reserved before it is spent.

A call's maximum cost is reserved in the transaction that also searched the journal for it, so that
several workers together never exceed the budget. It is freed in the transaction that stores the
answer with its real cost.

Groups are leased. A worker is dead when its process is gone (on this machine) or its heartbeat is
stale (on any other); its groups are taken over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from db.clock import silent_since, store_now
from db.machine import is_dead
from db.patience import clock_time
from db.run.calls import add_spending
from db.run.group_queue import lease_owners, release_groups
from db.tables import Run, RunWorker, utc_now

DEAD_AFTER_SECONDS = 45.0
COMMIT_MS = (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000)  # buckets of latencies
ROUNDING_USD = 1e-9  # sums of float costs may exceed the budget by rounding alone


@dataclass(frozen=True)
class Trouble:
    """What goes wrong with calls: the newest error, how often calls are retried, what is awaited.

    `waiting_until`: no call starts before, as the server requested it, or the next attempt to reach
    a server that is away: then `waiting_since` and `waiting_for`, the reason, are known.
    """

    last_error: str | None = None
    last_error_at: datetime | None = None
    retries_per_minute: int = 0
    waiting_until: datetime | None = None
    waiting_since: datetime | None = None
    waiting_for: str | None = None

    def waiting(self) -> str:
        """What is waited for, since when and until when; "" while nothing is."""
        if self.waiting_until is None:
            return ""
        until = clock_time(self.waiting_until)
        if self.waiting_for is None or self.waiting_since is None:
            return f"waiting until {until} as the server requested"
        since = clock_time(self.waiting_since)
        return f"waiting for the server since {since}, next attempt at {until} ({self.waiting_for})"


@dataclass(frozen=True)
class Pace:
    """How fast answers come in the last minutes, None until there is enough to go by.

    `in_progress`: answers so far of groups without a verdict, by stage.
    """

    answers_per_minute: float | None = None
    in_progress: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Figures:
    """What a worker did so far, for monitoring; `commits` as in `db.tables.RunWorker`."""

    spent_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    claimed: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    commits: dict[str, float] = field(default_factory=dict)


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
    trouble: Trouble = field(default_factory=Trouble)
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True)
class Grant:
    """Whether a call's cost is reserved; `others_usd` is what was reserved before it."""

    granted: bool
    others_usd: float


def add_worker(session: Session, run_id: int, owner: str) -> None:
    """Register a worker that starts, unless it is. Does not commit."""
    if session.scalar(select(RunWorker.id).where(RunWorker.owner == owner)) is None:
        now = store_now(session)
        session.add(RunWorker(run_id=run_id, owner=owner, heartbeat_at=now))
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
    trouble: Trouble | None = None,
    pace: Pace | None = None,
    figures: Figures | None = None,
) -> None:
    """Renew a worker's heartbeat and its counts. Does not commit."""
    done = {} if figures is None else vars(figures)
    trouble, pace = trouble or Trouble(), pace or Pace()
    session.execute(
        update(RunWorker)
        .where(RunWorker.owner == owner)
        .values(
            heartbeat_at=store_now(session),
            in_flight=in_flight,
            width=width,
            made=made,
            reused=reused,
            failures=failures,
            throttled=throttled,
            last_error=trouble.last_error,
            last_error_at=trouble.last_error_at,
            retries_per_minute=trouble.retries_per_minute,
            waiting_until=trouble.waiting_until,
            waiting_since=trouble.waiting_since,
            waiting_for=trouble.waiting_for,
            answers_per_minute=pace.answers_per_minute,
            in_progress=pace.in_progress,
            **done,
        )
    )


def end_workers(session: Session, owners: Sequence[str]) -> None:
    """End these workers, or declare them dead: their reservations are freed. Does not commit."""
    session.execute(
        update(RunWorker)
        .where(RunWorker.owner.in_(owners), RunWorker.ended_at.is_(None))
        .values(
            ended_at=utc_now(),
            reserved_usd=0.0,
            in_flight=0,
            retries_per_minute=0,
            waiting_until=None,
            waiting_since=None,
            waiting_for=None,
            answers_per_minute=None,
            in_progress={},
        )
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
    limit = silent_since(session, DEAD_AFTER_SECONDS)
    if limit is None:
        return []
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
    # the lock on the run puts the workers in a line: each sees the reservations of those before it
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


def set_reserved(session: Session, owner: str, usd: float) -> None:
    """Set a worker's reservation to what it knows to hold. Does not commit."""
    session.execute(
        update(RunWorker).where(RunWorker.owner == owner).values(reserved_usd=max(0.0, usd))
    )


def add_unanswered_cost(session: Session, owner: str, usd: float) -> None:
    """Add to the run's spending what a worker's calls without an answer cost so far, `usd` in all.

    Counted once, however often it is written. Does not commit.
    """
    worker = session.execute(
        select(RunWorker.run_id, RunWorker.unanswered_usd).where(RunWorker.owner == owner)
    ).first()
    if worker is None or worker.unanswered_usd == usd:
        return
    session.execute(update(RunWorker).where(RunWorker.owner == owner).values(unanswered_usd=usd))
    add_spending(session, worker.run_id, usd - worker.unanswered_usd)


def worker_totals(session: Session, run_id: int) -> WorkerTotals:
    """Totals over the workers of a run, ended and alive."""
    limit = store_now(session) - timedelta(seconds=DEAD_AFTER_SECONDS)
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
        ).where(RunWorker.run_id == run_id)
    ).one()
    working = session.scalars(select(RunWorker).where(RunWorker.run_id == run_id, alive)).all()
    return WorkerTotals(*row, _trouble(session, run_id, working), _pace(working))


def _trouble(session: Session, run_id: int, working: Sequence[RunWorker]) -> Trouble:
    """The newest error of any worker of the run; the rest of those that work now."""
    newest = session.execute(
        select(RunWorker.last_error, RunWorker.last_error_at)
        .where(RunWorker.run_id == run_id, RunWorker.last_error_at.is_not(None))
        .order_by(RunWorker.last_error_at.desc())
        .limit(1)
    ).first()
    error, at = (None, None) if newest is None else newest
    until = [each.waiting_until for each in working if each.waiting_until is not None]
    away = [each for each in working if each.waiting_since is not None]
    first = min(away, key=lambda each: each.waiting_since or utc_now(), default=None)
    return Trouble(
        error,
        at,
        sum(each.retries_per_minute for each in working),
        max(until, default=None),
        None if first is None else first.waiting_since,
        None if first is None else first.waiting_for,
    )


def _pace(working: Sequence[RunWorker]) -> Pace:
    """The rates added up; None as long as one of the workers has none, which would be too few."""
    rates = [each.answers_per_minute for each in working]
    known = [rate for rate in rates if rate is not None]
    in_progress: dict[str, int] = {}
    for each in working:
        for stage, count in each.in_progress.items():
            in_progress[stage] = in_progress.get(stage, 0) + count
    return Pace(sum(known) if known and len(known) == len(rates) else None, in_progress)


def take_over(session: Session, run_id: int, owner: str) -> list[str]:
    """Release the groups of dead workers; returns their names. Does not commit."""
    owners = {*lease_owners(session, run_id), *working_owners(session, run_id)} - {owner}
    dead = {name for name in owners if is_dead(name)}
    dead |= set(silent_owners(session, run_id)) - {owner}
    if dead:
        release_groups(session, run_id, sorted(dead))
        end_workers(session, sorted(dead))
    return sorted(dead)


def leave(session: Session, run_id: int, owner: str) -> None:
    """Release the groups that a worker still holds, and end it. Does not commit."""
    release_groups(session, run_id, [owner])
    end_workers(session, [owner])
