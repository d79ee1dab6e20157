"""The last layer's MLP for the tokens alone whose states are read.

Of a packed row only the last token of each segment becomes an embedding. Attention still needs
every token (its keys and values), but what the last layer's MLP makes of the others goes nowhere:
it is not computed, and their states leave the layer without it. With few layers that is much of
the work (a fifth, with four), with many little.

The layer is transformers' own, so this is done by hooks that stand while it computes. With
gradient checkpointing every layer is computed again in the backward pass, when the hooks are gone:
nothing is left out then.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn


@contextmanager
def read_tokens_alone(backbone: Any, read: Tensor) -> Iterator[None]:
    """Within it the last layer's MLP computes the tokens `read` (rows, length); the rest gets 0."""
    layers = getattr(backbone, "layers", None)
    mlp = getattr(layers[-1], "mlp", None) if layers else None
    if not isinstance(mlp, nn.Module) or backbone.is_activation_checkpointing:
        yield
        return

    def take(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (args[0][read][None], *args[1:])  # (1, tokens read, d)

    def put_back(_: nn.Module, args: Any, output: Tensor) -> Tensor:
        states = output.new_zeros(*read.shape, output.shape[-1])
        return states.index_put((read,), output[0])

    hooks = [mlp.register_forward_pre_hook(take), mlp.register_forward_hook(put_back)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
