"""The figures of the store in Prometheus' text format, for monitoring.

What runs did is counted by their workers, wherever they are, in rows of their own, and summed here:
any server of a store gives the same figures, and none of them is lost with a process.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.access.identity import Actor, TokenHolder
from app.access.permissions import require
from db.clock import store_now
from db.people.sign_ins import SEEN_EVERY
from db.run.progress import latest_funnel
from db.run.workers import COMMIT_MS, DEAD_AFTER_SECONDS
from db.store.scope import unscoped
from db.store.store import open_store
from db.tables import AccountSession, Job, Run, RunWorker, utc_now

OF_NOW = ("queued", "running")  # jobs


def figures(actor: Actor) -> bytes:
    """All figures as of now, in the text format: for administrators, and programs that watch."""
    require(actor, "watch" if isinstance(actor, TokenHolder) else "accounts")
    with unscoped(), open_store().read() as session:
        families = [*_of_workers(session), *_of_queue(session), *_of_people(session)]
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Found(families))
    return generate_latest(registry)


class _Found:
    """Figures as prometheus-client wants them: an object that is asked for them."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """The figures."""
        yield from self._families


def _of_workers(session: Session) -> Iterator[Metric]:
    """Sums over the workers of all runs, ended ones too, so that no counter falls."""
    worker = RunWorker
    row = session.execute(
        select(
            func.coalesce(func.sum(worker.made), 0).label("made"),
            func.coalesce(func.sum(worker.reused), 0).label("reused"),
            func.coalesce(func.sum(worker.input_tokens), 0).label("input"),
            func.coalesce(func.sum(worker.output_tokens), 0).label("output"),
            func.coalesce(func.sum(worker.spent_usd + worker.unanswered_usd), 0.0).label("usd"),
            func.coalesce(func.sum(worker.claimed), 0).label("claimed"),
        )
    ).one()
    calls = CounterMetricFamily("inf_calls", "Calls of runs, by whose answer.", labels=["answer"])
    calls.add_metric(["made"], row.made)
    calls.add_metric(["reused"], row.reused)
    tokens = CounterMetricFamily("inf_tokens", "Tokens of these calls.", labels=["direction"])
    tokens.add_metric(["input"], row.input)
    tokens.add_metric(["output"], row.output)
    yield from (calls, tokens)
    yield CounterMetricFamily("inf_cost_usd", "What calls of runs cost, USD.", value=row.usd)
    yield CounterMetricFamily("inf_claims", "Groups that workers claimed.", value=row.claimed)
    errors, commits = Counter[str](), Counter[str]()
    for of_kind, waits in session.execute(select(worker.errors, worker.commits)):
        errors.update(of_kind)
        commits.update(waits)
    failed = CounterMetricFamily("inf_errors", "Failed attempts of calls.", labels=["kind"])
    for kind, count in sorted(errors.items()):
        failed.add_metric([kind], count)
    yield failed
    yield _commit_latency(commits)
    since = store_now(session) - timedelta(seconds=DEAD_AFTER_SECONDS)
    alive = worker.ended_at.is_(None) & (worker.heartbeat_at >= since)
    working, in_flight = session.execute(
        select(func.count(), func.coalesce(func.sum(worker.in_flight), 0)).where(alive)
    ).one()
    yield GaugeMetricFamily("inf_workers", "Workers of runs with a heartbeat.", value=working)
    yield GaugeMetricFamily("inf_calls_in_flight", "Calls without an answer yet.", value=in_flight)


def _commit_latency(commits: Mapping[str, Any]) -> Metric:
    buckets = [(str(ms / 1000), commits.get(str(ms), 0)) for ms in COMMIT_MS]
    return HistogramMetricFamily(
        "inf_commit_seconds",
        "From an answer received to its commit.",
        buckets=[*buckets, ("+Inf", commits.get("all", 0))],
        sum_value=commits.get("sum", 0) / 1000,
    )


def _of_queue(session: Session) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("inf_jobs", "Jobs that are not over.", labels=["kind", "status"])
    found = session.execute(
        select(Job.kind, Job.status, func.count())
        .where(Job.status.in_(OF_NOW))
        .group_by(Job.kind, Job.status)
        .order_by(Job.kind, Job.status)
    )
    for kind, status, count in found:
        jobs.add_metric([kind, status], count)
    groups = GaugeMetricFamily("inf_groups", "Groups of running runs.", labels=["run", "state"])
    for run_id in session.scalars(select(Run.id).where(Run.status == "running").order_by(Run.id)):
        now = latest_funnel(session, run_id)
        states = {"waiting": now.waiting, "claimed": now.in_work, "kept": now.kept}
        for state, count in (states | {"dropped": now.finished - now.kept}).items():
            groups.add_metric([str(run_id), state], count)
    yield from (jobs, groups)


def _of_people(session: Session) -> Iterator[Metric]:
    """Accounts whose browser was seen since: a sign of life is written every SEEN_EVERY."""
    online = session.scalar(
        select(func.count(AccountSession.account_id.distinct())).where(
            AccountSession.ended_at.is_(None), AccountSession.seen_at >= utc_now() - 2 * SEEN_EVERY
        )
    )
    help_ = f"Accounts seen in the last {2 * SEEN_EVERY.seconds // 60} minutes."
    yield GaugeMetricFamily("inf_people_online", help_, value=online or 0)
