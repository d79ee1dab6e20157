"""What a training step costs: seconds, peak memory and tokens/s, flat, packed and stock.

Every way contrasts the same negatives of ℓ_{P,I}^multi. `flat` encodes each different text once,
`packed` shares an instruction's prefix, `stock` is plain sentence-transformers: every text of
every anchor, none shared. Ways are compared at the same number of rows, the largest up to the one
wanted at which all of them fit, never one with cached gradients against one without. `mnrl` is ℓ_P
by sentence-transformers' own loss, `P` is ours. A step is forward, backward and AdamW.
"""

import gc
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from db.shape import INF_IR
from trainer.check.material import random_groups, random_model
from trainer.check.report import Clock, Part, Skip
from trainer.check.sizes import Shape, Sizes
from trainer.data.batches import Collator
from trainer.loop.embedding_loss import EmbeddingLoss, columns_of
from trainer.loop.precision import uses_bf16
from trainer.model.packing import enable_packing
from trainer.objectives.names import parse_objective
from trainer.settings.template import Template

WARM_STEPS, TIMED_STEPS = 2, 3
DECODER_WAYS = ("stock", "flat", "packed")
ENCODER_WAYS = ("mnrl", "P", "hard")
GOAL_ROWS = 32
Step = Callable[[], int]
"""One optimizer step; returns the tokens it read."""


def measure_steps(part: Part, sizes: Sizes, device: torch.device, clock: Clock) -> None:
    """Every model, size and way, until the time is used."""
    for is_decoder, models in ((True, sizes.decoders), (False, sizes.encoders)):
        for name, (architecture, shape) in models.items():
            if clock.left() <= 0:
                part.skip(name, "the time for steps is used up")
                continue
            _measure_model(part, sizes, device, clock, name, architecture, shape, is_decoder)


def _measure_model(
    part: Part,
    sizes: Sizes,
    device: torch.device,
    clock: Clock,
    name: str,
    architecture: str,
    shape: Shape,
    is_decoder: bool,
) -> None:
    model = random_model(architecture, shape, device).train()
    if is_decoder:
        enable_packing(model)
    ways = DECODER_WAYS if is_decoder else ENCODER_WAYS
    seconds: dict[tuple[str, int], float] = {}
    memory: dict[tuple[str, int], float | None] = {}
    for wanted in sizes.rows:
        if clock.left() <= 0:
            part.skip(f"{name}, {wanted} rows", "the time for steps is used up")
            continue
        rows, found = _alike(model, ways, wanted)
        if rows < wanted:
            part.skip(f"{name}, {wanted} rows", f"not every way fits; all do with {rows}")
        for way, measured in found.items():
            seconds[way, rows], memory[way, rows] = measured["seconds"], measured["peak_gb"]
            part.add(model=name, way=way, rows=rows, **measured)
    if is_decoder:
        for slow, goal in (("flat", 3.0), ("stock", 2.0)):
            for rows in sorted({rows for _, rows in seconds}):
                if (slow, rows) in seconds and ("packed", rows) in seconds:
                    ratio = seconds[slow, rows] / seconds["packed", rows]
                    part.add(model=name, way=f"{slow} / packed", rows=rows, seconds=ratio)
                    part.notes.append(_goal(name, slow, rows, ratio, goal, memory, device))
        if sizes.max_rows and device.type == "cuda":
            _largest_batch(part, model, sizes.max_rows, clock, name)
        else:
            part.skip(f"{name}, largest batch", "only a GPU has a memory of its own to fill")
    del model
    gc.collect()


def _goal(
    name: str,
    slow: str,
    rows: int,
    ratio: float,
    goal: float,
    memory: dict[tuple[str, int], float | None],
    device: torch.device,
) -> str:
    one, other = memory["packed", rows], memory[slow, rows]
    share = f", memory ×{one / other:.2f} (goal ≤ 0.4)" if one and other else ""
    where = f" (goal at {GOAL_ROWS} rows on a GPU: ≥ {goal:g})"
    return f"{name}, {rows} rows, {device.type}: packed is {ratio:.2f} × {slow}{where}{share}"


def _alike(model: Any, ways: tuple[str, ...], rows: int) -> tuple[int, dict[str, dict[str, Any]]]:
    """(rows, what each way measured with them): halved until every way fits.

    Raises Skip where not even one row does.
    """
    while rows:
        try:
            found = {}
            for way in ways:
                _free(model)
                found[way] = _measure_way(model, way, rows)
            return rows, found
        except torch.OutOfMemoryError:
            rows //= 2
        finally:
            _free(model)
    raise Skip("not every way fits, with one row neither")


def _measure_way(model: Any, way: str, rows: int) -> dict[str, Any]:
    """Seconds of a step (the least of some after warm ones), peak GB of the device, tokens/s."""
    step = _step(model, way, rows)
    if model.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    for _ in range(WARM_STEPS):
        step()
    times = []
    for _ in range(TIMED_STEPS):
        began = time.perf_counter()
        tokens = step()
        times.append(time.perf_counter() - began)
    peak = torch.cuda.max_memory_allocated() / 1e9 if model.device.type == "cuda" else None
    return {
        "seconds": min(times),
        "peak_gb": peak,
        "tokens_per_second": tokens / min(times),
    }


def _step(model: Any, way: str, rows: int) -> Step:
    if way == "mnrl":
        return _stock_step(model, rows)
    objective = parse_objective("P" if way == "P" else "P,I:multi")
    sampled = 1 if way == "hard" else 0
    batch = Collator(model, Template(), objective, sampled, packing=way == "packed", shape=INF_IR)(
        [group.row() for group in random_groups(rows)]
    )
    if way == "stock":
        _repeat_crossed(batch)
    columns, tables = columns_of(batch, model.device)
    loss = EmbeddingLoss(model, objective, temperature=0.05, shape=INF_IR)
    return _optimizer_step(model, lambda: loss([dict(each) for each in columns], tables), loss)


def _repeat_crossed(batch: dict[str, Any]) -> None:
    """Every crossed text once for each anchor that contrasts it, as in a plain list of texts."""
    crossed = batch["label"]["crossed_of"]
    known = crossed >= 0
    matched = int(batch["label"]["matched"])
    order = torch.cat([torch.arange(matched), crossed[known]])
    for key in [key for key in batch if key.startswith("queries_")]:
        if isinstance(batch[key], torch.Tensor):
            batch[key] = batch[key][order]
    crossed[known] = matched + torch.arange(int(known.sum()))


def _stock_step(model: Any, rows: int) -> Step:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    triplets = [triplet for group in random_groups(rows) for triplet in group.triplets()]
    template = Template()
    columns = [
        model.preprocess([template.apply(i, q) for i, q, _ in triplets], task="query"),
        model.preprocess([p for *_, p in triplets], task="document"),
    ]
    columns = [
        {k: v.to(model.device) if isinstance(v, torch.Tensor) else v for k, v in column.items()}
        for column in columns
    ]
    loss = MultipleNegativesRankingLoss(model, scale=20.0)
    tokens = int(sum(column["attention_mask"].sum() for column in columns))
    return _optimizer_step(model, lambda: loss([dict(each) for each in columns], None), tokens)


def _optimizer_step(model: Any, compute: Callable[[], Any], counted: Any) -> Step:
    kind = model.device.type
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=kind == "cuda")
    bf16 = uses_bf16("auto")

    def step() -> int:
        if isinstance(counted, EmbeddingLoss):
            counted.tokens = None
        with torch.autocast(kind, torch.bfloat16) if bf16 else nullcontext():
            value = compute()
        if value.requires_grad:
            value.backward()
        optimizer.step()
        optimizer.zero_grad()
        if kind == "cuda":
            torch.cuda.synchronize()
        return counted if isinstance(counted, int) else int(counted.tokens)

    return step


def _largest_batch(part: Part, model: Any, max_rows: int, clock: Clock, name: str) -> None:
    """The largest power of two of rows whose packed step fits."""
    rows, fits = 8, 0
    while rows <= max_rows and clock.left() > 0:
        try:
            _step(model, "packed", rows)()
            fits = rows
        except torch.OutOfMemoryError:
            break
        finally:
            _free(model)
        rows *= 2
    part.add(model=name, way="packed, largest batch that fits", rows=fits)


def _free(model: Any) -> None:
    model.zero_grad(set_to_none=True)
    gc.collect()
    if model.device.type == "cuda":
        torch.cuda.empty_cache()
