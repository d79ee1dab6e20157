"""Budgets of tokens: what the runs and judges that a token starts may cost together.

Work that is not over counts with its whole budget, a run that is over with what it spent and its
workers still hold, a judge's job with what it spent or may have spent when it was killed. So the
sum never exceeds the token's budget, as no run or judge exceeds its own (`db.run.workers`,
`curation.judges.asking`).
"""

from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from db.errors import Refused
from db.run.runs import OVER
from db.run.workers import committed_usd as committed_of_worker
from db.tables import ApiToken, ApiTokenJob, ApiTokenRun, Job, Run, RunWorker

ROUNDING_USD = 1e-9


def committed_usd(session: Session, token_id: int, *, without: Run | Job | None = None) -> float:
    """What the runs and judges of a token may still cost, and have cost; `without` this one.

    Of the tables themselves: a token that lost its right on a dataset has spent there all the same.
    """
    run, own, worker = Run.__table__.c, ApiTokenRun.__table__.c, RunWorker.__table__.c
    held = (
        select(func.coalesce(func.sum(committed_of_worker(worker)), 0.0))
        .where(worker.run_id == run.id)
        .scalar_subquery()
    )
    budget = func.coalesce(run.budget_usd, 0.0)
    usd = case((run.status.in_(OVER), run.spent_usd + held), else_=budget)
    other = without.id if isinstance(without, Run) else 0
    query = select(func.coalesce(func.sum(usd), 0.0)).where(
        own.run_id == run.id, own.token_id == token_id, own.run_id != other
    )
    return float(session.execute(query).scalar_one()) + _of_judges(session, token_id, without)


def _of_judges(session: Session, token_id: int, without: Run | Job | None) -> float:
    job, own = Job.__table__.c, ApiTokenJob.__table__.c
    other = without.id if isinstance(without, Job) else 0
    query = select(job.finished_at, job.config, job.shown).where(
        own.job_id == job.id, own.token_id == token_id, own.job_id != other
    )
    return sum(
        float(shown.get("spent_usd", 0.0) if finished_at else config["budget_usd"])
        for finished_at, config, shown in session.execute(query)
    )


def take_budget(session: Session, token_id: int, work: Run | Job, *, is_new: bool) -> None:
    """Count a run, or the job of a judge, that costs money on the budget of the token that starts
    or resumes it.

    Raises Refused without a budget of either, where less is left, and for work of another. Does
    not commit.
    """
    session.flush()
    # locked: two runs that start at once must not both get what is left
    token = session.scalars(
        select(ApiToken)
        .where(ApiToken.id == token_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one()
    if not is_new:
        require_own(session, token_id, work)
    if token.budget_usd is None:
        raise without_budget()
    what = "run" if isinstance(work, Run) else "judge"
    budget_usd = work.budget_usd if isinstance(work, Run) else work.config.get("budget_usd")
    if budget_usd is None:
        raise Refused(
            f"a {what} that costs money has a budget when a token starts it",
            "give `budget_usd=`",
            code=f"{what}_without_budget",
        )
    left = max(0.0, token.budget_usd - committed_usd(session, token_id, without=work))
    if budget_usd > left + ROUNDING_USD:
        raise Refused(
            f"a budget of {budget_usd:.2f} USD, but the token has {left:.4f} left of "
            f"{token.budget_usd:.2f}",
            "give less as `budget_usd=`",
            code="token_budget_exceeded",
        )
    if is_new:
        own: Any = ApiTokenRun if isinstance(work, Run) else ApiTokenJob
        session.add(own(**{f"{_noun(work)}_id": work.id}, token_id=token_id))
        session.flush()


def require_own(session: Session, token_id: int, work: Run | Job) -> None:
    """Raise Refused unless the token started it: another's spends another's budget."""
    own: Any = session.get(ApiTokenRun if isinstance(work, Run) else ApiTokenJob, work.id)
    if own is None or own.token_id != token_id:
        raise Refused(
            f"{_noun(work)} {work.id} costs money, and this token did not start it",
            "have whoever started it go on with it",
            code=f"{_noun(work)}_of_another",
        )


def _noun(work: Run | Job) -> str:
    return "run" if isinstance(work, Run) else "job"


def without_budget() -> Refused:
    """The refusal of what costs money, by a token without a budget."""
    return Refused(
        "this costs money, and the token has no budget",
        "create a token with `budget_usd=`",
        code="token_without_budget",
    )
