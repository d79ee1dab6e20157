"""The job handler of kind `judge`: a study's items, or a run's edited ones."""

from typing import Any

from curation.judging.revalidation import revalidate
from curation.judging.studies import judge_study
from db.jobs.runner import JobHandle


def judge(handle: JobHandle) -> dict[str, Any]:
    """Run a revalidation if the config has `run_id`, else judge a study."""
    return revalidate(handle) if "run_id" in handle.config else judge_study(handle)
