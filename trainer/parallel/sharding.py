"""FSDP 2: every process holds a shard of the weights, their gradients and Adam's two moments.

Each layer's weights are gathered while it computes and freed afterwards; the gradients equal those
of DDP. The first process also has an ordinary copy in main memory, which after the training is the
model. Scoring is done by all processes with the sharded model. A state to resume from is unsharded:
all weights and moments, written by the first process.

Note: transformers' own FSDP setting is not used, because accelerate takes it on
GPUs alone and passes over it silently elsewhere; so the same code is tested with gloo on a CPU.
"""

import copy
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from trainer.parallel.processes import Processes

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

log = logging.getLogger("inf.train")
# Gathered into the first process's main memory, and scattered from there.
GATHERED = StateDictOptions(full_state_dict=True, cpu_offload=True)
SCATTERED = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
# Without frozen weights, which every process has from the base model.
SCATTERED_PART = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, strict=False)


class Sharded:
    """A model with sharded weights, and the way back.

    Every process must call every method; those that read and write use the first process's values.
    """

    def __init__(
        self, model: "SentenceTransformer", processes: Processes, *, bf16: bool = False
    ) -> None:
        """bf16: gather weights and compute in bfloat16; shards, reduced gradients and moments stay
        float32.
        """
        self.model, self.processes = model, processes
        device = model.device
        self.plain: SentenceTransformer | None = None
        if processes.is_first:  # copied in main memory: the GPU never holds two whole models
            self.plain = copy.deepcopy(model.cpu())
            model.to(device)
        policy = (
            MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
            if bf16
            else MixedPrecisionPolicy()
        )
        mesh = init_device_mesh(device.type, (processes.count,))
        for layer in _layers(model):
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        shares = [weights for weights in model.parameters() if isinstance(weights, DTensor)]
        here = sum(weights.to_local().numel() for weights in shares)
        whole = sum(weights.numel() for weights in model.parameters())
        log.info("FSDP: %d of %d weights are in this process", here, whole)

    def weights(self) -> dict[str, Any]:
        """All weights by name in the first process; empty in the others."""
        return get_model_state_dict(self.model, options=GATHERED)

    def moments(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """The optimizer's whole state in the first process; empty in the others."""
        return get_optimizer_state_dict(self.model, optimizer, options=GATHERED)

    def load_weights(self, state: dict[str, Any]) -> None:
        """Scatter the first process's trained weights."""
        set_model_state_dict(self.model, state, options=SCATTERED_PART)

    def load_moments(self, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        """Scatter the first process's optimizer state."""
        set_optimizer_state_dict(self.model, optimizer, state, options=SCATTERED)

    @contextmanager
    def encoding(self) -> "Iterator[None]":
        """Within it every process can encode texts, the same ones in the same order.

        No process holds the whole model: layers are gathered one after another, as in training.
        """
        model: Any = self.model
        contexts = ExitStack()

        # `encode` computes in inference mode, whose tensors FSDP could not write to in training.
        def leave_inference_mode(*_: Any) -> None:
            contexts.enter_context(torch.inference_mode(False))
            contexts.enter_context(torch.no_grad())

        def return_to_it(*_: Any) -> None:
            contexts.close()

        hooks = [  # around FSDP's own hooks
            model.register_forward_pre_hook(leave_inference_mode, prepend=True),
            model.register_forward_hook(return_to_it, always_call=True),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
            model.reshard()  # else the next step would compute with old weights

    def restore(self) -> None:
        """The trained weights into the first process's model, which is an ordinary one again."""
        state = self.weights()
        if self.plain is None:
            return
        self.plain.load_state_dict(state)
        # The same object for everybody who holds it, without FSDP's hooks and classes. It stays in
        # main memory: scoring is over, and one GPU may be too small for it.
        self.model.__class__ = self.plain.__class__
        self.model.__dict__ = self.plain.__dict__


def clip_gradients(parameters: Any, max_norm: float, kind: float = 2.0) -> torch.Tensor:
    """Clip by the norm over all shards; returns that norm as a plain tensor."""
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type=kind)
    return norm.full_tensor() if isinstance(norm, DTensor) else norm


def _layers(model: "SentenceTransformer") -> list[torch.nn.Module]:
    """The layers that transformers keeps in one piece."""
    whole = {
        name
        for module in model.modules()
        if isinstance(module, PreTrainedModel)
        for name in module._no_split_modules or ()
    }
    return [module for module in model.modules() if type(module).__name__ in whole]
