"""The share of the trained weights that a step changes, to notice updates lost to rounding.

A weight counts where its gradient is not zero (a token embedding that no text read stays for a
good reason). At most `SAMPLED` weights of each tensor are looked at, evenly spread.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

if TYPE_CHECKING:
    from collections.abc import Iterable

SAMPLED = 4096
EVERY_STEPS = 50
MIN_SHARE = 0.5


class MovedWeights:
    """Call `before` with gradients in place, then `after` the optimizer's step."""

    def __init__(self) -> None:
        self._seen: list[tuple[Tensor, int, Tensor, Tensor]] = []

    def before(self, weights: "Iterable[Tensor]") -> None:
        """Remember a sample of the weights that have a gradient."""
        self._seen = []
        for each in weights:
            if each.grad is None:
                continue
            stride = max(1, _local(each).numel() // SAMPLED)
            values = _sample(each, stride).clone()
            self._seen.append((each, stride, values, _sample(each.grad, stride) != 0))

    def after(self) -> float | None:
        """The share that moved, 0 to 1; None where no sampled weight had a gradient."""
        counts = [
            torch.stack([counted.sum(), (counted & (_sample(each, stride) != values)).sum()])
            for each, stride, values, counted in self._seen
        ]
        self._seen = []
        if not counts:
            return None
        total, moved = torch.stack(counts).sum(dim=0).tolist()
        return moved / total if total else None


def _local(tensor: Any) -> Tensor:
    """The tensor, or this process's shard of it."""
    local: Tensor = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return local.detach()


def _sample(tensor: Tensor, stride: int) -> Tensor:
    return _local(tensor).flatten()[::stride]
