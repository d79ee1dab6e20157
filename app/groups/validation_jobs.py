"""The jobs in which a run's validator judges edited groups: which are live, and why one left some
texts without an answer."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.text.remedies import in_pages
from curation.recipe.drop_reasons import reason_text
from db.jobs.jobs import list_jobs
from db.tables import Item, Job

LIVE = ("queued", "running")
ENDED = ("done", "failed", "cancelled", "lost")


def validation_jobs(session: Session, run_id: int, statuses: Sequence[str]) -> list[Job]:
    """The jobs, newest first, in which the run's validator judges edits, not a second judge's."""
    jobs = list_jobs(session, kind="judge", statuses=statuses)
    found = (one for one in jobs if one.config.get("run_id") == run_id)
    return [one for one in found if one.config.get("judge") is None]


def groups_in_validation(session: Session, run_id: int) -> set[int | None]:
    """The groups that live jobs let the validator judge; None: all edited ones."""
    return {job.config.get("group_id") for job in validation_jobs(session, run_id, LIVE)}


def why_not_validated(session: Session, run_id: int, group_id: int) -> str:
    """Why the last job that judged the group's newest texts left some unanswered; "" if none did.

    For a group of which some texts wait for the validator.
    """
    since = session.scalar(select(func.max(Item.created_at)).where(Item.group_id == group_id))
    for job in validation_jobs(session, run_id, ENDED):
        if since is None or job.created_at < since:
            return ""
        if job.config.get("group_id") in (None, group_id):
            return _why(job)
    return ""


def _why(job: Job) -> str:
    if job.status != "done":
        detail = f": {in_pages(job.error)}" if job.error else ""
        return (
            f"Not validated: job {job.id} {'was ' * (job.status != 'failed')}{job.status}{detail}"
        )
    found = job.result or {}
    reasons = [reason_text(reason) for reason in found.get("unusable", {})]
    if not reasons:
        return ""
    return f"Not validated: {found.get('judge')} has no usable answer ({'; '.join(reasons)})"
