"""Reviews that agents propose: what a judge of kind model would decide, and a person reviews."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.tables import Judge, ReviewProposal


@dataclass(frozen=True)
class Proposal:
    """A proposed review and the name of its judge."""

    judge: str
    action: str
    reason: str
    created_at: datetime


def add_proposal(
    session: Session, group_id: int, judge: Judge, *, action: str, reason: str
) -> ReviewProposal:
    """Add a proposal; it takes the place of an earlier one of the judge. Does not commit."""
    row = ReviewProposal(group_id=group_id, judge_id=judge.id, action=action, reason=reason)
    session.add(row)
    session.flush()
    return row


def proposals_of(session: Session, group_id: int) -> Sequence[Proposal]:
    """The newest proposal of each judge about a group, the oldest first."""
    query = (
        select(Judge.name, ReviewProposal)
        .join(Judge, Judge.id == ReviewProposal.judge_id)
        .where(ReviewProposal.group_id == group_id)
        .order_by(ReviewProposal.id)
    )
    newest = dict(session.execute(query).all())
    rows = sorted(newest.items(), key=lambda each: each[1].id)
    return [Proposal(name, row.action, row.reason, row.created_at) for name, row in rows]
