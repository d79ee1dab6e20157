"""The end of a worker's share: the run's status and result."""

from typing import Any

from sqlalchemy.orm import Session

from analysis.found.runs import LeakageReport, SharedParts
from curation.providers.registry import PROVIDERS
from curation.recipe.tasks import VALIDATION
from curation.servers.connection import prices_of_run
from db.rows import SparseRow
from db.run.progress import exact_funnel
from db.run.runs import get_run, set_run_status
from db.run.workers import worker_totals
from db.store.store import Store
from db.tables import Dataset, Recipe, Run


class CallsMade(SparseRow):
    """The calls of a worker; `unknown_server`: those that a server answered that is not named."""

    made: int
    reused: int
    unknown_server: int = 0


class RunStands(SparseRow):
    """How a run stands at the end of a worker's share; `reason`: why it stopped before its end.

    `unpriced`: the models whose calls cost an unknown amount. `picks`: whether its judge picks
    passages, of which studies of a run are made.
    """

    run_id: int
    dataset_id: int
    dataset: str
    provider: str
    offline: bool
    pairs: int
    generated: int
    kept: int
    dropped: dict[str, int]
    unpriced: tuple[str, ...]
    spent_usd: float
    status: str
    paused: bool
    reason: str = ""
    picks: bool = True


class RunWorked(RunStands):
    """The result of a job `curate`; what is measured of the texts is of the worker that ended it.

    `kept_ms`, `commit_ms`: how long answers waited for a file and for a commit, as percentiles;
    `claim_ms`: how long the worker waited for claimed groups.
    """

    calls: CallsMade
    kept_ms: dict[str, int]
    commit_ms: dict[str, int]
    claim_ms: dict[str, int]
    leakage: LeakageReport | None = None
    shared_parts: SharedParts | None = None
    seconds: float


class RunChecked(SparseRow):
    """What is measured once of the texts of a run that is done."""

    run_id: int
    leakage: LeakageReport
    shared_parts: SharedParts


def close_run(store: Store, run_id: int, *, out_of_budget: bool) -> tuple[RunStands, bool]:
    """Set the run's status unless other workers are active; the result, and whether it changed.

    Exactly one of several workers sees the change: that one does what is done once per run.
    """
    with store.write() as session:
        counted = exact_funnel(session, run_id)
        run = get_run(session, run_id)
        status, message = run.status, run.error
        if counted.finished == counted.pairs:
            status, message = "done", None
        elif run.status == "running" and worker_totals(session, run_id).alive == 0:
            status, message = "paused", f"stopped; continue with `runs resume {run_id}`"
            if out_of_budget:
                left = max(0.0, (run.budget_usd or 0.0) - run.spent_usd)
                message = (
                    f"the budget of {run.budget_usd} USD is used up: the next call could cost more "
                    f"than the {left:.4f} USD left; "
                    f"`runs resume {run_id} budget_usd=MORE` continues it"
                )
        changed = status != run.status
        if changed:
            set_run_status(session, run_id, status, error=message)
        session.commit()
        more: dict[str, Any] = {"reason": message} if message else {}
        if VALIDATION not in _stages(session, run):
            more["picks"] = False
        stands = RunStands(
            run_id=run_id,
            dataset_id=run.dataset_id,
            dataset=session.get_one(Dataset, run.dataset_id).name,
            provider=run.provider,
            offline=run.offline,
            pairs=counted.pairs,
            generated=counted.generated,
            kept=counted.kept,
            dropped=counted.dropped,
            unpriced=_unpriced(session, run),
            spent_usd=run.spent_usd,
            status=status,
            paused=status == "paused",
            **more,
        )
        return stands, changed


def _stages(session: Session, run: Run) -> dict[str, Any]:
    stages: dict[str, Any] = session.get_one(Recipe, run.recipe_id).body["stages"]
    return stages


def _unpriced(session: Session, run: Run) -> tuple[str, ...]:
    """The models of the run's recipe whose calls cost an unknown amount."""
    if not PROVIDERS.find(run.provider).paid:
        return ()
    models = {each["model"] for each in _stages(session, run).values()}
    return tuple(sorted(models - prices_of_run(session, run).keys()))
