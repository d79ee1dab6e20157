"""What the objectives cost: packing, the hard instruction negative, ℓ_P next to the stock loss.

    .venv/bin/python bench/training.py [--only CASE] [--rows B] [--repeat 2]

Cases: packing, parts, step, encoder, encoder-real, stock, interaction, throughput.

Ways that are compared run side by side, each in a process of its own (its peak memory is that
process's alone), one after the other and over again; the least time of each counts. Where the
ratio is near 1 both ways also take turns in one process, and the median of the rounds' ratios
counts. A step is forward and backward. The decoder is a Qwen2 with random weights (4 layers, width
256); a token is a byte, so texts have exactly the lengths that are said. The encoder is
all-MiniLM-L6-v2; `encoder-real` takes queries and passages of ../shared/data/google_queries, every
other text has the paper's mean lengths. On the CPU; unmeasured on a GPU.
"""

import argparse
import json
import random
import resource
import statistics
import string
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from db.shape import INF_IR

sys.path[0] = str(Path(__file__).resolve().parent.parent)  # bench/analysis.py is not `analysis`

IN_TURNS = "in-turns"
CLOSE = ("encoder", "encoder-real", "stock")  # their ratio is near 1, so it is also taken in turns
ROUNDS = 30
REAL = Path(__file__).parents[2] / "shared" / "data" / "google_queries"
I_TOKENS, Q_TOKENS, P_TOKENS = 36, 8, 55  # the paper's mean lengths
GRID_I, GRID_Q = 48, 12


def text(draw: random.Random, length: int) -> str:
    """A random text of a number of bytes."""
    return "".join(draw.choices(string.ascii_lowercase + " ", k=length - 1)) + "."


def rows_of(count: int, *, words: bool = False) -> list[dict[str, str]]:
    """`count` rows with texts of the paper's mean lengths, in bytes or (for MiniLM) in words."""
    draw = random.Random(count)
    vocabulary = ["river", "bridge", "stone", "metre", "builder", "arch", "bank", "long", "old"]

    def make(length: int) -> str:
        return " ".join(draw.choices(vocabulary, k=length)) if words else text(draw, length)

    return [
        {
            "query_positive": make(Q_TOKENS),
            "instruction_positive": make(I_TOKENS),
            "document_positive": make(P_TOKENS),
            "query_negative": make(Q_TOKENS),
            "instruction_negative": make(I_TOKENS),
            "hard_negative_document_1": make(P_TOKENS),
            "hard_negative_document_2": make(P_TOKENS),
        }
        for _ in range(count)
    ]


def decoder() -> Any:
    """The random Qwen2 behind a SentenceTransformer, taking packed rows too."""
    from trainer.model import tiny as tiny_models
    from trainer.model.packing import enable_packing

    tiny_models.SIZE.update(
        hidden_size=256, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=4
    )
    model = tiny_models.build_tiny_model("tiny-random-qwen2")
    enable_packing(model)
    return model.train()


def columns_of(batch: dict[str, Any]) -> list[dict[str, Any]]:
    """A collated batch as the loss takes it."""
    found = []
    for name in ("queries", "passages"):
        column = {
            key.removeprefix(f"{name}_"): value
            for key, value in batch.items()
            if key.startswith(f"{name}_")
        }
        found += [column] if column else []
    return found


def grid_step(way: str, rows: int) -> Callable[[], None]:
    """Embed rows × rows crossed texts (48 + 12 tokens), flat or packed, forward and backward.

    `mask` and `parts` are packed too, with all attention under the mask or all of it by parts.
    """
    from trainer.model import tree_attention
    from trainer.model.packing import as_features, pack_rows

    tree_attention.MIN_SAVED = {"mask": float("inf"), "parts": 0}.get(way, tree_attention.MIN_SAVED)

    draw = random.Random(rows)
    model = decoder()
    instructions = [text(draw, GRID_I) for _ in range(rows)]
    queries = [text(draw, GRID_Q) for _ in range(rows)]
    texts = [instruction + query for instruction in instructions for query in queries]
    flat = model.preprocess(texts, task="query")
    if way != "flat":
        owners = [place // rows for place in range(len(texts))]
        features: Any = as_features(pack_rows(flat["input_ids"].tolist(), owners), 0)
    else:
        features = flat

    def step() -> None:
        model.zero_grad()
        model(dict(features))["sentence_embedding"].sum().backward()

    return step


def objective_step(way: str, rows: int) -> Callable[[], None]:
    """One step of ℓ_{P,I}^multi on the decoder: every crossed text flat and repeated, or packed."""
    import torch

    from trainer.data.batches import Collator
    from trainer.loop.embedding_loss import EmbeddingLoss
    from trainer.objectives.names import OBJECTIVES
    from trainer.settings.template import Template

    model, objective = decoder(), OBJECTIVES["P,I:multi"]
    collator = Collator(model, Template(), objective, packing=way == "packed", shape=INF_IR)
    batch = collator(rows_of(rows))
    columns = columns_of(batch)
    if way == "naive":  # N² texts, none shared: what a literal reading of Eq. 18 encodes
        triplets, matched = 3 * rows, int(batch["label"]["matched"])
        for key in ("input_ids", "attention_mask"):
            first, pool = columns[0][key][:matched], columns[0][key][matched:]
            repeats = -(-triplets * triplets // len(pool))
            crossed = pool.repeat(repeats, 1)[: triplets * triplets]
            columns[0][key] = torch.cat([first, crossed])
    loss = EmbeddingLoss(model, objective, temperature=0.05, shape=INF_IR)

    def step() -> None:
        model.zero_grad()
        loss([dict(column) for column in columns], batch["label"]).backward()

    return step


def real_rows(count: int) -> list[dict[str, str]]:
    """Rows with real queries and passages, and instructions of the paper's mean length."""
    draw = random.Random(count)
    queries, passages = (
        [json.loads(line)[name] for line in (REAL / file).read_text().splitlines()]
        for file, name in (("pairs.jsonl", "query"), ("passages.jsonl", "text"))
    )
    real = {"query": queries, "document": passages, "hard": passages}
    return [
        {name: draw.choice(real.get(name.split("_")[0], [made])) for name, made in row.items()}
        for row in rows_of(count, words=True)
    ]


def encoder_step(way: str, rows: int, *, real: bool = False) -> Callable[[], None]:
    """One step of MiniLM: ℓ_P (`p`), or ℓ_{P,I}^multi with some instructions sampled."""
    from trainer.data.batches import Collator
    from trainer.loop.embedding_loss import EmbeddingLoss
    from trainer.model.backbone import load_backbone
    from trainer.objectives.names import OBJECTIVES
    from trainer.settings.settings import TrainSettings
    from trainer.settings.template import Template

    model = load_backbone(TrainSettings()).train()
    name, sampled = {"p": ("P", 0), "hard": ("P,I:multi", 1), "all": ("P,I:multi", 0)}[way]
    given = real_rows(rows) if real else rows_of(rows, words=True)
    batch = Collator(model, Template(), OBJECTIVES[name], sampled, shape=INF_IR)(given)
    loss = EmbeddingLoss(model, OBJECTIVES[name], temperature=0.05, shape=INF_IR)

    def step() -> None:
        model.zero_grad()
        loss([dict(column) for column in columns_of(batch)], batch["label"]).backward()

    return step


def stock_step(way: str, rows: int) -> Callable[[], None]:
    """One step of ℓ_P on the same texts: ours, or MultipleNegativesRankingLoss (`stock`)."""
    if way == "ours":
        return encoder_step("p", rows)
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from trainer.model.backbone import load_backbone
    from trainer.settings.settings import TrainSettings

    model = load_backbone(TrainSettings()).train()
    anchors, positives = [], []
    for row in rows_of(rows, words=True):
        for i, q, p in (
            ("instruction_positive", "query_positive", "document_positive"),
            ("instruction_negative", "query_positive", "hard_negative_document_1"),
            ("instruction_positive", "query_negative", "hard_negative_document_2"),
        ):
            anchors.append(f"{row[i]} {row[q]}")
            positives.append(row[p])
    loss = MultipleNegativesRankingLoss(model, scale=20.0)
    columns = [
        model.preprocess(anchors, task="query"),
        model.preprocess(positives, task="document"),
    ]

    def step() -> None:
        model.zero_grad()
        loss([dict(column) for column in columns], None).backward()

    return step


def interaction_step(way: str, rows: int) -> Callable[[], None]:
    """One step of MiniLM with ℓ_{P,I}^multi over all instructions, by Interaction I or II."""
    from trainer.data.batches import Collator
    from trainer.loop.embedding_loss import EmbeddingLoss
    from trainer.model.backbone import load_backbone
    from trainer.objectives.names import OBJECTIVES
    from trainer.settings.settings import TrainSettings

    settings = TrainSettings(interaction=way)
    model = load_backbone(settings).train()
    objective = OBJECTIVES["P,I:multi"]
    batch = Collator(model, settings.parsed_template, objective, shape=INF_IR)(
        rows_of(rows, words=True)
    )
    loss = EmbeddingLoss(model, objective, temperature=0.05, shape=INF_IR)

    def step() -> None:
        model.zero_grad()
        loss([dict(column) for column in columns_of(batch)], batch["label"]).backward()

    return step


def encoding_step(way: str, rows: int) -> Callable[[], None]:
    """Embed 8 × rows passages, a quarter of them twice: `encode`, or ours."""
    from trainer.evaluate.scoring import encode_unique
    from trainer.model.backbone import load_backbone
    from trainer.settings.settings import TrainSettings

    model = load_backbone(TrainSettings())
    draw = random.Random(1)
    texts = [
        " ".join(draw.choices(["river", "stone", "long"], k=draw.randint(5, 120)))
        for _ in range(6 * rows)
    ]
    texts += texts[: 2 * rows]
    draw.shuffle(texts)
    if way == "ours":
        return lambda: (encode_unique(model.encode_document, texts, lambda _: None), None)[1]
    return lambda: (model.encode(texts, batch_size=32, show_progress_bar=False), None)[1]


# name → (step, ways with the slow one first, rows, figure wanted of slow / fast)
CASES: dict[str, tuple[Any, tuple[str, ...], tuple[int, ...], str]] = {
    "packing": (grid_step, ("flat", "packed"), (8, 16, 32), "≥ 3.2, 4, 5"),
    "parts": (grid_step, ("mask", "parts"), (4, 8, 12, 16, 32), "-"),
    "step": (objective_step, ("naive", "packed"), (4, 8), "≥ 5, 8"),
    "encoder": (encoder_step, ("hard", "p"), (8,), "≤ 1.15"),
    "encoder-real": (partial(encoder_step, real=True), ("hard", "p"), (8,), "≤ 1.15"),
    "stock": (stock_step, ("ours", "stock"), (8,), "≤ 1.05"),
    "interaction": (interaction_step, ("I", "II"), (4, 8), "-"),
    "throughput": (encoding_step, ("encode", "ours"), (16,), "-"),
}


def seconds_of(step: Callable[[], None]) -> float:
    """How long one step takes."""
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def run_in_turns(case: str, rows: int) -> dict[str, float]:
    """Both ways in this process, a step of each in turn: the median of the rounds' ratios.

    What else the machine does falls on both, which a ratio near 1 needs.
    """
    first, second = (CASES[case][0](way, rows) for way in CASES[case][1])
    for step in (first, second):
        step()
    ratios = [seconds_of(first) / seconds_of(second) for _ in range(ROUNDS)]
    return {"ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}


def run_one(case: str, way: str, rows: int) -> dict[str, float]:
    """In this process: the least of three steps after a first, and the peak memory."""
    step = CASES[case][0](way, rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step()
    seconds = min(seconds_of(step) for _ in range(3))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "step_mb": (peak - before) / 1024, "peak_mb": peak / 1024}


def in_a_process(case: str, way: str, rows: int) -> dict[str, float]:
    """What `--one` reports in a process of its own."""
    command = [sys.executable, __file__, "--one", case, way, str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run every case, each way in its own process, and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--rows", type=int, help="only this size of a case")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        case, way, rows = arguments.one
        run = partial(run_in_turns, case) if way == IN_TURNS else partial(run_one, case, way)
        print(json.dumps(run(int(rows))))
        return
    print(f"{'case':<12} {'rows':>4}  {'way':<7} {'s/step':>8} {'step MB':>8}   ratio   wanted")
    for case, (_, ways, sizes, wanted) in CASES.items():
        if arguments.only not in (None, case):
            continue
        for rows in sizes:
            if arguments.rows not in (None, rows):
                continue
            best: dict[str, dict[str, float]] = {}
            for _ in range(arguments.repeat):
                for way in ways:
                    found = in_a_process(case, way, rows)
                    if way not in best or found["seconds"] < best[way]["seconds"]:
                        best[way] = found
            slow, fast = (best[way] for way in ways)
            ratio = slow["seconds"] / fast["seconds"]
            memory = fast["step_mb"] / max(slow["step_mb"], 1)
            for way in ways:
                line = f"{case:<12} {rows:>4}  {way:<7} {best[way]['seconds']:>8.3f}"
                print(f"{line} {best[way]['step_mb']:>8.0f}")
            print(f"{'':<35} time ×{ratio:.2f} (wanted {wanted}), memory ×{memory:.2f}", flush=True)
            if case in CLOSE:
                result = in_a_process(case, IN_TURNS, rows)
                spread = f"{result['least']:.3f} to {result['most']:.3f}"
                print(
                    f"{'':<35} in turns ×{result['ratio']:.3f}, the median of {ROUNDS} ({spread})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
