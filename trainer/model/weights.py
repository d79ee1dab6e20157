"""The weights of a model that its training changes, in one safetensors file.

For states to resume from and the best so far, in work folders only. What is frozen is read from the
base model again: with LoRA a state holds the adapters alone. Checkpoints are whole models.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from db.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sentence_transformers import SentenceTransformer
    from torch import Tensor

FILE = "weights.safetensors"


def trained_state(model: "nn.Module", state: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
    """Of a model's state what is not frozen: weights that are trained, and buffers."""
    weights = model.named_parameters(remove_duplicate=False)
    changing = {name for name, each in weights if each.requires_grad}
    changing |= {name for name, _ in model.named_buffers(remove_duplicate=False)}
    return {name: value for name, value in state.items() if name in changing}


def load_trained_state(model: "nn.Module", state: "Mapping[str, Tensor]") -> None:
    """Put it back; what it holds besides, as states once held frozen weights, is left out.

    Raises BadInput where a trained weight is missing.
    """
    require_trained(model, state)
    model.load_state_dict(state, strict=False)


def require_trained(model: "nn.Module", state: "Mapping[str, Tensor]") -> None:
    """Raise BadInput where the state lacks a weight that is trained."""
    if missing := trained_state(model, model.state_dict()).keys() - state.keys():
        raise BadInput(
            f"the state to resume from has no {min(missing)}: the base model, this program or a "
            "library changed since",
            "Start the training anew",
            code="resume_state_incomplete",
        )


def write_weights(state: "Mapping[str, Tensor]", folder: Path) -> None:
    """Write a model's state; tied weights are written once for each name."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: value.detach().cpu().clone() for name, value in state.items()}, folder / FILE)


def read_weights(folder: Path) -> "dict[str, Tensor]":
    """Read them back."""
    return load_file(folder / FILE)


# Weights between a base model's and the trained ones (WiSE-FT, Wortsman et al. 2022, Eq. 1).
#
# Training moves weights away from what the base model retrieved well without instructions; a part
# of the way back gives most of that again and keeps much of what was learnt.
Weights = dict[str, torch.Tensor]


def copy_weights(model: nn.Module) -> Weights:
    """A copy of the weights, on their device: by name, floating point only."""
    state = model.state_dict()
    return {name: value.clone() for name, value in state.items() if value.is_floating_point()}


@torch.no_grad()
def mix_in(model: nn.Module, base: Weights, share: float) -> None:
    """In place: share * base + (1 - share) * trained, weight by weight.

    The model has the modules it had when `base` was copied (LoRA merged). What training added and
    the base model has not keeps its trained value.
    """
    for name, trained in model.state_dict().items():
        if name in base:
            trained.lerp_(base[name].to(trained), share)


# Which number type a model's weights are stored in, and which they are trained in.
#
# Weights that are trained are float32 under every `precision`: at learning rates of fine-tuning
# most updates are smaller than half a step of bfloat16 and are lost (2-layer MiniLM, 120 steps:
# loss 1.84 → 0.78 in float32, 1.96 → 1.53 in bfloat16).
# Names of safetensors → names of PyTorch.
STORED = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def stored_dtype(source: str) -> str | None:
    """The number type of the weights in a folder, or of a downloaded model; None if unknown."""
    from huggingface_hub import try_to_load_from_cache
    from safetensors import safe_open

    folder = Path(source).expanduser()
    if folder.is_dir():
        # Not below: a second encoder or a Dense layer may lie there.
        files = sorted(folder.glob("*.safetensors")) or sorted(folder.rglob("*.safetensors"))
    else:
        found = try_to_load_from_cache(source, "model.safetensors")
        files = [Path(found)] if isinstance(found, str) else []
    for file in files:
        with safe_open(file, framework="numpy") as weights:
            for name in weights.keys():  # noqa: SIM118 - not a mapping
                kind = weights.get_slice(name).get_dtype()
                if kind in STORED:
                    return STORED[kind]
    return None


def describe_dtypes(model: "SentenceTransformer", source: str) -> dict[str, str]:
    """Number types by name: of the trained weights, of the frozen ones, of the stored model."""
    found = {}
    for name, is_trained in (("trained", True), ("frozen", False)):
        kinds = {
            str(weights.dtype).removeprefix("torch.")
            for weights in model.parameters()
            if weights.requires_grad is is_trained
        }
        if kinds:
            found[name] = ", ".join(sorted(kinds))
    stored = stored_dtype(source)
    return found | ({"stored": stored} if stored else {})
