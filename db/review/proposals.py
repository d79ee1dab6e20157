"""Reviews that agents propose: what a judge of kind model would decide, and a person reviews."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.rows import Row
from db.tables import Judge, ReviewProposal


class ProposalRow(Row):
    """A review that an agent proposes, a judge of kind model; no review of its own."""

    id: int
    group_id: int
    action: str
    reason: str
    judge: str
    created_at: datetime


def add_proposal(
    session: Session, group_id: int, judge: Judge, *, action: str, reason: str
) -> ReviewProposal:
    """Add a proposal; it takes the place of an earlier one of the judge. Does not commit."""
    row = ReviewProposal(group_id=group_id, judge_id=judge.id, action=action, reason=reason)
    session.add(row)
    session.flush()
    return row


def proposals_of(session: Session, group_id: int) -> Sequence[ProposalRow]:
    """The newest proposal of each judge about a group, the oldest first."""
    query = (
        select(Judge.name, ReviewProposal)
        .join(Judge, Judge.id == ReviewProposal.judge_id)
        .where(ReviewProposal.group_id == group_id)
        .order_by(ReviewProposal.id)
    )
    newest = dict(session.execute(query).all())
    rows = sorted(newest.items(), key=lambda each: each[1].id)
    return [ProposalRow.of(row, judge=name) for name, row in rows]
