"""Estimate of a training before it starts: steps, time and a lower bound of its memory.

Time follows earlier trainings of the same base model in this store (seconds per group seen) and is
unknown without one. Memory counts 16 bytes per parameter for fp32 weights, gradients and the two
moments of AdamW (with LoRA 4, for the weights alone), without activations. A training that needs
more than is available cannot fit and is refused.
"""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import psutil

from app.models.sizes import parameters_of
from db.jobs.gpus import query_gpus
from db.tables import Checkpoint
from trainer.settings.settings import TrainSettings

BYTES_PER_PARAMETER = 16
BYTES_OF_WEIGHTS = 4


@dataclass(frozen=True)
class Estimate:
    """`seconds` and `least_bytes` are None if there is no basis for them."""

    steps: int
    seconds: float | None
    trainings: int
    least_bytes: float | None
    available_bytes: float

    @property
    def fits(self) -> bool:
        """False only if the lower bound exceeds the available memory."""
        return self.least_bytes is None or self.least_bytes <= self.available_bytes


def estimate(
    settings: TrainSettings, groups: int, earlier: Iterable[Checkpoint], available_bytes: float
) -> Estimate:
    """The estimate for a training with these settings on this many groups."""
    training = groups - round(groups * settings.held_out)
    steps = math.ceil(math.ceil(training / settings.rows_per_batch) * settings.epochs)
    if settings.max_steps:
        steps = settings.max_steps
    paces = [pace for each in earlier if (pace := _pace(each, settings)) is not None]
    seconds = None
    if paces:
        seconds = statistics.median(paces) * steps * settings.rows_per_batch
        if settings.max_seconds:
            seconds = min(seconds, settings.max_seconds)
    parameters = parameters_of(settings.base_model)
    least = None
    if parameters is not None:
        each = BYTES_OF_WEIGHTS if settings.lora_rank else BYTES_PER_PARAMETER
        least = parameters * each * (2 if settings.encoders == "two" else 1)
    return Estimate(steps, seconds, len(paces), least, available_bytes)


def _pace(checkpoint: Checkpoint, settings: TrainSettings) -> float | None:
    """Seconds per group of an earlier training; None for another base model."""
    if checkpoint.base_model != settings.base_model:
        return None
    steps, seconds = checkpoint.summary.get("steps"), checkpoint.summary.get("seconds")
    rows = checkpoint.config.get("rows_per_batch")
    if not steps or not seconds or not rows:
        return None
    return float(seconds) / (float(steps) * float(rows))


@cache
def available_bytes() -> float:
    """Memory of the largest GPU, or of the machine if it has no GPU."""
    sizes = query_gpus("memory.total")
    return max(sizes) * 2**20 if sizes else psutil.virtual_memory().total
