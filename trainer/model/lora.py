"""LoRA: training low-rank adapters of the linear layers instead of the weights themselves.

y = W x + (α/r) · B A x, with W frozen, A (r, in) random and B (out, r) zero: training starts from
the model as it is (Hu et al. 2021). A and B are float32; W keeps the number type it is stored in.
Before a model is saved the additions are merged into W: a checkpoint is an ordinary model that
loads without us, and without an adapter library.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from db.errors import BadInput

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

UNIT_ROWS = 1024  # unit vectors at a time, whose products are the weights


class LoraLinear(nn.Module):
    """A frozen linear layer with a trained low-rank addition."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float, dropout: float = 0.0) -> None:
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.dropout = nn.Dropout(dropout)
        base.requires_grad_(False)
        # float32 whatever the frozen weights are: bfloat16 would lose most updates.
        like: dict[str, Any] = {"device": base.weight.device, "dtype": torch.float32}
        self.down = nn.Parameter(torch.empty(rank, base.in_features, **like))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, **like))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        low = nn.functional.linear(self.dropout(x.to(self.down.dtype)), self.down)  # (..., r)
        whole: Tensor = self.base(x)
        return whole + (self.scale * nn.functional.linear(low, self.up)).to(whole.dtype)

    def merged(self) -> nn.Linear:
        """The linear layer with the addition inside."""
        base = unquantized(self.base)
        with torch.no_grad():
            base.weight += self.scale * (self.up @ self.down)
        return base


def unquantized(base: nn.Linear) -> nn.Linear:
    """The layer with float32 weights; itself unless bitsandbytes keeps it in 4 bits.

    The weights are read off the layer's own products with the unit vectors, which are the numbers
    it computed with: how bitsandbytes packs them depends on the device.
    """
    if getattr(base.weight, "quant_state", None) is None:
        return base
    bias = base.bias
    plain = nn.Linear(base.in_features, base.out_features, bias=bias is not None)
    with torch.no_grad():
        rows = torch.eye(base.in_features, dtype=torch.bfloat16, device=base.weight.device)
        base.register_parameter("bias", None)  # products alone: a sum would be rounded
        columns = [base(part).float() for part in rows.split(UNIT_ROWS)]
        base.register_parameter("bias", bias)
    plain.weight = nn.Parameter(torch.cat(columns).T.contiguous())
    if bias is not None:
        plain.bias = nn.Parameter(bias.detach().float())
    return plain


def attach_lora(
    model: nn.Module,
    *,
    rank: int,
    alpha: float,
    seed: int,
    targets: Sequence[str] = (),
    dropout: float = 0.0,
) -> int:
    """Freeze the model, add an adapter to every linear layer; returns how many weights train.

    targets: the last parts of the layers' names; empty: all. Raises BadInput where there is none.
    """
    model.requires_grad_(False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        found = [
            (parent, name, child)
            for parent in model.modules()
            for name, child in parent.named_children()
            if isinstance(child, nn.Linear)
            and not isinstance(parent, LoraLinear)
            and (not targets or name in targets)
        ]
        for parent, name, child in found:
            setattr(parent, name, LoraLinear(child, rank, alpha, dropout))
    missing = [target for target in targets if target not in {name for _, name, _ in found}]
    if missing or not found:
        layers = {
            name.rpartition(".")[2]
            for name, module in model.named_modules()
            if isinstance(module, nn.Linear) and not name.endswith(".base")
        }
        raise BadInput(
            f"lora_targets: the model has no linear layer {missing[0]!r}, there is "
            f"{', '.join(sorted(layers))}"
            if missing
            else "lora_rank: the model has no linear layer to add to"
        )
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def adapters_of(model: "SentenceTransformer") -> dict[str, Any]:
    """{"weights": {name in PEFT's layout: tensor}, "config": PEFT's adapter_config.json}."""
    weights: dict[str, Tensor] = {}
    targets: set[str] = set()
    rank, scale = 0, 0.0
    transformer: Any = model[0]
    for name, module in transformer.model.named_modules():
        if isinstance(module, LoraLinear):
            key = f"base_model.model.{name}"
            weights[f"{key}.lora_A.weight"] = module.down.detach().cpu().clone()
            weights[f"{key}.lora_B.weight"] = module.up.detach().cpu().clone()
            rank, scale = module.down.shape[0], module.scale
            targets.add(name.rpartition(".")[2])
    config = {
        "peft_type": "LORA",
        "task_type": "FEATURE_EXTRACTION",
        "r": rank,
        "lora_alpha": scale * rank,
        "target_modules": sorted(targets),
        "lora_dropout": 0.0,
        "bias": "none",
    }
    return {"weights": weights, "config": config}


def merge_lora(model: "SentenceTransformer") -> None:
    """Merge the adapters into the weights; the model then has its original modules.

    It is then float32 as a whole: a sum that is rounded to bfloat16 loses much of the update.
    """
    if not any(isinstance(module, LoraLinear) for module in model.modules()):
        return
    if not any(hasattr(weights, "quant_state") for weights in model.parameters()):
        model.float()  # those in 4 bits become float32 one by one
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, LoraLinear):
                setattr(parent, name, child.merged())
    for module in model.modules():
        if (quantizer := getattr(module, "hf_quantizer", None)) is not None:
            quantizer.remove_quantization_config(module)  # or it is saved with the weights
