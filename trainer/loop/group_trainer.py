"""sentence-transformers' trainer with our weights files, learning-rate schedule and sharding.

Note: with `max_seconds` the learning rate also falls with the clock (whichever of
steps and time is further), so that a training that is cut short has still decayed to zero; such a
training is not repeatable to the bit. Without it, it is.
"""

import math
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from sentence_transformers import SentenceTransformerTrainer
from sentence_transformers.base.sampler import SetEpochMixin
from torch.distributed.tensor import DTensor
from torch.utils.data import BatchSampler

from db.errors import BadInput
from trainer.data.groups import Group
from trainer.model.weights import (
    load_trained_state,
    read_weights,
    require_trained,
    trained_state,
    write_weights,
)
from trainer.parallel.processes import ALONE
from trainer.parallel.sharding import Sharded, clip_gradients

OPTIMIZER, SCHEDULER = "optimizer.pt", "scheduler.pt"  # as the stock trainer names them


# The order of groups under a curriculum: those the validator was most sure of come first.
class ConfidentFirst(SetEpochMixin, BatchSampler):
    """Batches of places. The first epoch goes from the most to the least confident group, later
    ones are in random order; equal confidences too, and groups without one come last.

    The order depends on seed and epoch alone, so a training that goes on after a kill finds it.
    """

    def __init__(self, groups: Sequence[Group], batch_size: int, seed: int) -> None:
        self.confidence = [group.confidence for group in groups]
        met: Counter[tuple[str, ...]] = Counter()
        self.copy: list[int] = []
        for group in groups:
            self.copy.append(met[group.texts])
            met[group.texts] += 1
        self.batch_size, self.seed, self.epoch = batch_size, seed, 0

    def __iter__(self) -> Iterator[list[int]]:
        order = list(range(len(self.confidence)))
        random.Random(f"{self.seed} {self.epoch}").shuffle(order)
        if self.epoch == 0:
            order.sort(key=lambda place: (self.copy[place], _doubt(self.confidence[place])))
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]

    def __len__(self) -> int:
        return -(-len(self.confidence) // self.batch_size)


def _doubt(confidence: float | None) -> tuple[bool, float]:
    return confidence is None, -(confidence or 0.0)


class GroupTrainer(SentenceTransformerTrainer):
    """The stock trainer with our weights files, schedule and sharding; writes no model card."""

    deadline_seconds = 0.0
    began = 0.0
    processes = ALONE
    sharded: Sharded | None = None
    order: ConfidentFirst | None = None

    def get_batch_sampler(self, *arguments: Any, **options: Any) -> Any:
        """The curriculum's order where there is one."""
        return self.order or super().get_batch_sampler(*arguments, **options)

    def create_accelerator_and_postprocess(self) -> None:
        super().create_accelerator_and_postprocess()
        if any(isinstance(weights, DTensor) for weights in self.model.parameters()):
            # The weights are sharded already: no DDP copies on top of that.
            self.accelerator.prepare_model = lambda model, **_: model
            self.accelerator.clip_grad_norm_ = clip_gradients

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Ours is written at the end; the stock one would search the Hub and embed examples."""

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """Every process calls it; the first writes."""
        whole = self.sharded.weights() if self.sharded else self.model.state_dict()
        if not self.processes.is_first:
            return
        state = trained_state(self.model, whole)
        if broken := [name for name, value in state.items() if not value.isfinite().all()]:
            raise BadInput(
                f"the weights {broken[0]} are NaN or infinite after step {self.state.global_step}: "
                "this state was not saved, the one before it was",
                "Lower learning_rate or raise temperature",
                code="weights_not_finite",
            )
        write_weights(state, Path(str(output_dir or self.args.output_dir)))

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if not self.sharded:
            super()._save_optimizer_and_scheduler(output_dir)
            return
        state = self.sharded.moments(_inner(self.optimizer))
        if self.processes.is_first:
            torch.save(state, Path(output_dir) / OPTIMIZER)
            torch.save(self._scheduler.state_dict(), Path(output_dir) / SCHEDULER)

    def _save_rng_state(self, output_dir: str) -> None:
        """Every process its own; the state is complete only when all have written."""
        super()._save_rng_state(output_dir)
        if self.processes.count > 1:
            dist.barrier()

    @property
    def _scheduler(self) -> torch.optim.lr_scheduler.LambdaLR:
        scheduler = self.lr_scheduler
        assert scheduler is not None  # made before the first step
        return scheduler

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        folder = Path(resume_from_checkpoint)
        if self.sharded:
            state = read_weights(folder) if self.processes.is_first else {}
            if self.processes.is_first:
                require_trained(self.model, state)
            self.sharded.load_weights(state)
        else:
            load_trained_state(self.model, read_weights(folder))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if not self.sharded or checkpoint is None:
            super()._load_optimizer_and_scheduler(checkpoint)
            return

        def read(name: str) -> Any:
            return torch.load(Path(checkpoint) / name, map_location="cpu", weights_only=True)

        moments = read(OPTIMIZER) if self.processes.is_first else {}
        self.sharded.load_moments(_inner(self.optimizer), moments)
        self._scheduler.load_state_dict(read(SCHEDULER))

    def get_train_dataloader(self) -> Any:
        """Every process gets the whole batch (`trainer.parallel.processes`), not a part of it."""
        if self.processes.count == 1:
            return super().get_train_dataloader()
        from accelerate.data_loader import prepare_data_loader

        loader = self._build_dataloader(
            self.train_dataset, self.args.train_batch_size, dataset_kind="train"
        )
        self._train_dataloader = prepare_data_loader(
            loader,
            self.args.device,
            num_processes=1,
            process_index=0,
            put_on_device=True,
            use_seedable_sampler=self.accelerator.use_seedable_sampler,
            data_seed=self.accelerator.dataloader_config.data_seed,
        )
        return self._train_dataloader

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """By the settings in steps and, where there is a limit, in time too."""
        if self.deadline_seconds == 0:
            return super().create_scheduler(num_training_steps, optimizer)

        warmup = self.args.get_warmup_steps(num_training_steps)

        def share_left(step: int) -> float:
            used = (time.monotonic() - self.began) / self.deadline_seconds if self.began else 0.0
            used = self.processes.agree(used)  # the weights must stay equal
            done = max(step / num_training_steps, used)
            return rate_share(self.args.lr_scheduler_type, done, step, warmup)

        stepped: Any = optimizer or self.optimizer
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(stepped, share_left)
        return self.lr_scheduler


def _inner(optimizer: Any) -> torch.optim.Optimizer:
    """PyTorch's own optimizer, inside accelerate's."""
    inner: torch.optim.Optimizer = getattr(optimizer, "optimizer", optimizer)
    return inner


def rate_share(schedule: str, done: float, step: int, warmup: int) -> float:
    """The share of the learning rate at a step, when the share `done` of the training is over."""
    left = max(0.0, 1.0 - done)
    falling = {"linear": left, "cosine": 0.5 * (1.0 - math.cos(math.pi * left))}
    return falling.get(schedule, 1.0) * min(1.0, (step + 1) / (warmup + 1))
