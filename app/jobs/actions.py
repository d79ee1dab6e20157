"""Launching a job from a page: check the permission, queue the job, notify the user."""

from typing import Any

from app.access.session_user import notify, require_permission
from app.jobs import launching
from app.jobs.kinds import KINDS
from db.store.store import open_store


def launch_job(kind: str, config: dict[str, Any], *, what: str) -> int:
    """Queue a job for the session user. Returns its id. Raises Refused without the permission."""
    user = require_permission(KINDS[kind].permission)
    job_id = launching.launch(open_store(), kind, config, started_by=user.name)
    notify(f"{what} is queued as job {job_id}.")
    return job_id
