"""LoRA: by hand, merged = unmerged, only the additions train, resume, an ordinary checkpoint."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn
from trainer_jobs import claim, config_for

from db.jobs.runner import Cancelled, JobHandle
from db.store.store import Store
from trainer.launch.here import train
from trainer.model.backbone import load_model
from trainer.model.lora import LoraLinear, attach_lora, merge_lora

TEXTS = ["how long is the bridge", "of stone"]


def test_the_addition_by_hand() -> None:
    base = nn.Linear(2, 1, bias=False)
    base.weight.data = torch.tensor([[1.0, 2.0]])
    layer = LoraLinear(base, rank=1, alpha=3.0)
    layer.down.data, layer.up.data = torch.tensor([[1.0, 1.0]]), torch.tensor([[0.5]])
    x = torch.tensor([[1.0, 10.0]])
    # 1·1 + 2·10 = 21, and 3/1 · 0.5 · (1 + 10) = 16.5
    assert layer(x).item() == pytest.approx(37.5)
    assert layer.merged()(x).item() == pytest.approx(37.5)


@pytest.mark.parametrize("architecture", ["bert", "qwen2"])
def test_lora_starts_at_the_base_model_and_merges_exactly(architecture: str) -> None:
    model = load_model(f"tiny-random-{architecture}")
    names = list(model.state_dict())
    before = model.encode(TEXTS)
    attach_lora(model, rank=4, alpha=8, seed=1)
    assert np.array_equal(model.encode(TEXTS), before)
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == name.endswith((".up", ".down"))
        if name.endswith(".up"):
            nn.init.normal_(parameter, std=0.2)
    changed = model.encode(TEXTS)
    assert np.abs(changed - before).max() > 1e-3
    merge_lora(model)
    assert np.allclose(model.encode(TEXTS), changed, atol=1e-6)
    assert list(model.state_dict()) == names


def test_a_stopped_lora_training_resumes_and_gives_an_ordinary_model(
    sqlite_store: Store, tmp_path: Path
) -> None:
    settings = {"lora_rank": "4", "epochs": "2", "save_steps": "1", "learning_rate": "1e-3"}
    whole = train(claim(sqlite_store, config_for(tmp_path / "a", **settings)))
    handle = claim(sqlite_store, config_for(tmp_path / "b", **settings))
    record = handle.metrics

    def stop_after_two(step: int, values: dict[str, float]) -> None:
        record(step, values)
        if step == 2:
            handle.stop()

    handle.metrics = stop_after_two  # type: ignore[method-assign]
    with pytest.raises(Cancelled):
        train(handle)
    again = train(JobHandle(sqlite_store, handle.id, handle.attempt))
    assert again["loss_last"] == whole["loss_last"]
    with safe_open(Path(again["path"]) / "model.safetensors", "pt") as weights:
        assert not [name for name in weights.keys() if "base" in name]  # noqa: SIM118
    here, there = (load_model(result["path"]).encode(TEXTS) for result in (whole, again))
    assert np.array_equal(here, there)
    base = load_model("tiny-random-bert")
    frozen = "0.model.embeddings.word_embeddings.weight"
    trained = load_model(again["path"])
    assert torch.equal(trained.state_dict()[frozen], base.state_dict()[frozen])
