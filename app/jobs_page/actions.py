"""Actions on jobs from pages: read, cancel, resume, run again."""

from collections.abc import Sequence

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.acting import acting
from app.operations import jobs
from app.operations.jobs import JobChanged
from db.tables import Job


def read_job(job_id: int) -> Job:
    """The current row of the job; a job without a recent heartbeat is marked as lost first."""
    return jobs.find(signed_in_user(), job_id)


def read_metrics(job_ids: Sequence[int]) -> dict[int, dict[str, list[tuple[int, float]]]]:
    """The metrics of jobs by job id and name, as (step, value)."""
    return jobs.metrics(signed_in_user(), job_ids)


cancel = acting(jobs.cancel, lambda job: f"Job {job.id} is {job.status}.")


resume = acting(
    jobs.resume,
    lambda job: f"Job {job.id} is queued again and continues from what it stored.",
)


def _is_new(job: JobChanged) -> str:
    st.query_params["job"] = str(job.id)
    return f"Job {job.id} is queued with the same config."


run_again = acting(jobs.run_again, _is_new)
