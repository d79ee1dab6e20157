"""A training step of MiniLM on one CPU core: attention, dropout and bfloat16, in turns.

    .venv/bin/python bench/cpu_step.py [--texts 32] [--tokens 160] [--rounds 3]

Forward and backward pass over the same texts; half of them are padded by a quarter. Prints the
median seconds of every way and how many times as fast as the first it is: what a stock training
does (sdpa with the model's own dropout, float32).
"""

import argparse
import statistics
import sys
import time
from itertools import product
from pathlib import Path

import torch

sys.path[0] = str(Path(__file__).resolve().parent.parent)  # bench/analysis.py is not `analysis`

from trainer.model.backbone import load_backbone  # noqa: E402
from trainer.model.trained_weights import set_dropout  # noqa: E402
from trainer.settings.settings import parse_settings  # noqa: E402

WAYS = list(product(("fp32", "bf16"), ("sdpa", "eager"), (0.1, 0.0)))


def measure(texts: int, tokens: int, rounds: int) -> dict[tuple[str, str, float], float]:
    """Median seconds of a step by (precision, attention, dropout)."""
    models = {
        (attention, dropout): load_backbone(parse_settings({"attention": attention}))
        for _, attention, dropout in WAYS
    }
    generator = torch.Generator().manual_seed(1)
    inputs = {
        "input_ids": torch.randint(1000, 20_000, (texts, tokens), generator=generator),
        "attention_mask": torch.ones(texts, tokens, dtype=torch.long),
    }
    inputs["attention_mask"][::2, tokens * 3 // 4 :] = 0
    seconds: dict[tuple[str, str, float], list[float]] = {}
    for round_number in range(rounds + 1):
        for precision, attention, dropout in WAYS:
            model = models[attention, dropout]
            set_dropout(model, dropout)
            model.train()
            began = time.monotonic()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
                found = model(dict(inputs))["sentence_embedding"].float().mean()
            found.backward()
            if round_number:  # the first only warms up
                way = (precision, attention, dropout)
                seconds.setdefault(way, []).append(time.monotonic() - began)
    return {way: statistics.median(of) for way, of in seconds.items()}


def main() -> None:
    """Print the table."""
    about = argparse.ArgumentParser(description=__doc__)
    about.add_argument("--texts", type=int, default=32)
    about.add_argument("--tokens", type=int, default=160)
    about.add_argument("--rounds", type=int, default=3)
    given = about.parse_args()
    torch.set_num_threads(1)
    found = measure(given.texts, given.tokens, given.rounds)
    first = found[WAYS[0]]
    print("| precision | attention | dropout | seconds | times as fast |\n|---|---|---|---|---|")
    for (precision, attention, dropout), of in found.items():
        print(f"| {precision} | {attention} | {dropout:g} | {of:.2f} | {first / of:.1f} |")


if __name__ == "__main__":
    main()
