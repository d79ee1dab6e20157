"""The audit log: adding to it and reading it."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.tables import Audit


def record_audit(
    session: Session, actor: str, action: str, subject: str = "", **detail: Any
) -> None:
    """Add a row to the audit log. Does not commit."""
    session.add(Audit(actor=actor, action=action, subject=subject, detail=detail))


def list_audit(
    session: Session, *, actions: Sequence[str] = (), offset: int = 0, limit: int = 50
) -> tuple[list[Audit], int]:
    """A page of the audit log, newest first, and how many rows there are in all."""
    query = select(Audit)
    if actions:
        query = query.where(Audit.action.in_(actions))
    total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    rows = session.scalars(query.order_by(Audit.id.desc()).offset(offset).limit(limit))
    return list(rows), total


def audit_actions(session: Session) -> list[str]:
    """The actions that occur in the audit log."""
    return list(session.scalars(select(Audit.action).distinct().order_by(Audit.action)))
