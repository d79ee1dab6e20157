"""Texts encoded per second in each precision, and what that does to nDCG and the flips."""

import copy
import time
from collections.abc import Callable
from typing import Any

import torch

from trainer.check.material import demo_groups, random_groups, split
from trainer.check.report import Clock, Part, Skip
from trainer.check.sizes import Sizes
from trainer.data.groups import Group
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.scoring import BATCH, encode_unique, score_model, scoring_precision
from trainer.model.backbone import load_backbone
from trainer.settings.settings import parse_settings
from trainer.settings.template import Template

MEASURES = ("ndcg@10", "strict", "instruction-flip", "query-flip")
GOAL = 0.9


def measure_encoding(
    part: Part, sizes: Sizes, device: torch.device, base: str, clock: Clock
) -> None:
    """fp32, TF32 and bf16 by ours, and plain `SentenceTransformer.encode` of a bf16 model."""
    lengths = {"query_tokens": sizes.tokens, "passage_tokens": sizes.tokens}
    settings = parse_settings({"base_model": base, **lengths})
    model = load_backbone(settings).to(device).eval()
    try:
        groups = demo_groups(sizes.groups)
    except Skip as reason:
        part.skip("quality on the demo set", reason)
        groups = random_groups(sizes.groups)
    _, held_out = split(groups)
    passages = [passage for group in groups for *_, passage in group.triplets()]
    texts = [f"{passages[n % len(passages)]} {n}" for n in range(sizes.texts)]
    pace: dict[str, float] = {}
    ways = ("fp32", "TF32", "bf16") if device.type == "cuda" else ("fp32", "bf16")
    if "TF32" not in ways:
        part.skip("TF32", "it is a number type of NVIDIA GPUs")
    for way in ways:
        with _precision(way, device):
            pace[way] = _pace(
                lambda some: encode_unique(model.encode_document, some, _ignore), texts
            )
            part.add(way=way, texts_per_second=pace[way], **_quality(model, held_out))
        if clock.left() <= 0:
            part.skip("plain encode", "the time is used up")
            return
    plain = copy.deepcopy(model).to(torch.bfloat16)
    pace["plain"] = _pace(
        lambda some: plain.encode(some, batch_size=BATCH, show_progress_bar=False), texts
    )
    part.add(way="plain encode, bf16 weights", texts_per_second=pace["plain"])
    part.notes.append(
        f"bf16 encoding is {pace['bf16'] / pace['plain']:.2f} × plain encode in bf16 "
        f"(goal on a GPU: ≥ {GOAL})"
    )


def _precision(way: str, device: torch.device) -> Any:
    """As scoring computes; the other types around it."""
    from contextlib import nullcontext

    if way == "fp32":
        return nullcontext()
    if device.type == "cpu":
        return torch.autocast("cpu", torch.bfloat16)
    return scoring_precision(device, bf16=way == "bf16")


def _pace(encode: Callable[[list[str]], Any], texts: list[str]) -> float:
    """Texts per second over all, after a run over a part of every length that is not counted."""
    encode(texts[:: max(1, len(texts) // BATCH)])
    began = time.perf_counter()
    encode(texts)
    return len(texts) / (time.perf_counter() - began)


def _quality(model: Any, held_out: list[Group]) -> dict[str, float | None]:
    benchmark = held_out_benchmark("demo", held_out)
    scores = score_model(model, Template(), benchmark, controls=False)
    return {name: scores.metrics.get(name) for name in MEASURES}


def _ignore(_: int) -> None:
    """Nothing counts the texts of a check."""
