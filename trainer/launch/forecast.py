"""What a training will take, before it starts: steps, time and a lower bound of its memory.

Time follows earlier trainings of the same base model in this store (seconds per group seen) and is
unknown without one. Memory counts weights, gradients, the optimizer's moments and the copy for
`base_share` (`bytes_per_parameter`), without activations; unknown where FSDP shards it over as many
processes as will start. A training that needs more than is available cannot fit and is refused.
"""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import psutil

from db.jobs.gpus import query_gpus
from db.tables import Checkpoint
from trainer.settings.settings import TrainSettings
from trainer.settings.sizes import parameters_of

MOMENTS = {"adamw": 8, "adamw-8bit": 2}  # bytes of the two moments of a trained parameter


@dataclass(frozen=True)
class Forecast:
    """`seconds` and `least_bytes` are None if there is no basis for them.

    `trainings`: how many earlier ones the time follows; `available_bytes`: None where it is not
    known, as on a cluster.
    """

    steps: int
    seconds: float | None
    trainings: int
    least_bytes: float | None
    available_bytes: float | None

    @property
    def fits(self) -> bool:
        """False only if the lower bound exceeds the available memory."""
        if self.least_bytes is None or self.available_bytes is None:
            return True
        return self.least_bytes <= self.available_bytes


def forecast(
    settings: TrainSettings,
    groups: int,
    earlier: Iterable[Checkpoint],
    available_bytes: float | None,
) -> Forecast:
    """What a training with these settings on this many groups takes."""
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
    if parameters is not None and settings.fsdp == "off":
        least = (
            parameters * bytes_per_parameter(settings) * (2 if settings.encoders == "two" else 1)
        )
    return Forecast(steps, seconds, len(paces), least, available_bytes)


def bytes_per_parameter(settings: TrainSettings) -> float:
    """The least memory that a parameter takes: 16 bytes for AdamW in float32, much less with LoRA.

    Frozen weights of LoRA stay as they are stored (2 bytes or more; 4 bits quantized), `freeze` may
    leave nearly none to train.
    """
    weights = 4.0
    if settings.lora_rank:
        weights = 0.5 if settings.quantize == "4bit" else 2.0
    trained = 0 if settings.lora_rank or settings.freeze else 4 + MOMENTS[settings.optimizer]
    return weights + trained + (weights if settings.base_share else 0)


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
