"""The environment of a check, and the traps that a model's weights and tokenizer set."""

import importlib.metadata
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

import torch

from db.shape import INF_IR
from trainer.check.material import random_groups
from trainer.check.report import Part
from trainer.data.batch_sample import sample_of
from trainer.loop.embedding_loss import columns_of
from trainer.loop.fitting import make_loss
from trainer.loop.packing_check import make_collator
from trainer.loop.watch import MovedWeights
from trainer.model.backbone import load_backbone
from trainer.model.tiny import build_tiny_model
from trainer.model.weights import describe_dtypes
from trainer.settings.settings import parse_settings

PACKAGES = (
    *("torch", "transformers", "sentence-transformers", "accelerate", "numpy", "tokenizers"),
    *("safetensors", "datasets", "scikit-learn", "sqlalchemy", "streamlit", "click"),
    *("flash-attn", "bitsandbytes", "triton"),
)
CHAT = (
    "{% for message in messages %}<s>{{ message['role'] }}:{{ message['content'] }}</s>\n"
    "{% endfor %}"
)
MIN_MOVED = 0.5


def report_environment(part: Part, missing: list[str]) -> None:
    """Versions, CPU, GPUs and what they support; `missing`: packages with a stand-in."""
    part.add(what="Python", value=platform.python_version())
    part.add(what="CPU cores", value=os.cpu_count())
    part.add(what="threads of PyTorch", value=torch.get_num_threads())
    for name in PACKAGES:
        try:
            part.add(what=name, value=importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            part.add(what=name, value=None)
    part.add(what="CUDA of PyTorch", value=torch.version.cuda)
    for number in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(number)
        part.add(what=f"GPU {number}", value=facts.name)
        part.add(what=f"GPU {number}: compute capability", value=f"{facts.major}.{facts.minor}")
        part.add(what=f"GPU {number}: memory, GB", value=facts.total_memory / 1e9)
    if torch.cuda.is_available():
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        part.add(what="bfloat16 units", value=native)
        part.add(what="NCCL", value=torch.distributed.is_nccl_available())
    else:
        part.skip("GPU", "PyTorch sees none")
    for name in missing:
        part.notes.append(f"{name} is not installed: a stand-in serves sentence-transformers")


def check_traps(part: Part, models: list[str]) -> None:
    """Weights stored in bfloat16 or float16 train in float32 and move; chat templates are off."""
    with tempfile.TemporaryDirectory(prefix="inf-check-") as folder:
        for stored in ("bfloat16", "float16", "float32"):
            place = Path(folder) / stored
            _write_instruct(place, stored)
            _check_model(part, str(place), f"tiny decoder stored in {stored}", wants=stored)
        for model in models:
            _check_model(part, model, Path(model).name or model)


def _check_model(part: Part, name: str, shown: str, wants: str = "") -> None:
    settings = parse_settings(
        {"base_model": name, "learning_rate": "5e-5", "query_tokens": "64", "passage_tokens": "64"}
    )
    model = load_backbone(settings)
    dtypes = describe_dtypes(model, name)
    groups = random_groups(2)
    batch = make_collator(model, groups, settings)([group.row() for group in groups])
    columns, tables = columns_of(batch, model.device)
    texts = sample_of(model, columns, tables, limit=1)
    text = settings.parsed_template.apply(groups[0].text("I+"), groups[0].text("Q+"))
    plain = texts["matched"][0]
    moved = _share_moved(model, settings, columns, tables)
    part.add(
        model=shown,
        stored=dtypes.get("stored"),
        trained=dtypes["trained"],
        weights_moved=moved,
        first_text=plain,
        extra_tokens=len(model.tokenizer(plain, add_special_tokens=False)["input_ids"])
        - len(model.tokenizer(text, add_special_tokens=False)["input_ids"]),
    )
    part.require(dtypes["trained"] == "float32", f"{shown} trains in {dtypes['trained']}")
    part.require(moved >= MIN_MOVED, f"{shown}: a step moves {moved:.0%} of the weights")
    part.require("user:" not in plain, f"{shown}: a chat template is wrapped round the texts")
    if wants:
        part.require(dtypes.get("stored") == wants, f"{shown} is stored in {dtypes.get('stored')}")


def _share_moved(model: Any, settings: Any, columns: Any, tables: Any) -> float:
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate)
    make_loss(model.train(), settings, shape=INF_IR)(columns, tables).backward()
    watch = MovedWeights()
    watch.before(model.parameters())
    optimizer.step()
    return watch.after() or 0.0


def _write_instruct(folder: Path, dtype: str) -> None:
    """A plain transformer folder as instruct models are published: a chat template, this dtype."""
    model: Any = build_tiny_model("tiny-random-qwen2")
    model.tokenizer.chat_template = CHAT
    model[0].model.to(getattr(torch, dtype)).save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
