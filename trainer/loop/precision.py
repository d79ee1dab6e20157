"""Whether activations are bfloat16: by the setting; `auto`: where the hardware has units for it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def uses_bf16(precision: str) -> bool:
    """auto: on a GPU with bfloat16 units, and without a GPU on a CPU with them (AMX).

    T4 and V100 emulate bfloat16, slower than float32, and so do CPUs without AMX.
    """
    if precision != "auto":
        return precision == "bf16"
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


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
