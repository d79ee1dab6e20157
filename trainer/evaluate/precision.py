"""How a model computes while it is scored on a GPU: TF32 products, bfloat16 where it trains so."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch


@contextmanager
def scoring_precision(device: torch.device, *, bf16: bool = False) -> Iterator[None]:
    """Within it matrix products on CUDA are TF32, or bfloat16 by autocast; elsewhere no change.

    Not run on a GPU in this project's tests.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with torch.autocast("cuda", dtype=torch.bfloat16) if bf16 else nullcontext():
            yield
    finally:
        torch.set_float32_matmul_precision(before)
