"""Failures of a training as errors with the remedy."""

import math

import torch

from db.errors import BadInput
from trainer.model.saving import is_disk_full
from trainer.settings.settings import TrainSettings


def require_finite(loss: float, step: int) -> None:
    """Raise BadInput for a NaN or infinite loss."""
    if not math.isfinite(loss):
        raise BadInput(
            f"the loss is {loss} at step {step}: nothing was saved from this step. Lower "
            "learning_rate or raise temperature, and look at the texts of the release"
        )


def translated(error: BaseException, settings: TrainSettings) -> BaseException:
    """BadInput for out of memory or a full disk, with the remedy; any other error unchanged."""
    message = str(error)
    if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in message:
        return BadInput(
            f"out of memory with rows_per_batch={settings.rows_per_batch}, "
            f"query_tokens={settings.query_tokens}, passage_tokens={settings.passage_tokens}: "
            f"give texts_at_once={max(1, min(8, settings.rows_per_batch))} (cached gradients, the "
            "same result) or gradient_checkpointing=on, then lower rows_per_batch or passage_tokens"
        )
    if is_disk_full(error):
        return BadInput(
            "no space left on the disk to keep a state of the training: the state before it is "
            "intact. Free some, then resume the job"
        )
    return error
