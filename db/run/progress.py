"""How far runs are: their funnels, which are counted once for all that read them, and their list.

A full count reads every group of the run. While a run is at work, the worker that works longest
counts, stores the result in its own row, and spends at most one part in SHARE of its time on it;
the other workers, pages and metrics read that. The last worker that leaves, and whatever changes
the groups of a run without workers, store the count in the run (`db.run.runs.keep_count`): it is
exact. Only a run whose workers died is counted in full by whoever reads it.
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.clock import store_now
from db.run.runs import Funnel, RunSummary, counted_now, funnels, get_run
from db.run.workers import DEAD_AFTER_SECONDS
from db.tables import Dataset, Recipe, Run, RunWorker

COUNT_SECONDS = 5.0  # between two counts, at least
SHARE = 20
MAX_ROUNDS = 3  # after that many without a new one a count is of a worker that is gone


def list_runs(
    session: Session,
    dataset_id: int | None = None,
    *,
    run_id: int | None = None,
    archived: bool = False,
) -> list[RunSummary]:
    """Runs, newest first, of all datasets or of one, or one run. With `archived` the archived
    ones, too. A run is archived with its dataset. No group is read where a count is kept; one
    statement counts all others.
    """
    query = (
        select(Run, Run.counted, Dataset.name, Dataset.archived_at, Recipe.name, Recipe.sha256)
        .join(Dataset, Dataset.id == Run.dataset_id)
        .join(Recipe, Recipe.id == Run.recipe_id)
        .order_by(Run.id.desc())
    )
    if dataset_id is not None:
        query = query.where(Run.dataset_id == dataset_id)
    if run_id is not None:
        query = query.where(Run.id == run_id)
    if not archived:
        query = query.where(Run.archived_at.is_(None), Dataset.archived_at.is_(None))
    rows = session.execute(query).all()
    counted_here = _funnels(session, [row[0] for row in rows if row[1] is None], MAX_ROUNDS)
    return [
        RunSummary(
            id=run.id,
            name=f"run {run.id}",
            dataset_id=run.dataset_id,
            dataset=dataset,
            recipe=recipe,
            recipe_sha256=sha256,
            recipe_version=run.recipe_version,
            provider=run.provider,
            offline=run.offline,
            status=run.status,
            verdict_version=run.verdict_version,
            pairs=counts.pairs,
            kept=counts.kept,
            dropped=sum(counts.dropped.values()),
            spent_usd=run.spent_usd,
            budget_usd=run.budget_usd,
            created_by=run.created_by,
            created_at=run.created_at,
            finished_at=run.finished_at,
            error=run.error,
            archived=run.archived_at is not None or hidden is not None,
            connection=run.server.get("connection"),
            url=run.server.get("url") or None,
        )
        for run, counted, dataset, hidden, recipe, sha256 in rows
        for counts in (_read(counted) if counted else counted_here[run.id],)
    ]


def latest_funnel(session: Session, run_id: int, rounds: int = MAX_ROUNDS) -> Funnel:
    """The funnel of a run: at most `rounds` counts old while it is at work, else of now."""
    kept = session.scalar(select(Run.counted).where(Run.id == run_id))
    return _read(kept) if kept else _funnels(session, [get_run(session, run_id)], rounds)[run_id]


def exact_funnel(session: Session, run_id: int) -> Funnel:
    """The funnel of a run as it is now: what is stored of one without workers, else counted."""
    return latest_funnel(session, run_id, 0)


def _funnels(session: Session, runs: Sequence[Run], rounds: int) -> dict[int, Funnel]:
    """The funnels of runs without a kept count."""
    noted = _noted(session, [run.id for run in runs], rounds) if runs and rounds else {}
    others = [run for run in runs if run.id not in noted]
    return noted | funnels(session, others)


def _read(counted: str) -> Funnel:
    return Funnel(**json.loads(counted)["funnel"])


def shared_funnel(session: Session, run_id: int, owner: str) -> Funnel:
    """As `latest_funnel`, for a worker: where it is due, and its turn, it is counted anew and
    stored for the others. Does not commit."""
    now = store_now(session)
    alive = RunWorker.heartbeat_at >= now - timedelta(seconds=DEAD_AFTER_SECONDS)
    working = RunWorker.run_id == run_id, RunWorker.ended_at.is_(None)
    first = session.scalar(select(RunWorker.owner).where(*working, alive).order_by(RunWorker.id))
    noted = _noted(session, [run_id], MAX_ROUNDS if first != owner else 1)
    if noted:
        return noted[run_id]
    found, counted = counted_now(session, run_id)
    session.execute(
        update(RunWorker)
        .where(RunWorker.owner == owner, RunWorker.ended_at.is_(None))
        .values(counted=counted, counted_at=now)
    )
    return found


def _noted(session: Session, run_ids: Sequence[int], rounds: int) -> dict[int, Funnel]:
    """The newest counts of workers that have not ended; none that is older than `rounds`."""
    counts = (
        select(RunWorker.run_id, RunWorker.counted, RunWorker.counted_at)
        .join(Run, Run.id == RunWorker.run_id)
        .where(
            RunWorker.run_id.in_(run_ids),
            Run.status == "running",
            RunWorker.ended_at.is_(None),
            RunWorker.counted.is_not(None),
        )
        .order_by(RunWorker.counted_at)  # of a run the newest stays
    )
    newest: dict[int, Any] = {each.run_id: each[1:] for each in session.execute(counts)}
    now = store_now(session)
    return {
        run_id: _read(counted)
        for run_id, (counted, at) in newest.items()
        if (now - at).total_seconds()
        < rounds * max(COUNT_SECONDS, SHARE * json.loads(counted)["seconds"])
    }
