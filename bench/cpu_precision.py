"""What `precision=auto` chooses on this CPU, and why: MiniLM on real questions and passages.

    nice python bench/cpu_precision.py [--real ../shared/data]
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 nice python bench/cpu_precision.py    # without AMX

Prints the CPU seconds of a step of four groups in both types on one thread, how much they differ,
and the choice, three times over.
"""

import argparse
import json
import logging
import random
import sys
from pathlib import Path

import torch

# A script's own folder comes first on the path: bench/analysis.py would replace the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from db.shape import INF_IR  # noqa: E402
from trainer.data.groups import Group, group_of  # noqa: E402
from trainer.loop.fitting import loss_of_few, prepare_weights  # noqa: E402
from trainer.loop.packing_check import make_collator  # noqa: E402
from trainer.loop.precision import measured_precision  # noqa: E402
from trainer.model.backbone import load_backbone  # noqa: E402
from trainer.settings.settings import parse_settings  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
INSTRUCTION = (
    "Prefer a passage that gives a date and a place, names the people who took part, explains the "
    "reason in one sentence and does not speak of anything that happened before."
)


def groups_of(folder: Path, count: int) -> list[Group]:
    """Groups of real questions and passages, and instructions of the paper's mean length."""
    texts = [
        [json.loads(line)[name] for line in (folder / file).read_text().splitlines()]
        for file, name in (("pairs.jsonl", "query"), ("passages.jsonl", "text"))
    ]
    chance = random.Random(1)
    rows = []
    for number in range(count):
        row = {}
        for name in INF_IR.columns:
            kind = 0 if name.startswith("query") else 1
            is_instruction = name.startswith("instruction")
            made = f"{INSTRUCTION} {number} {name}"
            row[name] = made if is_instruction else chance.choice(texts[kind])
        rows.append(group_of(row, shape=INF_IR))
    return rows


def main() -> None:
    """Measure and print."""
    about = argparse.ArgumentParser(description=__doc__)
    about.add_argument("--real", type=Path, default=ROOT.parent / "shared" / "data")
    given = about.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)
    settings = parse_settings({"objective": "P,I:multi", "dropout": "0", "attention": "eager"})
    model = load_backbone(settings)
    groups = groups_of(given.real / "google_queries", 4)
    collator = make_collator(model, groups, settings)
    prepare_weights(model, settings)
    compute = loss_of_few(model, groups, settings, collator, None)
    for _ in range(3):
        print(measured_precision("auto", model, compute))


if __name__ == "__main__":
    main()
