"""Actions on jobs from pages: launch, read, cancel, resume, run again."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.access.identity import SessionUser
from app.access.session_user import action, notify, require_permission
from app.jobs import launching, supervisors
from app.jobs.kinds import KINDS
from db.errors import Refused
from db.jobs import jobs as queue
from db.people.audit import record_audit
from db.store.store import open_store
from db.tables import Job, utc_now


def launch_job(kind: str, config: dict[str, Any], *, what: str) -> int:
    """Queue a job for the session user. Returns its id. Raises Refused without the permission."""
    user = require_permission(KINDS[kind].permission)
    job_id = launching.launch(open_store(), kind, config, actor=user)
    notify(f"{what} is queued as job {job_id}.")
    return job_id


def read_job(job_id: int) -> Job:
    """The current row of the job; a job without a recent heartbeat is marked as lost first."""
    store = open_store()
    with store.read() as session:
        job = queue.get_job(session, job_id)
    if job.status == "running" and job.heartbeat_at is not None:
        silent = (utc_now() - job.heartbeat_at).total_seconds()
        if silent > queue.LOST_AFTER_SECONDS:
            with store.write() as session:
                queue.mark_lost_jobs(session)
                session.commit()
                job = queue.get_job(session, job_id)
    return job


def read_metrics(job_ids: Sequence[int]) -> dict[int, dict[str, list[tuple[int, float]]]]:
    """The metrics of jobs by job id and name, as (step, value)."""
    with open_store().read() as session:
        return queue.metric_series(session, job_ids)


@action
def cancel(job_id: int) -> None:
    """Request that a job stops."""
    user = _require_kind(job_id)
    with open_store().write() as session:
        job = queue.request_stop(session, job_id)
        record_audit(session, user.name, "job.cancel", str(job_id))
        session.commit()
        stopped = job.status == "cancelled"
    notify(f"Job {job_id} is {'cancelled' if stopped else 'stopping'}.")


@action
def resume(job_id: int) -> None:
    """Queue a finished job again; it continues from what it stored."""
    user = _require_kind(job_id)
    store = open_store()
    with store.write() as session:
        launcher = queue.requeue_job(session, job_id).launcher
        record_audit(session, user.name, "job.resume", str(job_id))
        session.commit()
    supervisors.ensure_taken(store, launcher)
    notify(f"Job {job_id} is queued again and continues from what it stored.")


@action
def run_again(job_id: int) -> None:
    """Queue a new job with the same config."""
    user = _require_kind(job_id)
    store = open_store()
    with store.read() as session:
        job = queue.get_job(session, job_id)
    if job.kind == "restore":  # it would replace all that was stored since
        raise Refused("a restore is started by command: `inf restore FILE --detach`")
    new_id = launching.launch(store, job.kind, job.config, actor=user)
    st.query_params["job"] = str(new_id)
    notify(f"Job {new_id} is queued with the config of job {job_id}.")


def _require_kind(job_id: int) -> SessionUser:
    """The user, if they may launch jobs of its kind. Raises Refused."""
    require_permission("jobs")
    with open_store().read() as session:
        kind = queue.get_job(session, job_id).kind
    return require_permission(KINDS[kind].permission)
