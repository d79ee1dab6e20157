"""Texts, groups and random models that a check measures with."""

import hashlib
import json
import random
import string
from pathlib import Path
from typing import TYPE_CHECKING, Any

from db.shape import INF_IR
from trainer.check.report import Skip
from trainer.check.sizes import Shape
from trainer.data.groups import Group, group_of
from trainer.model.tiny import PREFIX, SIZE, build_tiny_model

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

DEMO = Path(__file__).resolve().parents[2] / "curation" / "demo"
LENGTHS = {"instruction": 36, "query": 8, "document": 55, "hard": 55}  # the paper's means, tokens
HELD_OUT_GROUPS = 33  # 99 passages: p-MRR then needs no BM25
DEMO_TEXTS = {
    "query_positive": "query",
    "instruction_positive": "instruction_positive",
    "query_negative": "query_negative",
    "instruction_negative": "instruction_negative",
    "hard_negative_document_1": "passage_instruction_negative",
    "hard_negative_document_2": "passage_query_negative",
}


def random_groups(count: int, seed: int = 0) -> list[Group]:
    """Groups of random letters with the paper's mean lengths; a letter is a tiny model's token."""
    draw = random.Random(seed)
    letters = string.ascii_lowercase + "    "

    def make(column: str) -> str:
        return "".join(draw.choices(letters, k=LENGTHS[column.split("_")[0]] - 1)) + "."

    return [
        group_of({name: make(name) for name in INF_IR.columns}, shape=INF_IR) for _ in range(count)
    ]


def demo_groups(limit: int) -> list[Group]:
    """Groups of the demo set, evenly spread. Raises Skip where its files are not here."""
    files = (DEMO / "passages.jsonl", DEMO / "recording" / "groups.jsonl")
    if missing := [file for file in files if not file.is_file()]:
        raise Skip(f"the demo set is not here ({missing[0]})")
    passages = {
        hashlib.sha256(row["text"].encode()).hexdigest(): row["text"] for row in _rows(files[0])
    }
    found = [
        group_of(
            {name: row[source] for name, source in DEMO_TEXTS.items()}
            | {"document_positive": passages[row["document_sha256"]]},
            group_id=row["query_id"],
            shape=INF_IR,
        )
        for row in _rows(files[1])
    ]
    count = min(limit, len(found))
    return [found[place * len(found) // count] for place in range(count)]


def split(groups: list[Group]) -> tuple[list[Group], list[Group]]:
    """(training, held out): at most `HELD_OUT_GROUPS`; no query or passage is on both sides."""
    count = min(HELD_OUT_GROUPS, max(1, len(groups) // 4))
    held = groups[:: max(1, len(groups) // count)][:count]
    taken = {key for group in held for key in group.split_keys()}
    return [group for group in groups if taken.isdisjoint(group.split_keys())], held


def random_model(architecture: str, shape: Shape, device: "torch.device") -> "SentenceTransformer":
    """A model with random fp32 weights of a shape, made on the device; our tiny tokenizer."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import AutoConfig, AutoModel

    tiny = build_tiny_model(PREFIX + architecture)
    if not shape:
        return tiny.to(device)
    transformer: Any = tiny[0]
    small = transformer.model.config
    config = AutoConfig.for_model(
        architecture,
        **{**SIZE, **shape},
        pad_token_id=small.pad_token_id,
        bos_token_id=small.bos_token_id,
        eos_token_id=small.eos_token_id,
    )
    torch.manual_seed(0)
    with device:
        transformer.model = AutoModel.from_config(config)
    pooling: Any = tiny[1]
    modules = [transformer, Pooling(shape["hidden_size"], pooling_mode=pooling.pooling_mode)]
    return SentenceTransformer(modules=[*modules, *list(tiny)[2:]]).to(device)


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
