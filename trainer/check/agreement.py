"""The eleven objectives on this device: losses and gradients of every way and precision.

Like is compared with like: a way (packed, by parts, cached) with the flat one of its own device and
precision, and the flat one with the CPU's in fp32. So the tolerance of a way is that of the order
of its sums, which a wrong mask exceeds, and not that of another number type, which hides one.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from db.shape import INF_IR
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
WAYS = ("packed", "by parts", "cached")
# (loss, gradient): of the whole gradient, relative to its norm. A wrong mask is found in fp32,
# where a right one has 2e-6 and the least wrong of those tried (a query's tokens see what comes
# after them) 0.012. In bf16 that is about the rounding of attention by parts, 0.029 on a CPU; a
# query that sees other queries has 0.2.
MAX_OF_WAY = {"fp32": (1e-4, 1e-3), "bf16": (2e-2, 5e-2)}
MAX_OF_FLAT = {"fp32": (1e-4, 1e-3), "bf16": (5e-2, 0.1)}  # bf16 on a CPU: 0.008 and 0.034


def check_objectives(part: Part) -> None:
    """Every objective: flat against the CPU's flat fp32, each way against flat."""
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
            for precision in ("fp32", "bf16"):
                flat = _gradient(models[device], objective, rows, "flat", bf16=precision == "bf16")
                where = f"{device.type}, flat"
                _compare(part, name, where, precision, wanted, flat, MAX_OF_FLAT[precision])
                for way in WAYS:
                    if way in ("packed", "by parts") and "I" not in objective.terms:
                        continue
                    found = _gradient(
                        models[device], objective, rows, way, bf16=precision == "bf16"
                    )
                    where = f"{device.type}, {way}"
                    _compare(part, name, where, precision, flat, found, MAX_OF_WAY[precision])


def _compare(
    part: Part,
    objective: str,
    way: str,
    precision: str,
    wanted: tuple[float, Tensor],
    found: tuple[float, Tensor],
    most: tuple[float, float],
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
        loss <= most[0] and gradient <= most[1],
        f"{objective}, {way}, {precision}: loss differs by {loss:.2g}, gradients by {gradient:.2g}",
    )


def _gradient(
    model: Any, objective: Objective, rows: list[dict[str, str]], way: str, *, bf16: bool
) -> tuple[float, Tensor]:
    """(loss, the gradient of all weights as one vector on the CPU)."""
    is_packed = way in ("packed", "by parts")
    batch = Collator(model, Template(), objective, packing=is_packed, shape=INF_IR)(rows)
    columns, tables = columns_of(batch, model.device)
    at_once = TEXTS_AT_ONCE if way == "cached" else 0
    loss = EmbeddingLoss(model, objective, temperature=0.05, texts_at_once=at_once, shape=INF_IR)
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
