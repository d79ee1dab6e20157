"""LoRA: training low-rank adapters of the linear layers instead of the weights themselves.

y = W x + (α/r) · B A x, with W frozen, A (r, in) random and B (out, r) zero: training starts from
the model as it is (Hu et al. 2021). A and B are float32; W keeps the number type it is stored in.
Before a model is saved the additions are merged into W: a checkpoint is an ordinary model that
loads without us, and without an adapter library.
"""

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from db.errors import BadInput

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class LoraLinear(nn.Module):
    """A frozen linear layer with a trained low-rank addition."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.base, self.scale = base, alpha / rank
        base.requires_grad_(False)
        # float32 whatever the frozen weights are: bfloat16 would lose most updates.
        like: dict[str, Any] = {"device": base.weight.device, "dtype": torch.float32}
        self.down = nn.Parameter(torch.empty(rank, base.in_features, **like))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, **like))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        low = nn.functional.linear(x.to(self.down.dtype), self.down)  # (..., r)
        whole: Tensor = self.base(x)
        return whole + (self.scale * nn.functional.linear(low, self.up)).to(whole.dtype)

    def merged(self) -> nn.Linear:
        """The linear layer with the addition inside."""
        with torch.no_grad():
            self.base.weight += self.scale * (self.up @ self.down)
        return self.base


def attach_lora(model: "SentenceTransformer", *, rank: int, alpha: float, seed: int) -> int:
    """Freeze the model, add an adapter to every linear layer; returns how many weights train.

    Raises BadInput for a model without linear layers.
    """
    model.requires_grad_(False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        found = [
            (parent, name, child)
            for parent in model.modules()
            for name, child in parent.named_children()
            if isinstance(child, nn.Linear) and not isinstance(parent, LoraLinear)
        ]
        for parent, name, child in found:
            setattr(parent, name, LoraLinear(child, rank, alpha))
    if not found:
        raise BadInput("lora_rank: the model has no linear layer to add to")
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def merge_lora(model: "SentenceTransformer") -> None:
    """Merge the adapters into the weights; the model then has its original modules.

    It is then float32 as a whole: a sum that is rounded to bfloat16 loses much of the update.
    """
    if not any(isinstance(module, LoraLinear) for module in model.modules()):
        return
    model.float()
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, LoraLinear):
                setattr(parent, name, child.merged())
