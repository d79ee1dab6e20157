"""Budgets of tokens: what the runs that a token starts may cost together.

A run that is not over counts with its whole budget, one that is over with what it spent and its
workers still hold. So the sum never exceeds the token's budget, as no run exceeds its own
(`db.run.workers`).
"""

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from db.errors import Refused
from db.run.runs import OVER
from db.run.workers import committed_usd as committed_of_worker
from db.tables import ApiToken, ApiTokenRun, Run, RunWorker

ROUNDING_USD = 1e-9


def committed_usd(session: Session, token_id: int, *, without: int | None = None) -> float:
    """What the runs of a token may still cost, and have cost; `without` this run.

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
    query = select(func.coalesce(func.sum(usd), 0.0)).where(
        own.run_id == run.id, own.token_id == token_id, own.run_id != (without or 0)
    )
    return float(session.execute(query).scalar_one())


def take_budget(session: Session, token_id: int, run: Run, *, is_new: bool) -> None:
    """Count a run that costs money on the budget of the token that starts or resumes it.

    Raises Refused without a budget of either, where less is left, and for a run of another. Does
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
        require_own_run(session, token_id, run.id)
    if token.budget_usd is None:
        raise without_budget()
    if run.budget_usd is None:
        raise Refused(
            "a run that costs money has a budget when a token starts it",
            "give `budget_usd=`",
            code="run_without_budget",
        )
    left = max(0.0, token.budget_usd - committed_usd(session, token_id, without=run.id))
    if run.budget_usd > left + ROUNDING_USD:
        raise Refused(
            f"a budget of {run.budget_usd:.2f} USD, but the token has {left:.4f} left of "
            f"{token.budget_usd:.2f}",
            "give less as `budget_usd=`",
            code="token_budget_exceeded",
        )
    if is_new:
        session.add(ApiTokenRun(run_id=run.id, token_id=token_id))
        session.flush()


def require_own_run(session: Session, token_id: int, run_id: int) -> None:
    """Raise Refused unless the token started the run: another's spends another's budget."""
    own = session.get(ApiTokenRun, run_id)
    if own is None or own.token_id != token_id:
        raise Refused(
            f"run {run_id} costs money, and this token did not start it",
            "have whoever started it go on with it",
            code="run_of_another",
        )


def without_budget() -> Refused:
    """The refusal of what costs money, by a token without a budget."""
    return Refused(
        "this costs money, and the token has no budget",
        "create a token with `budget_usd=`",
        code="token_without_budget",
    )
