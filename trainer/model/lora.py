"""LoRA by PEFT: training low-rank adapters of the linear layers instead of the weights themselves.

y = W x + (α/r) · B A x, with W frozen, A (r, in) random and B (out, r) zero: training starts from
the model as it is (Hu et al. 2021). A and B are float32; W keeps the number type it is stored in.
DoRA: y = m V x / ‖V‖ with V = W + (α/r) · B A, by rows; m is ‖W‖ at first and trained too, ‖V‖ has
no gradient (Liu et al. 2024, Eq. 5 and Section 4.3).
Before a model is saved the additions are merged into W: a checkpoint is an ordinary model that
loads without us, and without PEFT.

PEFT's own merging is not used: it would round the sum to the number type of W, or to 4 bits again.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from db.errors import BadInput
from trainer.model.doors import trained_part
from trainer.model.inference import has_instructed_door
from trainer.settings.template import INSTRUCTED

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from trainer.settings.template import Template

NAME = "default"  # PEFT's name of the only adapter
LINEAR = (nn.Linear, Conv1D)  # GPT-2's Conv1D is a linear layer with W transposed
UNIT_ROWS = 1024  # unit vectors at a time, whose products are the weights


def attach_lora(
    model: "SentenceTransformer",
    template: "Template",
    *,
    rank: int,
    alpha: float,
    seed: int,
    targets: Sequence[str] = (),
    dropout: float = 0.0,
    dora: bool = False,
) -> int:
    """Freeze what is trained, give its linear layers adapters; returns how many weights train.

    targets: the last parts of the layers' names; empty: all. template: of the texts that show which
    layers an adapter reaches: Mamba reads the weights of most of its own without calling them, and
    nothing reads a pooler. Raises BadInput where there is none.
    """
    from peft import LoraConfig, inject_adapter_in_model
    from peft.tuners.tuners_utils import cast_adapter_dtype

    part = trained_part(model)
    part.requires_grad_(False)
    layers = _called(model, part, template)
    short = [name.rpartition(".")[2] for name in layers]
    if missing := [target for target in targets if target not in short]:
        raise BadInput(
            f"lora_targets: the model has no linear layer {missing[0]!r} that an adapter reaches, "
            f"there is {', '.join(sorted(set(short)))}",
            "name one of these",
            code="lora_target_unknown",
        )
    chosen = [
        name for name, last in zip(layers, short, strict=True) if not targets or last in targets
    ]
    if not chosen:
        raise BadInput(
            "lora_rank: the model has no linear layer to add to",
            "Leave out lora_rank",
            code="lora_layers_missing",
        )
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,  # type: ignore[arg-type]  # PEFT divides it
        lora_dropout=dropout,
        target_modules=chosen,
        use_dora=dora,
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "fan_in_fan_out")  # PEFT sets it by the layer's kind
        torch.manual_seed(seed)
        inject_adapter_in_model(config, part)
    # float32 whatever the frozen weights are: bfloat16 would lose most updates.
    cast_adapter_dtype(part, NAME)
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def adapted_layers(model: nn.Module) -> dict[str, Any]:
    """PEFT's layers by the names of the layers that they wrap."""
    from peft.tuners.lora import LoraLayer

    return {name: layer for name, layer in model.named_modules() if isinstance(layer, LoraLayer)}


def adapters_of(model: "SentenceTransformer") -> dict[str, Any]:
    """{"weights": {name in PEFT's layout: tensor}, "config": PEFT's adapter_config.json}."""
    trained: Any = trained_part(model)
    layers = adapted_layers(trained[0].model)
    weights: dict[str, Tensor] = {}
    for name, layer in layers.items():
        for part in ("lora_A", "lora_B"):
            trained = getattr(layer, part)[NAME].weight
            weights[f"base_model.model.{name}.{part}.weight"] = trained.detach().cpu().clone()
        if (magnitude := _magnitude(layer)) is not None:
            named = f"base_model.model.{name}.lora_magnitude_vector"
            weights[named] = magnitude.detach().cpu().clone()
    one: Any = next(iter(layers.values()))
    config = {
        "peft_type": "LORA",
        "task_type": "FEATURE_EXTRACTION",
        "r": one.r[NAME],
        "lora_alpha": one.lora_alpha[NAME],
        # whole names: "dense" alone would be the pooler's too, which no adapter reaches
        "target_modules": sorted(layers),
        "fan_in_fan_out": one.fan_in_fan_out,
        "use_dora": _magnitude(one) is not None,
        "lora_dropout": 0.0,
        "bias": "none",
    }
    return {"weights": weights, "config": config}


def merge_lora(model: "SentenceTransformer") -> None:
    """Merge the adapters into the weights; the model then has its original modules.

    What was trained is float32 then: a sum that is rounded to bfloat16 loses much of the update.
    A base model that is kept beside it stays as it is stored.
    """
    if not (layers := adapted_layers(model)):
        return
    if not any(hasattr(weights, "quant_state") for weights in model.parameters()):
        trained_part(model).float()  # those in 4 bits become float32 one by one
    for name, layer in layers.items():
        base = unquantized(layer.get_base_layer())
        with torch.no_grad():
            base.weight += layer.get_delta_weight(NAME)
            if (magnitude := _magnitude(layer)) is not None:
                rows = base.weight.T if isinstance(base, Conv1D) else base.weight
                rows *= (magnitude / torch.linalg.norm(rows, dim=1))[:, None]
        model.set_submodule(name, base)
    for module in model.modules():
        if (quantizer := getattr(module, "hf_quantizer", None)) is not None:
            quantizer.remove_quantization_config(module)  # or it is saved with the weights


def _magnitude(layer: Any) -> Tensor | None:
    """DoRA's lengths of the rows (out,); None without DoRA."""
    vectors: Any = layer.lora_magnitude_vector
    return vectors[NAME].weight if NAME in vectors else None


def unquantized(base: Any) -> Any:
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


def _called(model: "SentenceTransformer", part: nn.Module, template: "Template") -> list[str]:
    """Names of the part's linear layers whose output an embedding depends on, in their order."""
    reached: set[str] = set()

    def mark(name: str, output: Tensor) -> Tensor:
        start = torch.zeros((), dtype=output.dtype, device=output.device, requires_grad=True)
        traced = output + start  # no leaf: what follows may change it in place
        traced.register_hook(lambda _: reached.add(name))
        return traced

    hooks = [
        module.register_forward_hook(lambda _, __, output, name=name: mark(name, output))
        for name, module in part.named_modules()
        if isinstance(module, LINEAR) and not _is_read_by_a_kernel(part, name)
    ]
    instructed = template.apply("in metres", "how long")
    texts = [("query", instructed), ("document", "it")]
    texts += [(INSTRUCTED, instructed)] if has_instructed_door(model) else []
    is_training = model.training
    model.eval()
    try:
        for task, text in texts:
            features = model.preprocess([text], task=task)
            features = {
                key: value.to(model.device) if isinstance(value, Tensor) else value
                for key, value in features.items()
            }
            with torch.enable_grad():
                found = model(features, task=task)["sentence_embedding"].float()
            if found.requires_grad:
                found.sum().backward()
    finally:
        model.train(is_training)
        for hook in hooks:
            hook.remove()
    return [name for name, _ in part.named_modules() if name in reached]


def _is_read_by_a_kernel(model: nn.Module, name: str) -> bool:
    """Whether a state-space layer's kernel takes the layer's weights where it is installed."""
    parent, _, last = name.rpartition(".")
    return last == "out_proj" and hasattr(model.get_submodule(parent), "A_log")
