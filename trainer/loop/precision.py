"""Whether activations are bfloat16: by the setting; `auto`: where the hardware has units for it.

On a CPU `auto` is measured first: the gradient of a few groups of the first batch in both types.
What is used, and how much it differed, is in the training's result.
"""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from trainer.parallel.processes import Processes

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

log = logging.getLogger("inf.train")
CPU_UNITS = ("amx_bf16", "avx512_bf16")
MEASURED_GROUPS = 4
# On four groups MiniLM has 0.9999 and 0.001, a tiny BERT with random weights 0.967 and 0.010.
MIN_COSINE, MAX_LOSS_DIFFERENCE = 0.95, 0.02


@dataclass(frozen=True)
class Precision:
    """The type of activations; measured on a CPU: the loss's relative difference from float32, and
    the cosine of the gradients."""

    used: str
    loss_difference: float | None = None
    gradient_cosine: float | None = None

    @property
    def is_equal(self) -> bool:
        """Whether bfloat16 was measured to be as good as float32; not so for NaN."""
        return (
            self.loss_difference is not None
            and self.gradient_cosine is not None
            and self.loss_difference <= MAX_LOSS_DIFFERENCE
            and self.gradient_cosine >= MIN_COSINE
        )


def uses_bf16(precision: str) -> bool:
    """auto: on a GPU with bfloat16 units, and without a GPU on a CPU with them (AMX, AVX512-BF16).

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
    found = Precision("bf16" if uses_bf16(precision) else "fp32")
    if precision == "auto" and model.device.type == "cpu":
        found = processes.agree(found)
        if found.used == "bf16":
            found = processes.agree(_measured(model, compute))
    if processes.is_first:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(found)))
    return found


def _measured(model: "SentenceTransformer", compute: Callable[[], torch.Tensor]) -> Precision:
    """bfloat16 where loss and gradients are those of float32, without dropout."""
    was_training = model.training
    model.eval()
    losses, gradients = [], []
    for is_bf16 in (False, True):
        with torch.autocast("cpu", torch.bfloat16) if is_bf16 else nullcontext():
            loss = compute()
        loss.backward()
        gradients.append([each.grad for each in model.parameters() if each.grad is not None])
        losses.append(float(loss.detach()))
        model.zero_grad(set_to_none=True)
    model.train(was_training)
    difference = abs(losses[1] - losses[0]) / max(abs(losses[0]), 1e-3)
    exact, rounded = gradients
    cosine = _dot(exact, rounded) / max((_dot(exact, exact) * _dot(rounded, rounded)) ** 0.5, 1e-30)
    found = Precision("bf16", difference, cosine)
    if found.is_equal:
        log.info("bfloat16: loss differs by %.2g, gradients' cosine %.5f", difference, cosine)
        return found
    log.warning(
        "bfloat16 differs from float32 on the first batch (loss by %.2g, gradients' cosine %.4f): "
        "this training is in float32",
        difference,
        cosine,
    )
    return Precision("fp32", difference, cosine)


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
