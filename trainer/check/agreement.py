"""The eleven objectives on this device against a CPU in fp32: losses and gradients, every way."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from trainer.check.material import random_groups
from trainer.check.report import Part
from trainer.data.batches import Collator
from trainer.loop.columns import columns_of
from trainer.loop.embedding_loss import EmbeddingLoss
from trainer.model import tree_attention
from trainer.model.packing import enable_packing
from trainer.model.tiny import build_tiny_model
from trainer.objectives.names import OBJECTIVES, Objective
from trainer.settings.template import Template

ROWS, TEXTS_AT_ONCE = 2, 4
WAYS = ("flat", "packed", "by parts", "cached")
# Of the whole gradient, relative to its norm; a bfloat16 has 8 bits, a sum of many is better.
MAX_LOSS = {"fp32": 1e-4, "bf16": 5e-2}
MAX_GRADIENT = {"fp32": 1e-3, "bf16": 0.3}


def check_objectives(part: Part) -> None:
    """Every objective, way and precision against the flat way on the CPU in fp32."""
    devices = [torch.device("cpu")]
    if torch.cuda.is_available():
        devices.append(torch.device("cuda"))
    else:
        part.skip("CUDA", "PyTorch sees no GPU: the ways are compared on the CPU")
    models = {device: build_tiny_model("tiny-random-qwen2").to(device) for device in devices}
    for model in models.values():
        enable_packing(model)
        model.train()
    rows = [group.row() for group in random_groups(ROWS)]
    for name, objective in OBJECTIVES.items():
        wanted = _gradient(models[devices[0]], objective, rows, "flat", bf16=False)
        for device in devices:
            for way in WAYS:
                if way in ("packed", "by parts") and "I" not in objective.terms:
                    continue
                for precision in ("fp32", "bf16"):
                    if (device.type, way, precision) == ("cpu", "flat", "fp32"):
                        continue
                    found = _gradient(
                        models[device], objective, rows, way, bf16=precision == "bf16"
                    )
                    _compare(part, name, f"{device.type}, {way}", precision, wanted, found)


def _compare(
    part: Part,
    objective: str,
    way: str,
    precision: str,
    wanted: tuple[float, Tensor],
    found: tuple[float, Tensor],
) -> None:
    loss = abs(found[0] - wanted[0]) / max(1.0, abs(wanted[0]))
    gradient = float((found[1] - wanted[1]).norm() / wanted[1].norm())
    part.add(
        objective=objective,
        way=way,
        precision=precision,
        loss=found[0],
        loss_difference=loss,
        gradient_difference=gradient,
    )
    part.require(
        loss <= MAX_LOSS[precision] and gradient <= MAX_GRADIENT[precision],
        f"{objective}, {way}, {precision}: loss differs by {loss:.2g}, gradients by {gradient:.2g}",
    )


def _gradient(
    model: Any, objective: Objective, rows: list[dict[str, str]], way: str, *, bf16: bool
) -> tuple[float, Tensor]:
    """(loss, the gradient of all weights as one vector on the CPU)."""
    is_packed = way in ("packed", "by parts")
    batch = Collator(model, Template(), objective, packing=is_packed)(rows)
    columns, tables = columns_of(batch, model.device)
    at_once = TEXTS_AT_ONCE if way == "cached" else 0
    loss = EmbeddingLoss(model, objective, temperature=0.05, texts_at_once=at_once)
    model.zero_grad()
    kind = model.device.type
    with _attention(way), torch.autocast(kind, torch.bfloat16) if bf16 else nullcontext():
        value = loss(columns, tables)
        if value.requires_grad:
            value.backward()
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    whole = torch.cat([each.flatten().float().cpu() for each in gradients])
    return float(value.detach()), whole


@contextmanager
def _attention(way: str) -> Iterator[None]:
    """Packed rows all under the mask, or all by parts."""
    before = tree_attention.MIN_SAVED
    tree_attention.MIN_SAVED = 0.0 if way == "by parts" else float("inf")
    try:
        yield
    finally:
        tree_attention.MIN_SAVED = before
