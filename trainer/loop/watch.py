"""What happens besides the steps of a training: metrics, progress, scores, stops, saved states."""

import ctypes
import logging
import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psutil
import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from transformers import TrainerCallback

from analysis.figures.numbers import duration
from analysis.files.shared import share
from db.errors import InfError
from trainer.loop.best import Best
from trainer.loop.embedding_loss import EmbeddingLoss
from trainer.loop.failures import require_finite
from trainer.loop.precision import as_saved
from trainer.model.weights import trained_state
from trainer.parallel.processes import Processes
from trainer.parallel.sharding import Sharded
from trainer.settings.settings import TrainSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sentence_transformers import SentenceTransformer

log = logging.getLogger("inf.train")
SAVE_SECONDS = 120.0
COPYING = 0.05
BELOW_GUARD = 10.0  # taken off a measure (0 to 1): any weights within the guard are better
Report = Callable[[int, int, str], None]
Stream = Callable[[int, Mapping[str, float]], None]
Evaluate = Callable[["SentenceTransformer"], Mapping[str, float]]


class Watch(TrainerCallback):
    """Streams metrics, reports progress, stops at the deadline or on request, saves states."""

    def __init__(
        self,
        settings: TrainSettings,
        report: Report,
        stream: Stream,
        stopping: Callable[[], bool],
        evaluate: Evaluate | None,
        best: Best,
        processes: Processes,
        loss: EmbeddingLoss,
        sharded: Sharded | None,
        is_below: Callable[[Mapping[str, float]], bool] = lambda scores: False,
    ) -> None:
        """is_below: whether scores show that ordinary retrieval fell too far."""
        self.is_below = is_below
        self.processes, self.loss_module, self.sharded = processes, loss, sharded
        self.step_began = self.step_seconds = 0.0
        self.settings, self.report, self.stream = settings, report, stream
        self.stopping, self.evaluate, self.best = stopping, evaluate, best
        self.began = self.saved = self.copied = time.monotonic()
        self.copy_seconds = 0.0
        self.first_step = 0
        self.loss = math.nan
        self.moved = MovedWeights()
        self.share_moved: float | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.began = self.saved = time.monotonic()
        self.first_step = state.global_step
        self.best.forget_after(state.global_step)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.step_began = time.monotonic()
        self.loss_module.tokens = None

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        rates = [group["lr"] for group in kwargs["optimizer"].param_groups]
        if state.global_step % EVERY_STEPS == 0 and max(rates) > 0:
            self.moved.before(kwargs["model"].parameters())

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.share_moved = self.moved.after()
        if self.share_moved is not None and self.share_moved < MIN_SHARE:
            log.warning(
                "step %d changed only %.0f %% of the trained weights (%s): the updates are too "
                "small for this number type. Raise learning_rate",
                state.global_step + 1,
                100 * self.share_moved,
                ", ".join({str(each.dtype) for each in kwargs["model"].parameters()}),
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        now, settings = time.monotonic(), self.settings
        self.step_seconds = now - self.step_began
        if settings.max_seconds and now - self.began >= settings.max_seconds:
            control.should_training_stop = True
        if self.stopping():
            control.should_training_stop = control.should_save = True
        if settings.save_steps:
            control.should_save |= state.global_step % settings.save_steps == 0
        elif now - self.saved >= SAVE_SECONDS:
            control.should_save = True
        if settings.evaluate_steps and state.global_step % settings.evaluate_steps == 0:
            if self.loss_module.value is not None:
                require_finite(float(self.loss_module.value), state.global_step)
            self._score(kwargs["model"], state.global_step, control)
        control.should_training_stop, control.should_save = self.processes.agree(
            (control.should_training_stop, control.should_save)
        )
        if control.should_save:
            self.saved = now

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Copy the states to INF_FILES, at the end or where it takes COPYING of the time."""
        began = time.monotonic()
        is_time = (began - self.copied) * COPYING >= self.copy_seconds
        if self.processes.is_first and (is_time or control.should_training_stop):
            try:
                share(self.best.work)
            except (InfError, OSError) as error:  # the training goes on without the copy
                log.warning("%s", error)
            self.copied = time.monotonic()
            self.copy_seconds = self.copied - began

    def _score(self, model: "SentenceTransformer", step: int, control: Any) -> None:
        """The first process scores; where weights are sharded all do, as each holds a part."""
        if self.evaluate is None:
            return
        with self.sharded.encoding() if self.sharded else nullcontext(), as_saved(model):
            scores = self.evaluate(model)
        self.stream(step, scores)
        if self.settings.best_by in scores:
            value = scores[self.settings.best_by] - (BELOW_GUARD if self.is_below(scores) else 0)
            # Sums may differ in the last digit: all processes must agree on which is the best.
            value = self.processes.agree(value) if self.sharded else value
            whole = self.sharded.weights if self.sharded else model.state_dict
            is_best = self.best.record(
                lambda: trained_state(model, whole()), step, value, writes=self.processes.is_first
            )
            control.should_save |= is_best
            control.should_training_stop |= self.best.should_stop

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kw: Any) -> None:
        if not logs or "loss" not in logs:
            return
        # Here, where the trainer has read the loss from the device anyway, and before it saves.
        self.loss = logs["loss"]
        require_finite(self.loss, state.global_step)
        numbers = {
            name: logs[name] for name in ("loss", "learning_rate", "grad_norm") if name in logs
        }
        self.stream(state.global_step, numbers | self._of_step())
        total, left = self._left(state)
        self.report(
            state.global_step,
            total,
            f"loss {self.loss:.3f} · about {duration(timedelta(seconds=left))} left",
        )

    def _of_step(self) -> dict[str, float]:
        """The loss of each term, and tokens per second of all processes, of the last step.

        Every process must call it.
        """
        terms, counted = self.loss_module.of_terms, self.loss_module.tokens
        values = [*terms.values(), *(() if counted is None else (counted,))]
        # One transfer from the device for all of them.
        numbers = torch.stack([value.double() for value in values]).tolist() if values else []
        found = {f"loss/{term}": number for term, number in zip(terms, numbers, strict=False)}
        tokens = self.processes.total(int(numbers[-1]) if counted is not None else 0)
        if self.step_seconds > 0:
            found["tokens_per_second"] = tokens / self.step_seconds
        if self.share_moved is not None:
            found["weights_moved"] = self.share_moved
        return found

    def _left(self, state: Any) -> tuple[int, float]:
        """(steps in all as they look now, seconds left)."""
        spent = time.monotonic() - self.began
        pace = spent / max(1, state.global_step - self.first_step)
        left = (state.max_steps - state.global_step) * pace
        if self.settings.max_seconds:
            left = min(left, max(0.0, self.settings.max_seconds - spent))
        return state.global_step + round(left / max(pace, 1e-9)), left


# Keeps a training on a CPU from taking ever more memory.
#
# What one batch freed seldom fits the lengths of the next one, so the heap grows with the steps: to
# three times what a step needs (docs/benchmarks.md). Freed pages go back to the system when it has
# grown by `GROWTH`; after every step that would cost a fifth of its time.
FIRST_STEPS = 4  # the memory after these is what the training needs
GROWTH = 1.25


class TrimmedHeap(TrainerCallback):
    """Trims this process's heap after steps that let it grow."""

    def __init__(self) -> None:
        self.steps, self.needed = 0, 0

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Look at the memory; for the first steps only remember the most."""
        self.steps += 1
        held = held_bytes()
        if self.steps <= FIRST_STEPS:
            self.needed = max(self.needed, held)
        elif held > GROWTH * self.needed:
            trim_heap()


def held_bytes() -> int:
    """The memory that this process holds, freed pages of its heap included."""
    return int(psutil.Process().memory_info().rss)


def trim_heap() -> None:
    """Give freed pages back; only Linux's glibc can be asked for it."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)


# The share of the trained weights that a step changes, to notice updates lost to rounding.
#
# A weight counts where its gradient is not zero (a token embedding that no text read stays for a
# good reason). At most `SAMPLED` weights of each tensor are looked at, evenly spread.
SAMPLED = 4096
EVERY_STEPS = 50
MIN_SHARE = 0.5


class MovedWeights:
    """Call `before` with gradients in place, then `after` the optimizer's step."""

    def __init__(self) -> None:
        self._seen: list[tuple[Tensor, int, Tensor, Tensor]] = []

    def before(self, weights: "Iterable[Tensor]") -> None:
        """Remember a sample of the weights that have a gradient."""
        self._seen = []
        for each in weights:
            if each.grad is None:
                continue
            stride = max(1, _local(each).numel() // SAMPLED)
            values = _sample(each, stride).clone()
            self._seen.append((each, stride, values, _sample(each.grad, stride) != 0))

    def after(self) -> float | None:
        """The share that moved, 0 to 1; None where no sampled weight had a gradient."""
        counts = [
            torch.stack([counted.sum(), (counted & (_sample(each, stride) != values)).sum()])
            for each, stride, values, counted in self._seen
        ]
        self._seen = []
        if not counts:
            return None
        total, moved = torch.stack(counts).sum(dim=0).tolist()
        return moved / total if total else None


def _local(tensor: Any) -> Tensor:
    """The tensor, or this process's shard of it."""
    local: Tensor = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return local.detach()


def _sample(tensor: Tensor, stride: int) -> Tensor:
    return _local(tensor).flatten()[::stride]
