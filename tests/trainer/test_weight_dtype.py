"""Weights are trained in float32, whatever the checkpoint's number type."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from instruct_models import write_instruct
from trainer_jobs import claim, config_for, fit_few

from db.jobs import jobs
from db.store.store import Store
from trainer.launch.here import train
from trainer.loop import group_trainer
from trainer.loop.watch import MovedWeights
from trainer.model import backbone
from trainer.model.backbone import load_backbone, load_model
from trainer.model.lora import attach_lora, merge_lora
from trainer.model.weights import describe_dtypes, stored_dtype
from trainer.settings.settings import parse_settings
from trainer.settings.template import Template


@pytest.fixture
def bf16(tmp_path: Path) -> Path:
    return write_instruct(tmp_path / "bf16", dtype="bfloat16")


@pytest.mark.parametrize("precision", ["auto", "fp32", "bf16"])
def test_a_bfloat16_checkpoint_is_trained_in_float32(bf16: Path, precision: str) -> None:
    assert stored_dtype(str(bf16)) == "bfloat16" and load_model(str(bf16)).dtype == torch.bfloat16
    model = load_backbone(parse_settings({"base_model": str(bf16), "precision": precision}))
    assert {weights.dtype for weights in model.parameters()} == {torch.float32}


def test_adamw_keeps_float32_moments_of_a_bfloat16_checkpoint(
    sqlite_store: Store, tmp_path: Path, bf16: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[torch.dtype] = set()
    save = group_trainer.GroupTrainer._save_optimizer_and_scheduler

    def look(self: Any, folder: str) -> None:
        states = self.optimizer.state_dict()["state"].values()
        seen.update(state["exp_avg_sq"].dtype for state in states)
        save(self, folder)

    monkeypatch.setattr(group_trainer.GroupTrainer, "_save_optimizer_and_scheduler", look)
    config = config_for(tmp_path, base_model=str(bf16), max_steps="1", save_steps="1")
    handle = claim(sqlite_store, config)
    result = train(handle)
    assert seen == {torch.float32}
    assert result["dtypes"] == {"trained": "float32", "stored": "bfloat16"}
    assert stored_dtype(result["path"]) == "float32"
    with sqlite_store.read() as session:
        assert jobs.get_job(session, handle.id).shown["dtypes"] == result["dtypes"]


def test_lora_leaves_a_bfloat16_model_as_it_is_and_trains_float32_additions(bf16: Path) -> None:
    settings = parse_settings({"base_model": str(bf16), "lora_rank": 2})
    model = load_backbone(settings)
    attach_lora(model, Template(), rank=2, alpha=16.0, seed=1)
    assert describe_dtypes(model, str(bf16)) == {
        "trained": "float32",
        "frozen": "bfloat16",
        "stored": "bfloat16",
    }
    loss = model(model.preprocess(["a text"]))["sentence_embedding"].float().pow(2).sum()
    loss.backward()
    assert all(each.grad is not None for each in model.parameters() if each.requires_grad)


def test_merged_additions_are_not_rounded_to_the_number_type_of_the_base(bf16: Path) -> None:
    """Additions a thousandth of a weight: bfloat16 (8 bits) would lose nearly all of them."""
    model = load_backbone(parse_settings({"base_model": str(bf16), "lora_rank": 2}))
    attach_lora(model, Template(), rank=2, alpha=2.0, seed=1)
    layer: Any = model[0].model.layers[0].mlp.up_proj
    up, down = layer.lora_B["default"].weight, layer.lora_A["default"].weight
    with torch.no_grad():
        up.fill_(1e-4)
    wanted = layer.get_base_layer().weight.float() + up @ down
    merge_lora(model)
    merged = model[0].model.layers[0].mlp.up_proj.weight
    assert merged.dtype == torch.float32 and torch.equal(merged, wanted)


def test_a_training_warns_where_a_step_moves_few_weights(
    sqlite_store: Store,
    tmp_path: Path,
    bf16: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As it was: bfloat16 weights under the optimizer, which loses the updates."""
    held = {"held_out": "0", "max_steps": "1", "learning_rate": "1e-6"}
    with caplog.at_level(logging.WARNING, logger="inf.train"):
        train(claim(sqlite_store, config_for(tmp_path / "a", base_model=str(bf16), **held)))
    assert "of the trained weights" not in caplog.text
    original = backbone.load_model
    monkeypatch.setattr(
        backbone, "load_model", lambda name, **options: original(name, remote_code=False)
    )
    with caplog.at_level(logging.WARNING, logger="inf.train"):
        train(claim(sqlite_store, config_for(tmp_path / "b", base_model=str(bf16), **held)))
    assert "step 1 changed only" in caplog.text and "torch.bfloat16" in caplog.text


def test_the_share_of_moved_weights_counts_only_those_with_a_gradient() -> None:
    """Of four weights two have a gradient; a step of 1e-4 moves 0.001, and not 1000 in float32."""
    weights = torch.nn.Parameter(torch.tensor([0.001, 1000.0, 5.0, 5.0]))
    moved = MovedWeights()
    weights.grad = torch.tensor([1.0, 1.0, 0.0, 0.0])
    moved.before([weights])
    with torch.no_grad():
        weights -= 1e-5
    assert moved.after() == 0.5
    assert moved.after() is None


def test_a_model_in_training_is_scored_as_the_folder_it_is_saved_to(tmp_path: Path) -> None:
    """The base model is scored without autocast: a gain must not be one of number types."""
    settings = parse_settings(
        {"base_model": "tiny-random-bert", "precision": "bf16", "rows_per_batch": "4"}
        | {"max_steps": "2", "evaluate_steps": "1"}
    )
    differences = []

    def compare(model: Any, *_: object) -> dict[str, float]:
        saved = load_backbone(settings)
        saved.load_state_dict(model.state_dict())
        given, wanted = (each.encode(["how to bake bread"]) for each in (model, saved))
        differences.append(float(abs(given - wanted).max()))
        return {}

    fit_few(tmp_path, settings, evaluate=compare, score_before=compare, score_after=compare)
    assert differences == [0.0] * 4
