"""The job handler of kind `judge`: a study's items, or a run's edited ones."""

from typing import Any

from curation.judging.revalidation import revalidate
from curation.judging.studies import judge_study
from db.jobs.runner import JobHandle


def judge(handle: JobHandle) -> dict[str, Any]:
    """By what the config names: `run_id` is a revalidation, else a study is judged."""
    return revalidate(handle) if "run_id" in handle.config else judge_study(handle)
