"""What the pages' buttons do: check the role, queue the job or write the row, say what happened.

A callback reads its widgets from `st.session_state` at the moment it runs: an interrupted rerun can
hand it old arguments.
"""

from typing import Any

from app.access.session_user import notify, require_permission
from app.jobs import launching
from app.jobs.kinds import KINDS
from db.store.store import open_store


def launch_job(kind: str, config: dict[str, Any], *, what: str) -> int:
    """Queue a job in the user's name. Returns its id. Raises Refused."""
    user = require_permission(KINDS[kind].permission)
    job_id = launching.launch(open_store(), kind, config, started_by=user.name)
    notify(f"{what} is queued as job {job_id}.")
    return job_id
