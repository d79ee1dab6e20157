"""Memory and time of a training, measured on a few of its own steps before it starts.

One step on the longest groups gives the peak of memory, a few on ordinary ones the pace; a sample
of the texts to be scored gives the pace of scoring. The optimizer is the training's own, adapters
are attached, and the copy of the base for `base_share` is held. Nothing is saved. What is measured
is this process: with several, each GPU holds about as much, and steps take about that many times
less.
"""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from db.machine import peak_memory
from trainer.data.groups import Group, group_key
from trainer.data.passage_pool import pool_passages
from trainer.data.splitting import Groups
from trainer.launch.scoring_time import CachesOf, scoring_seconds
from trainer.loop.arguments import make_optimizer, step_count
from trainer.loop.embedding_loss import columns_of
from trainer.loop.fitting import loss_of_few, make_loss, prepare_weights
from trainer.loop.packing_check import make_collator
from trainer.loop.precision import measured_precision
from trainer.loop.watch import held_bytes
from trainer.model.doors import trained_part
from trainer.model.weights import copy_weights
from trainer.settings.settings import TrainSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

ORDINARY_STEPS = 6
# A heap takes that much more in 100 steps than in the first ones on a CPU, although it is trimmed;
# in fewer, by their square root (b982ac1b:bench/training_estimate.py).
HEAP_GROWTH, GROWTH_STEPS = 0.7, 100


def measure_training(
    model: "SentenceTransformer",
    settings: TrainSettings,
    groups: Groups,
    *,
    check: Callable[[], None] = lambda: None,
    caches_of_base: CachesOf | None = None,
) -> dict[str, Any]:
    """{"steps", "seconds", "seconds_per_step", "scoring_seconds", "peak_bytes", "device"}.

    peak_bytes: of the GPU where there is one, else of this process, as it will have grown at the
    end. `max_seconds` limits `seconds`.
    caches_of_base: as `HeldOutScores`; only read.
    """
    training, before = groups.training, held_bytes()
    steps = step_count(settings, len(training))
    scoring = scoring_seconds(model, settings, groups, steps, caches_of_base)
    base = copy_weights(trained_part(model)) if settings.base_share else {}
    prepare_weights(model, settings)
    step = _stepper(model, training, settings)
    rows = settings.rows_per_batch
    generator = random.Random(settings.seed)
    step(sorted(training, key=_length, reverse=True)[:rows])  # the heaviest batch there can be
    seconds = []
    for _ in range(ORDINARY_STEPS):
        check()
        began = time.monotonic()
        step(generator.sample(training, min(rows, len(training))))
        seconds.append(time.monotonic() - began)
    del base  # held so far, as a training holds it
    each = statistics.fmean(seconds) * settings.accumulation_steps
    total = steps * each
    if settings.max_seconds:
        total = min(total, settings.max_seconds)
    return {
        "steps": steps,
        "seconds_per_step": each,
        "seconds": total,
        "scoring_seconds": scoring,
        "peak_bytes": _peak_bytes(before, steps),
        "device": "GPU" if torch.cuda.is_available() else "CPU",
    }


def _stepper(
    model: "SentenceTransformer", groups: list[Group], settings: TrainSettings
) -> Callable[[Sequence[Group]], None]:
    """A function that does one optimizer step on a batch, as the training does."""
    # Any passages stand for mined ones: as many and about as long.
    passages = [passage for group in groups for *_, passage in group.triplets()]
    some, count = random.Random(settings.seed), settings.mined_negatives
    mined = {group_key(each): some.sample(passages, min(count, len(passages))) for each in groups}
    pool = None
    if settings.trained_side == "query":
        size = model.get_embedding_dimension() or 1
        pool = pool_passages(  # any vectors take the time that theirs do
            groups,
            settings.parsed_template,
            lambda texts: np.full((len(texts), size), size**-0.5, dtype=np.float32),
            settings.pool_passages,
            settings.seed,
        )
    collator = make_collator(model, groups, settings, mined=mined if count else None, pool=pool)
    loss = make_loss(model, settings, groups[0].shape, pool).to(model.device)
    trained = [weights for weights in model.parameters() if weights.requires_grad]
    optimizer = make_optimizer(model, settings)
    kind = model.device.type
    few = loss_of_few(model, groups, settings, collator, pool)
    bf16 = measured_precision(settings.precision, model, few).used == "bf16"

    def step(batch_groups: Sequence[Group]) -> None:
        model.train()
        batch = collator([group.row() for group in batch_groups])
        columns, tables = columns_of(batch, model.device)
        with torch.autocast(kind, dtype=torch.bfloat16) if bf16 else nullcontext():
            value = loss(columns, tables)
        if value.requires_grad:
            value.backward()
        if settings.clip_norm:
            torch.nn.utils.clip_grad_norm_(trained, settings.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        if kind == "cuda":
            torch.cuda.synchronize()

    return step


def _length(group: Group) -> int:
    return sum(len(text) for triplet in group.triplets() for text in triplet)


def _peak_bytes(before: int, steps: int) -> int:
    """The training's peak, after its first steps and the heaviest one: a heap may still grow."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    peak = peak_memory()
    growth = HEAP_GROWTH * min(1.0, steps / GROWTH_STEPS) ** 0.5
    return int(peak + growth * max(0, peak - before))
