"""The workers of a run: heartbeats, counts, and their parts of the run's limits.

The budget is leased in slices: a worker takes one of what is free, in a transaction of its own, and
reserves the maximum cost of its calls within that. What it reserved it writes into its own row
before they are sent, and what it spent in the transaction that stores the answers. So several
workers together never exceed the budget, and none waits for another's commit: what a run spent is
the sum over its workers. Slices become small with what is left, and what is not used is given back.

What a worker had reserved when it died may have been billed: it counts as spent, until its answers
are found in its files (`db.run.calls.add_recovered_calls`). Its calls in flight, as its last
heartbeat had them, count as failed attempts of the kind WORKER_DIED, with a budget and without.

Calls in flight are leased in whole slots, limits per minute as parts of 1, in equal shares: a
worker that joins gets its share once those before it hold less, so that the sum is never more. One
without groups has none, and holds nothing; one that wants some holds at least a TRACE of it, by
which the others know.

Groups are leased. A worker is dead when its process is gone (on this machine) or its heartbeat is
stale (on any other); its groups are taken over.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, case, exists, func, select, update
from sqlalchemy.orm import Session

from db.clock import silent_since, store_now
from db.machine import is_dead
from db.patience import clock_time, known_absence
from db.run.group_queue import lease_owners, release_groups
from db.run.runs import keep_count
from db.tables import Run, RunWorker, utc_now

DEAD_AFTER_SECONDS = 45.0
COMMIT_MS = (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000)  # buckets of latencies
SLICES = 8  # of what is free of a budget: all workers together hold one more than they use
ROUNDING_USD = 1e-9  # sums of float costs may exceed the budget by rounding alone
TRACE = 1e-12  # of the limits per minute
WORKER_DIED = "worker_died"


@dataclass(frozen=True)
class Trouble:
    """What goes wrong with calls: the newest error, how often calls are retried, what is awaited.

    `waiting_until`: no call starts before, as the server requested it, or the next attempt to reach
    what is `away`, the server or the store: then `waiting_since` and `waiting_for`, the reason, are
    known.
    """

    last_error: str | None = None
    last_error_at: datetime | None = None
    retries_per_minute: int = 0
    waiting_until: datetime | None = None
    waiting_since: datetime | None = None
    waiting_for: str | None = None
    away: str = "server"

    def waiting(self) -> str:
        """What is waited for, since when and until when; "" while nothing is."""
        if self.waiting_until is None:
            return ""
        until = clock_time(self.waiting_until)
        if self.waiting_for is None or self.waiting_since is None:
            return f"waiting until {until} as the server requested"
        since = clock_time(self.waiting_since)
        why = self.waiting_for
        return f"waiting for the {self.away} since {since}, next attempt at {until} ({why})"


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

    input_tokens: int = 0
    output_tokens: int = 0
    claimed: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    commits: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkerTotals:
    """Totals over all workers of a run; `alive` counts those with a recent heartbeat.

    `unanswered_usd`: of what the run spent, what calls without an answer may have cost at most.
    `died_in_flight`: calls in flight, about, when their workers died. `places`: calls in flight of
    the run, which its workers share.
    """

    alive: int
    in_flight: int
    width: float
    made: int
    reused: int
    failures: int
    throttled: int
    unanswered_usd: float = 0.0
    died_in_flight: int = 0
    trouble: Trouble = field(default_factory=Trouble)
    pace: Pace = field(default_factory=Pace)
    places: int = 0

    def without_place(self) -> str:
        """How many workers can have no call in flight, as the run's are fewer; "" for none."""
        if not 0 < self.places < self.alive:
            return ""
        idle = self.alive - self.places
        return f"{idle} of {self.alive} workers idle: concurrency is {self.places} for all together"


@dataclass(frozen=True)
class Grant:
    """Whether a call's cost is reserved; `others_usd`: what may come back of other reservations."""

    granted: bool
    others_usd: float


@dataclass(frozen=True)
class Account:
    """A worker's part of the budget: what it leased, spent, and reserved for calls in flight.

    `unanswered_usd`: spent on calls without an answer.
    """

    leased_usd: float = 0.0
    spent_usd: float = 0.0
    unanswered_usd: float = 0.0
    reserved_usd: float = 0.0

    @property
    def taken_usd(self) -> float:
        """What is spent or reserved."""
        return self.spent_usd + self.unanswered_usd + self.reserved_usd

    def short_by(self, usd: float) -> float:
        """How much it has to lease to reserve so much more; 0 where it holds that."""
        missing = self.taken_usd + usd - self.leased_usd
        return missing if missing > ROUNDING_USD else 0.0


@dataclass(frozen=True)
class Share:
    """A worker's part of a run's limits: calls in flight, and what part of those per minute."""

    calls: int
    part: float = 1.0


def add_worker(session: Session, run_id: int, owner: str) -> None:
    """Register a worker that starts, unless it is. Does not commit.

    The count that was kept of the run is its own to renew.
    """
    if session.scalar(select(RunWorker.id).where(RunWorker.owner == owner)) is None:
        counted, now = _take_count(session, run_id), store_now(session)
        at = None if counted is None else now
        noted = RunWorker(
            run_id=run_id, owner=owner, heartbeat_at=now, counted=counted, counted_at=at
        )
        session.add(noted)
        session.flush()


def _take_count(session: Session, run_id: int) -> str | None:
    """The count that is kept of a run while no worker is at it; from here on none is kept."""
    run = select(Run.counted).where(Run.id == run_id).with_for_update(key_share=True)
    counted = session.scalar(run)
    session.execute(update(Run).where(Run.id == run_id).values(counted=None))
    return counted


def rejoin(session: Session, owner: str, account: Account) -> None:
    """Take back a worker that was declared dead while it was cut off. Does not commit.

    It holds what it spent and reserved, which was counted all along, and nothing more.
    """
    now = store_now(session)
    back = update(RunWorker).where(RunWorker.owner == owner)
    values = {"ended_at": None, "heartbeat_at": now}
    run_id = session.scalars(back.values(values).returning(RunWorker.run_id)).one()
    _take_count(session, run_id)
    store_account(session, owner, replace(account, leased_usd=account.taken_usd))


def lease_share(
    session: Session,
    run_id: int,
    owner: str,
    *,
    in_flight: int,
    own_calls: int | None = None,
    is_idle: bool = False,
) -> Share:
    """Renew a worker's share of the run's limits: an equal one, as far as others hold less.

    `in_flight` calls keep their slots until they end. own_calls: it may have that many, whatever
    the others have. is_idle: it has no groups, and its share is the others'. Does not commit.
    """
    total, held = _shares(session, run_id)
    if owner not in held:
        return Share(0, 0.0)
    fair = Share(0, 0.0) if is_idle else _fair_share(total, held, owner)
    now = Share(held[owner].leased_calls or 0, held[owner].leased_part)
    if fair.calls > now.calls or fair.part > now.part:
        # who takes more stands in a line: each sees what those before it took
        session.execute(select(Run.id).where(Run.id == run_id).with_for_update(key_share=True))
        total, held = _shares(session, run_id)
        if owner not in held:  # taken for dead meanwhile
            return Share(0, 0.0)
        fair = _fair_share(total, held, owner)
        others = [each for name, each in held.items() if name != owner]
        calls = total - sum(each.leased_calls or 0 for each in others)
        part = 1.0 - sum(each.leased_part for each in others)
        fair = Share(min(fair.calls, max(0, calls)), min(fair.part, max(0.0, part)))
    leased = None if own_calls is not None else max(fair.calls, min(in_flight, now.calls))
    session.execute(
        update(RunWorker)
        .where(RunWorker.owner == owner)
        .values(leased_calls=leased, leased_part=0.0 if is_idle else max(fair.part, TRACE))
    )
    return fair if own_calls is None else replace(fair, calls=own_calls)


def _shares(session: Session, run_id: int) -> tuple[int, dict[str, Any]]:
    """The run's calls in flight, and what its workers hold, by owner, oldest first."""
    total = session.scalar(select(Run.concurrency).where(Run.id == run_id)) or 0
    rows = session.execute(
        select(RunWorker.owner, RunWorker.leased_calls, RunWorker.leased_part)
        .where(RunWorker.run_id == run_id, RunWorker.ended_at.is_(None))
        .order_by(RunWorker.id)
    )
    return total, {row.owner: row for row in rows}


def _fair_share(total: int, held: dict[str, Any], owner: str) -> Share:
    """Equal parts of the limits per minute, and of whole calls, the first workers one more."""
    wanting = [name for name, each in held.items() if each.leased_part or name == owner]
    sharing = [name for name in wanting if held[name].leased_calls is not None]
    calls = 0
    if owner in sharing:
        calls = total // len(sharing) + (sharing.index(owner) < total % len(sharing))
    return Share(calls, 1.0 / len(wanting))


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
    """End these workers, or declare them dead; their leases are freed. Does not commit.

    What they had reserved may have been billed: it counts as spent, and calls in flight as failed.
    """
    ending = RunWorker.owner.in_(owners), RunWorker.ended_at.is_(None)
    calling = select(RunWorker).where(*ending, RunWorker.in_flight > 0).order_by(RunWorker.id)
    for worker in session.scalars(calling):
        before = worker.errors.get(WORKER_DIED, 0)
        worker.errors = worker.errors | {WORKER_DIED: before + worker.in_flight}
    session.execute(
        update(RunWorker)
        .where(*ending)
        .values(
            ended_at=utc_now(),
            unanswered_usd=RunWorker.unanswered_usd + RunWorker.reserved_usd,
            reserved_usd=0.0,
            leased_usd=0.0,
            leased_calls=0,
            leased_part=0.0,
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


def committed_usd(worker: Any) -> ColumnElement[float]:
    """What a worker takes of a budget, of columns of `run_worker`: what it leased while it works,
    what it spent once it has ended."""
    spent = worker.spent_usd + worker.unanswered_usd
    holds = worker.ended_at.is_(None) & (worker.leased_usd > spent)
    return case((holds, worker.leased_usd), else_=spent)


def lease_budget(
    session: Session,
    run_id: int,
    owner: str,
    account: Account,
    wanted_usd: float,
    least_usd: float,
) -> tuple[Account, float]:
    """The account of a worker with a further slice of the budget, and what may still come back.

    The slice covers `wanted_usd` more, or as much of that as is free; where not even `least_usd`
    is, what the worker holds and does not use is given back. What may come back is what others hold
    and have not spent; while another worker leases, nothing is leased, and anything may. Commit at
    once.
    """
    locked = session.execute(
        select(Run.budget_usd, Run.other_usd)
        .where(Run.id == run_id)
        # a share lock of a row that refers to the run does not wait for this one
        .with_for_update(key_share=True, skip_locked=True)
    ).first()
    if locked is None:
        return account, math.inf
    budget, other = locked
    # not before the lock: what those before leased is seen
    total, held, workers = session.execute(
        select(
            func.coalesce(func.sum(committed_usd(RunWorker)), 0.0),
            func.coalesce(
                func.sum(committed_usd(RunWorker) - RunWorker.spent_usd - RunWorker.unanswered_usd),
                0.0,
            ),
            func.count().filter(RunWorker.ended_at.is_(None)),
        ).where(RunWorker.run_id == run_id, RunWorker.owner != owner)
    ).one()
    if budget is None:
        return replace(account, leased_usd=account.taken_usd + wanted_usd), 0.0
    room = budget - other - total
    free = max(0.0, room - account.taken_usd)  # own slack included
    if free + ROUNDING_USD < least_usd:
        # a lost answer is spent while its reservation stands: both are not leased beyond the room
        most = max(account.leased_usd, room)
        return replace(account, leased_usd=min(account.taken_usd, most)), held
    slice_usd = min(free, max(wanted_usd, free / (SLICES * (workers + 1))))
    return replace(account, leased_usd=account.taken_usd + slice_usd), held


def store_account(session: Session, owner: str, account: Account) -> bool:
    """Write what a worker leased, spent and reserved into its own row. Does not commit.

    False, and nothing is written, if it was declared dead: what it leased is others' by then.
    """
    done = session.execute(
        update(RunWorker)
        .where(RunWorker.owner == owner, RunWorker.ended_at.is_(None))
        .values(
            leased_usd=account.leased_usd,
            spent_usd=account.spent_usd,
            unanswered_usd=account.unanswered_usd,
            reserved_usd=account.reserved_usd,
        )
        .returning(RunWorker.id)
    )
    return done.first() is not None


def calls_of_others(session: Session, run_id: int, owner: str) -> Counter[str]:
    """The calls that other workers made and reused which worked since this one began."""
    began = select(RunWorker.started_at).where(RunWorker.owner == owner).scalar_subquery()
    made, reused = session.execute(
        select(
            func.coalesce(func.sum(RunWorker.made), 0), func.coalesce(func.sum(RunWorker.reused), 0)
        ).where(
            RunWorker.run_id == run_id, RunWorker.owner != owner, RunWorker.heartbeat_at > began
        )
    ).one()
    return Counter(made=made, reused=reused)


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
            func.coalesce(func.sum(RunWorker.unanswered_usd), 0.0),
        ).where(RunWorker.run_id == run_id)
    ).one()
    working = session.scalars(select(RunWorker).where(RunWorker.run_id == run_id, alive)).all()
    errors = session.scalars(select(RunWorker.errors).where(RunWorker.run_id == run_id))
    died = sum(each.get(WORKER_DIED, 0) for each in errors)
    shares = all(each.leased_calls is not None for each in working)  # else some have their own
    places = session.scalar(select(Run.concurrency).where(Run.id == run_id)) if shares else 0
    trouble = _trouble(session, run_id, working)
    return WorkerTotals(*row, died, trouble, _pace(working), places or 0)


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
    store = known_absence(session.get_bind().engine.url)  # a file can be read while it is locked
    first = min(away, key=lambda each: each.waiting_since or utc_now(), default=None)
    retries = sum(each.retries_per_minute for each in working)
    # a worker that cannot write its heartbeat is not among those that work
    of_run = RunWorker.run_id == run_id, RunWorker.ended_at.is_(None)
    if store is not None and session.scalar(select(exists().where(*of_run))):
        waiting = store.until, store.since, store.reason
        return Trouble(error, at, retries, *waiting, away="store")
    return Trouble(
        error,
        at,
        retries,
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
    """Release the groups that a worker still holds, and end it: it has no call in flight.

    The last one leaves the run's count behind. Does not commit.
    """
    release_groups(session, run_id, [owner])
    nothing = {"reserved_usd": 0.0, "in_flight": 0}
    session.execute(update(RunWorker).where(RunWorker.owner == owner).values(nothing))
    end_workers(session, [owner])
    keep_count(session, run_id)
