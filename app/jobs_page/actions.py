"""Actions on jobs from pages: launch, read, cancel, resume, run again."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.access.session_user import action, notify, signed_in_user
from app.operations import jobs
from app.operations.acting import queue
from db.tables import Job


def launch_job(kind: str, config: dict[str, Any], *, what: str) -> int:
    """Queue a job for the session user. Returns its id. Raises Refused without the permission."""
    job_id = queue(signed_in_user(), kind, config)
    notify(f"{what} is queued as job {job_id}.")
    return job_id


def read_job(job_id: int) -> Job:
    """The current row of the job; a job without a recent heartbeat is marked as lost first."""
    return jobs.find(signed_in_user(), job_id)


def read_metrics(job_ids: Sequence[int]) -> dict[int, dict[str, list[tuple[int, float]]]]:
    """The metrics of jobs by job id and name, as (step, value)."""
    return jobs.metrics(signed_in_user(), job_ids)


@action
def cancel(job_id: int) -> None:
    """Request that a job stops."""
    changed = jobs.cancel(signed_in_user(), job_id)
    notify(f"Job {job_id} is {changed.status}.")


@action
def resume(job_id: int) -> None:
    """Queue a finished job again; it continues from what it stored."""
    jobs.resume(signed_in_user(), job_id)
    notify(f"Job {job_id} is queued again and continues from what it stored.")


@action
def run_again(job_id: int) -> None:
    """Queue a new job with the same config."""
    changed = jobs.run_again(signed_in_user(), job_id)
    st.query_params["job"] = str(changed.id)
    notify(f"Job {changed.id} is queued with the config of job {job_id}.")
