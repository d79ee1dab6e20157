"""The weights of a model that its training changes, in one safetensors file.

For states to resume from and the best so far, in work folders only. What is frozen is read from the
base model again: with LoRA a state holds the adapters alone. Checkpoints are whole models.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import load_file, save_file

from db.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

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
