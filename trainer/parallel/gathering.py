"""Embeddings of all processes in each of them, with gradients.

Every process computes the whole loss from the gathered embeddings (N, d), so each already holds the
gradient of all of them: backward takes this process's own rows, and no message is sent. They are
multiplied by the number of processes, because DDP and FSDP divide the sum of the processes' weight
gradients by it.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, own)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        count = dist.get_world_size()
        return gradient.chunk(count)[dist.get_rank()] * count


def gather(embeddings: Tensor, rows: int) -> Tensor:
    """(texts of this process, d) → (processes × rows, d); shares are filled up with zeros."""
    own = embeddings[:rows]
    filled = torch.nn.functional.pad(own, (0, 0, 0, rows - len(own)))
    gathered: Tensor = _Gather.apply(filled.contiguous())  # type: ignore[no-untyped-call]
    return gathered
