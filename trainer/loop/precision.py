"""Whether activations are bfloat16: by the setting; `auto`: where the hardware gains by it.

On a CPU `auto` is measured first on a few groups of the first batch: whether the gradient is that
of float32, and whether a step takes less CPU time. What is used, and what was measured, is in the
training's result. A time is not the same twice: where two trainings must agree to the last digit
on a CPU with such units, `precision` is given.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from trainer.parallel.processes import ALONE, Processes

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

log = logging.getLogger("inf.train")
CPU_UNITS = ("amx_bf16", "avx512_bf16")
MEASURED_GROUPS = 4
# On four groups MiniLM has 0.9999 and 0.001, a tiny BERT with random weights 0.967 and 0.010.
MIN_COSINE, MAX_LOSS_DIFFERENCE = 0.95, 0.02
# Units are no promise: with AVX512-BF16 alone MiniLM's step took 1.3 times as long, with AMX half
# (0af61c2b:bench/cpu_precision.py, docs/experiments.md).
MAX_SECONDS_SHARE = 0.9  # a lesser gain is within what two measurements differ by


@dataclass(frozen=True)
class Precision:
    """The type of activations; measured on a CPU: the loss's relative difference from float32, the
    cosine of the gradients, and, where these are equal, the CPU seconds of a step in both."""

    used: str
    loss_difference: float | None = None
    gradient_cosine: float | None = None
    fp32_seconds: float | None = None
    bf16_seconds: float | None = None

    @property
    def is_equal(self) -> bool:
        """Whether bfloat16 was measured to be as good as float32; not so for NaN."""
        return (
            self.loss_difference is not None
            and self.gradient_cosine is not None
            and self.loss_difference <= MAX_LOSS_DIFFERENCE
            and self.gradient_cosine >= MIN_COSINE
        )

    @property
    def is_faster(self) -> bool:
        """Whether bfloat16 was measured to be clearly faster than float32."""
        return (
            self.fp32_seconds is not None
            and self.bf16_seconds is not None
            and self.bf16_seconds <= MAX_SECONDS_SHARE * self.fp32_seconds
        )


def uses_bf16(precision: str) -> bool:
    """auto: on a GPU with bfloat16 units, and without a GPU on a CPU with them (AMX, AVX512-BF16),
    where `measured_precision` decides.

    T4 and V100 emulate bfloat16, slower than float32, and so do CPUs without units.
    """
    if precision != "auto":
        return precision == "bf16"
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    found = torch.cpu.get_capabilities()
    return any(bool(found.get(name)) for name in CPU_UNITS)


def settled_precision(
    precision: str,
    model: "SentenceTransformer",
    compute: Callable[[], torch.Tensor],
    file: Path,
    processes: Processes,
) -> Precision:
    """The type that this training uses; every process must call it.

    compute: the loss of a few groups, the same at every call. file: keeps the choice, so that a
    training that goes on, on another CPU too, goes on in the same type.
    """
    known = json.loads(file.read_text()) if file.is_file() else None
    if (known := processes.agree(known)) is not None:
        return Precision(**known)
    found = measured_precision(precision, model, compute, processes)
    if processes.is_first:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(found)))
    return found


def measured_precision(
    precision: str,
    model: "SentenceTransformer",
    compute: Callable[[], torch.Tensor],
    processes: Processes = ALONE,
) -> Precision:
    """The type by the setting; `auto` on a CPU with units: by measuring. As `settled_precision`."""
    found = processes.agree(Precision("bf16" if uses_bf16(precision) else "fp32"))
    if precision != "auto" or model.device.type != "cpu" or found.used == "fp32":
        return found
    was_training = model.training
    found = processes.agree(_compared(model.eval(), compute))
    if found.is_equal:
        found = processes.agree(_timed(model.train(), compute, found))
    model.train(was_training)
    if not found.is_equal:
        log.warning(
            "bfloat16 differs from float32 on the first batch (loss by %.2g, gradients' cosine "
            "%.4f): this training is in float32",
            found.loss_difference,
            found.gradient_cosine,
        )
        return found
    chosen = replace(found, used="bf16" if found.is_faster else "fp32")
    log.info(
        "%s: a step of a few groups takes %.2g CPU s in bfloat16 and %.2g s in float32; the loss "
        "differs by %.2g, gradients' cosine %.5f",
        *(chosen.used, found.bf16_seconds, found.fp32_seconds),
        *(found.loss_difference, found.gradient_cosine),
    )
    return chosen


def _compared(model: "SentenceTransformer", compute: Callable[[], torch.Tensor]) -> Precision:
    """Loss and gradients of both types, without dropout."""
    losses, gradients = [], []
    for is_bf16 in (False, True):
        losses.append(float(_step(compute, is_bf16)))
        gradients.append([each.grad for each in model.parameters() if each.grad is not None])
        model.zero_grad(set_to_none=True)
    difference = abs(losses[1] - losses[0]) / max(abs(losses[0]), 1e-3)
    exact, rounded = gradients
    cosine = _dot(exact, rounded) / max((_dot(exact, exact) * _dot(rounded, rounded)) ** 0.5, 1e-30)
    return Precision("fp32", difference, cosine)


def _timed(
    model: "SentenceTransformer", compute: Callable[[], torch.Tensor], found: Precision
) -> Precision:
    """With the CPU seconds of the faster of two steps in either type, as in training.

    CPU time: other work on the machine lengthens it far less than the time on the clock.
    """
    seconds: dict[bool, list[float]] = {False: [], True: []}
    with torch.random.fork_rng(devices=[]):  # dropout draws numbers that the training must not miss
        for is_bf16 in (False, True, True, False):
            began = time.process_time()
            _step(compute, is_bf16)
            seconds[is_bf16].append(time.process_time() - began)
            model.zero_grad(set_to_none=True)
    return replace(found, fp32_seconds=min(seconds[False]), bf16_seconds=min(seconds[True]))


def _step(compute: Callable[[], torch.Tensor], is_bf16: bool) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16) if is_bf16 else nullcontext():
        loss = compute()
    loss.backward()
    return loss.detach()


def _dot(one: list[torch.Tensor], other: list[torch.Tensor]) -> float:
    """The inner product of two gradients, summed in float64: millions of float32 lose 1e-3."""
    return sum(
        float(a.double().flatten() @ b.double().flatten()) for a, b in zip(one, other, strict=True)
    )


@contextmanager
def as_saved(model: torch.nn.Module) -> Iterator[None]:
    """Within it the model computes as its saved weights will, and as the base model was scored.

    accelerate puts autocast around the trained model's `forward` and leaves it there: scored so,
    on a CPU, base and trained model would differ by their precision too.
    """
    autocast = model.__dict__.pop("forward", None)
    try:
        yield
    finally:
        if autocast is not None:
            model.__dict__["forward"] = autocast
