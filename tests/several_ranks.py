"""Run as `python several_ranks.py FOLDER` by each of several processes (or by one alone).

Computes loss and gradients of one batch as a training does, under DDP where there are several
(the environment says so), for some models and objectives; the first writes them to FOLDER. Each
writes how many tokens it counted, and how many a second it is told that all embed together.
"""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from trainer_release import make_rows

from db.shape import INF_IR
from trainer.data.groups import group_of
from trainer.data.passage_pool import pool_passages
from trainer.evaluate.scoring import encode_unique
from trainer.loop.best import Best
from trainer.loop.fitting import make_loss
from trainer.loop.packing_check import make_collator
from trainer.loop.watch import Watch
from trainer.model.backbone import load_backbone
from trainer.parallel.processes import ALONE, Processes, count_from_environment, joined_group
from trainer.settings.settings import parse_settings

STEP_SECONDS = 0.5
# The last row has texts of the first: duplicates across processes.
ROWS = make_rows(5)
ROWS.append({**ROWS[4], **{name: ROWS[0][name] for name in INF_IR.columns[:2]}})


CASES: tuple[dict[str, object], ...] = (
    {"base_model": "tiny-random-qwen2", "objective": "P,I:multi"},
    {"base_model": "tiny-random-qwen2", "objective": "P,I,IQ:uni", "texts_at_once": 3},
    {"base_model": "tiny-random-bert", "objective": "P,I,IQ:multi", "encoders": "two"},
    {"base_model": "tiny-random-bert", "objective": "promptriever", "texts_at_once": 2},
    {"base_model": "tiny-random-bert", "objective": "P,I:uni", "interaction": "II"},
    {
        "base_model": "tiny-random-bert",
        "objective": "P,I,IQ:uni",
        "trained_side": "query",
        "pool_passages": -1,
        "group_weight": 1,
    },
    {
        "base_model": "tiny-random-bert",
        "objective": "P",
        "interaction": "II",
        "texts_at_once": 4,
    },
)


def compute(out: Path, processes: Processes, case: dict[str, object]) -> None:
    settings = parse_settings({"rows_per_batch": 6, "query_tokens": 96, **case})
    model = load_backbone(settings).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # what is dropped differs by process
    groups = [group_of(row, shape=INF_IR) for row in ROWS]
    pool = None
    if settings.trained_side == "query":

        def embed(texts: Sequence[str]) -> np.ndarray:
            return encode_unique(model.encode_document, texts, lambda _: None)

        of = (settings.pool_passages, settings.seed)
        pool = pool_passages(groups, settings.parsed_template, embed, *of)
        model.train()
    collator = make_collator(model, groups, settings, processes, pool=pool)
    batch = collator([group.row() for group in groups])
    tables = batch.pop("label")
    columns: dict[str, dict[str, object]] = {}
    for key, value in batch.items():
        column, _, name = key.partition("_")
        columns.setdefault(column, {})[name] = value
    wrapped = (
        torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
        if processes.count > 1
        else model
    )
    loss = make_loss(wrapped, settings, INF_IR, pool)
    value = loss(list(columns.values()), tables)
    value.backward()
    watch = Watch(
        settings,
        lambda done, total, words: None,
        lambda step, values: None,
        lambda: False,
        None,
        Best(out.parent, patience=0),
        processes,
        loss,
        None,
    )
    watch.step_seconds = STEP_SECONDS
    assert loss.tokens is not None
    told = {"counted": int(loss.tokens), "per_second": watch._of_step()["tokens_per_second"]}
    out.with_suffix(f".tokens-{processes.rank}.json").write_text(json.dumps(told))
    gradients = {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    if processes.is_first:
        save_file({"loss": value.detach().reshape(1), **gradients}, out)


def main() -> None:
    torch.set_num_threads(1)
    count = count_from_environment(os.environ)
    with joined_group(count) if count > 1 else nullcontext(ALONE) as processes:
        for number, case in enumerate(CASES):
            compute(Path(sys.argv[1]) / f"{number}.safetensors", processes, case)


if __name__ == "__main__":
    main()
