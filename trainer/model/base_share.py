"""Weights between a base model's and the trained ones (WiSE-FT, Wortsman et al. 2022, Eq. 1).

Training moves weights away from what the base model retrieved well without instructions; a part of
the way back gives most of that again and keeps much of what was learnt.
"""

import torch
from torch import nn

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
