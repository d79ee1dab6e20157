"""All weights of a model, as it is being trained, in one safetensors file.

For states to resume from and the best so far, in work folders only: what is attached for training
(LoRA) is in it, and nothing has to be built again from a saved model. Checkpoints are whole models.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import load_file, save_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

FILE = "weights.safetensors"


def write_weights(state: "Mapping[str, Tensor]", folder: Path) -> None:
    """Write a model's state; tied weights are written once for each name."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: value.detach().cpu().clone() for name, value in state.items()}, folder / FILE)


def read_weights(folder: Path) -> "dict[str, Tensor]":
    """Read them back."""
    return load_file(folder / FILE)
