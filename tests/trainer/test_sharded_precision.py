"""Shards in bfloat16 by a gloo group of one: what computes, what is kept, what stays whole."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from trainer.evaluate.scoring import scoring_precision
from trainer.loop import arguments
from trainer.settings.settings import parse_settings

SHARDED = """
import copy, json, sys
import torch
import torch.distributed as dist
from trainer.model.backbone import load_backbone
from trainer.parallel.processes import Processes
from trainer.parallel.sharding import Sharded
from trainer.settings.settings import parse_settings

dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
model = load_backbone(parse_settings({"base_model": "tiny-random-qwen2", "dropout": "0"}))
before = {name: weights.clone() for name, weights in model.state_dict().items()}
copied_at, deepcopy = [], copy.deepcopy
def copied(it, *more):
    if it is model:
        copied_at.append(str(it.device))
    return deepcopy(it, *more)
copy.deepcopy = copied
sharded = Sharded(model, Processes(0, 1), bf16=sys.argv[2] == "bf16")
copy.deepcopy = deepcopy
computed = set()
for part in model.modules():
    if isinstance(part, torch.nn.Linear):
        part.register_forward_hook(
            lambda part, given, out: computed.update((str(part.weight.dtype), str(out.dtype)))
        )
out = model(model.preprocess(["a text", "another"]))["sentence_embedding"]
out.float().sum().backward()
torch.optim.SGD(model.parameters(), 0.1).step()
kept = {str(weights.dtype) for weights in model.parameters()}
gradients = {str(weights.grad.dtype) for weights in model.parameters() if weights.grad is not None}
same = all(torch.equal(before[name], of) for name, of in sharded.plain.state_dict().items())
sharded.restore()
after = model.state_dict()
moved = sum(not torch.equal(before[name], of) for name, of in after.items())
print(json.dumps({
    "computed": sorted(computed), "kept": sorted(kept), "gradients": sorted(gradients),
    "copied_at": copied_at, "copy_is_whole": same, "moved": moved,
    "restored": sorted({str(of.dtype) for of in after.values()}),
}))
dist.destroy_process_group()
"""


@pytest.mark.long
@pytest.mark.parametrize(("precision", "computes"), [("bf16", "bfloat16"), ("fp32", "float32")])
def test_shards_compute_in_bf16_and_stay_float32(
    tmp_path: Path, precision: str, computes: str
) -> None:
    command = [sys.executable, "-c", SHARDED, str(tmp_path / "meet"), precision]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["computed"] == [f"torch.{computes}"]
    assert found["kept"] == found["gradients"] == found["restored"] == ["torch.float32"]
    assert found["copied_at"] == ["cpu"], "the GPU would hold two whole models"
    assert found["copy_is_whole"] and found["moved"] > 0


@pytest.mark.parametrize(
    ("asked", "on_a_gpu", "optimizer"),
    [
        ("adamw", True, "adamw_torch_fused"),
        ("adamw", False, "adamw_torch"),
        ("adamw-8bit", True, "adamw_bnb_8bit"),
    ],
)
def test_adamw_is_fused_where_there_is_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, on_a_gpu: bool, optimizer: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: on_a_gpu)
    monkeypatch.setattr(arguments, "SentenceTransformerTrainingArguments", SimpleNamespace)
    settings = parse_settings({"optimizer": asked, "precision": "fp32"})
    assert arguments.training_arguments(settings, tmp_path).optim == optimizer


@pytest.mark.parametrize("bf16", [True, False])
def test_scoring_on_cuda_is_autocast_only_where_training_is(
    monkeypatch: pytest.MonkeyPatch, bf16: bool
) -> None:
    asked: list[tuple[str, torch.dtype]] = []
    real = torch.autocast

    def autocast(device: str, dtype: torch.dtype) -> torch.autocast:
        asked.append((device, dtype))
        return real("cpu", dtype=dtype)

    monkeypatch.setattr(torch, "autocast", autocast)
    with scoring_precision(torch.device("cuda"), bf16=bf16):
        product = torch.ones(2, 2) @ torch.ones(2, 2)
    assert asked == ([("cuda", torch.bfloat16)] if bf16 else [])
    assert product.dtype == (torch.bfloat16 if bf16 else torch.float32)
