"""One process of a test: `python tests/one_gradient.py gradient|train FOLDER [STEP]`.

`gradient` writes loss and gradients of one batch to FOLDER, alone or among ranks; `train` prints
the sha256 of the weights, or kills itself in STEP.
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor

from db.shape import INF_IR
from trainer.check.material import random_groups
from trainer.loop.embedding_loss import EmbeddingLoss, columns_of
from trainer.loop.fitting import fit
from trainer.loop.packing_check import make_collator
from trainer.model.backbone import load_backbone
from trainer.parallel.processes import ALONE, Processes, count_from_environment, joined_group
from trainer.settings.settings import TrainSettings, parse_settings

STEPS = 4


def tiny_settings(**more: Any) -> TrainSettings:
    """A tiny decoder with the objective that has two terms and packs; fp32 for equal digits."""
    return parse_settings(
        {
            **{"base_model": "tiny-random-qwen2", "objective": "P,I:multi", "precision": "fp32"},
            **{"rows_per_batch": 4, "max_steps": STEPS, "save_steps": 1, "held_out": 0},
            **{"learning_rate": 1e-3, "dropout": 0, "prefetch": "off", **more},
        }
    )


def gradient_of(
    model: Any, settings: TrainSettings, processes: Processes, *, ddp: bool = False
) -> tuple[float, dict[str, Tensor]]:
    """(loss, gradients by name on the CPU) of one batch.

    ddp: inside DDP, which is gone on return: a process group that ends before it does hangs.
    """
    wrapped: Any = None
    if ddp:
        wrapped = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
    groups = random_groups(settings.rows_per_batch)
    collator = make_collator(model, groups, settings, processes)
    columns, tables = columns_of(collator([group.row() for group in groups]), model.device)
    loss = EmbeddingLoss(
        wrapped or model, settings.parsed_objective, temperature=0.05, shape=INF_IR
    )
    value = loss(columns, tables)
    value.backward()
    found = {
        name: _whole(weights.grad).float().cpu()
        for name, weights in model.named_parameters()
        if weights.grad is not None
    }
    return float(value.detach()), found


def train_once(folder: Path, kill_at: int = 0) -> str:
    """Train from the newest state in FOLDER/work; the sha256 of the weights.

    kill_at: this process kills itself in that step.
    """
    settings = tiny_settings()
    model = load_backbone(settings)

    def stream(step: int, values: Mapping[str, float]) -> None:
        # The state of the step before is on the disk: this one's is written after its numbers.
        if values and step == kill_at:
            psutil.Process().kill()

    fit(
        model,
        random_groups(12),
        settings,
        folder / "work",
        report=lambda *_: None,
        stream=stream,
    )
    whole = hashlib.sha256()
    for name, weights in sorted(model.state_dict().items()):
        whole.update(name.encode() + weights.detach().cpu().contiguous().numpy().tobytes())
    return whole.hexdigest()


def write_gradient(folder: Path) -> None:
    """Loss and gradients as `gradient.pt` in the folder, by the first rank."""
    count = count_from_environment(os.environ)
    with joined_group(count) if count > 1 else nullcontext(ALONE) as processes:
        settings = tiny_settings()
        model = load_backbone(settings).train()
        found = gradient_of(model, settings, processes, ddp=processes.count > 1)
        if processes.is_first:
            torch.save(found, folder / "gradient.pt")


def _whole(gradient: Any) -> Tensor:
    """The gradient, or all shards of it."""
    whole: Tensor = gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient
    return whole.detach()


if __name__ == "__main__":
    task, place, *rest = sys.argv[1:]
    if task == "gradient":
        write_gradient(Path(place))
    else:
        sys.stdout.write(train_once(Path(place), int(rest[0]) if rest else 0) + "\n")
