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
            f"the loss is {loss} at step {step}: nothing was saved from this step",
            "Lower learning_rate or raise temperature, and look at the texts of the release",
            code="loss_not_finite",
        )


def _remedies(settings: TrainSettings) -> str:
    """What takes less memory and is not used yet: of a batch first, then of the weights."""
    at_once = max(1, min(8, settings.rows_per_batch))
    has_lora, is_sharded = settings.lora_rank > 0, settings.fsdp == "on"
    is_whole = settings.quantize == "off" and not settings.base_share and not is_sharded
    trains_both = settings.trained_side == "both"
    helps = {
        f"texts_at_once={at_once} (cached gradients, the same result)": not settings.texts_at_once
        and not is_sharded,
        "gradient_checkpointing=on": settings.gradient_checkpointing == "off",
        "base_share=0 (no copy of the base)": settings.base_share > 0,
        "lora_rank=16 (adapters alone are trained)": not has_lora,
        "quantize=4bit (frozen weights in 4 bits)": has_lora and is_whole and trains_both,
        "optimizer=adamw-8bit": settings.optimizer == "adamw" and not is_sharded,
        "fsdp=on with `nproc=` (weights sharded over GPUs)": trains_both
        and not has_lora
        and not is_sharded,
    }
    named = [name for name, does in helps.items() if does]
    return f"give {', '.join(named)}; then lower" if named else "lower"


def translated(error: BaseException, settings: TrainSettings) -> BaseException:
    """BadInput for out of memory or a full disk, with the remedy; any other error unchanged."""
    message = str(error)
    if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in message:
        return BadInput(
            f"out of memory with rows_per_batch={settings.rows_per_batch}, query_tokens="
            f"{settings.query_tokens}, passage_tokens={settings.passage_tokens}",
            f"{_remedies(settings)} rows_per_batch or passage_tokens",
            code="memory_exhausted",
        )
    if is_disk_full(error):
        return BadInput(
            "no space left on the disk to keep a state of the training: the state before it is "
            "intact",
            "Free some, then resume the job",
            code="disk_full",
        )
    return error
