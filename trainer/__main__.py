"""`python -m trainer JOB ATTEMPT`: runs one job of kind train or evaluate."""

import sys
from typing import Any

from db.jobs.runner import JobHandle, main


def train(handle: JobHandle) -> dict[str, Any]:
    """Fine-tune a model on a release."""
    from trainer.loop import job as train_job

    return train_job.train(handle)


def evaluate(handle: JobHandle) -> dict[str, Any]:
    """Score models."""
    from trainer.evaluate import job as evaluate_job

    return evaluate_job.evaluate(handle)


if __name__ == "__main__":
    sys.exit(main({"train": train, "evaluate": evaluate}))
