"""What is done only where there is a GPU, as far as it can be seen without one."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from trainer_jobs import claim, config_for

from db.errors import BadInput
from db.store.store import Store
from trainer.evaluate.scoring import scoring_precision
from trainer.launch.here import train
from trainer.loop import watch
from trainer.loop.precision import uses_bf16
from trainer.model import packing, tree_attention
from trainer.model.backbone import load_backbone
from trainer.model.packing import as_features, enable_packing, pack_rows
from trainer.parallel.processes import joined_group
from trainer.settings.settings import parse_settings


@pytest.mark.parametrize(("rank", "gpus", "place"), [("1", 1, 0), ("1", 2, 1), ("3", 2, 1)])
def test_a_process_beyond_the_last_gpu_shares_one_for_every_library(
    monkeypatch: pytest.MonkeyPatch, rank: str, gpus: int, place: int
) -> None:
    """sentence-transformers, accelerate and DDP read LOCAL_RANK, not the current device."""
    chosen: list[int] = []
    monkeypatch.setenv("LOCAL_RANK", rank)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(dist, "init_process_group", lambda *_, **__: None)
    monkeypatch.setattr(dist, "destroy_process_group", lambda: None)
    monkeypatch.setattr(dist, "get_rank", lambda: int(rank))
    with joined_group(4) as processes:
        assert processes.rank == int(rank)
        assert chosen == [place] and os.environ["LOCAL_RANK"] == str(place)


def test_bfloat16_that_is_emulated_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A T4: PyTorch says yes unless it is requested to leave emulation out."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation
    )
    assert not uses_bf16("auto") and uses_bf16("bf16") and not uses_bf16("fp32")


def test_scoring_on_cuda_uses_tf32_and_restores_the_setting() -> None:
    before = torch.get_float32_matmul_precision()
    with scoring_precision(torch.device("cuda")):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before
    with scoring_precision(torch.device("cpu"), bf16=True):
        assert torch.get_float32_matmul_precision() == before


def packed(model: Any) -> dict[str, torch.Tensor]:
    texts = [[5, 6, 7, 8, n, n + 1] for n in range(10, 30)]
    return as_features(pack_rows(texts, [0] * len(texts)), 0)


def test_attention_by_parts_builds_no_dense_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_backbone(parse_settings({"base_model": "tiny-random-qwen2"}))
    enable_packing(model)
    with torch.no_grad():
        wanted = model(packed(model))["sentence_embedding"]

    def refuse(*_: Any) -> torch.Tensor:
        raise AssertionError("a dense mask was built")

    monkeypatch.setattr(packing, "tree_mask", refuse)
    with torch.no_grad():
        assert torch.equal(model(packed(model))["sentence_embedding"], wanted)


def test_layers_that_cannot_go_by_parts_still_get_the_dense_mask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if every layer had a soft cap; transformers' own function ignores it."""
    model = load_backbone(parse_settings({"base_model": "tiny-random-qwen2"}))
    enable_packing(model)
    with torch.no_grad():
        wanted = model(packed(model))["sentence_embedding"]
    monkeypatch.setattr(tree_attention, "BEYOND", ("tree_is_refused",))
    attend = tree_attention.tree_attention

    def capped(*arguments: Any, **options: Any) -> Any:
        return attend(*arguments, **options, tree_is_refused=True)

    from transformers import AttentionInterface

    AttentionInterface.register(tree_attention.NAME, capped)
    try:
        with torch.no_grad():
            found = model(packed(model))["sentence_embedding"]
    finally:
        AttentionInterface.register(tree_attention.NAME, attend)
    assert torch.allclose(found, wanted, atol=1e-6)


def test_a_nan_loss_is_not_scored_and_not_saved(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss is read where the trainer logs; what is due before that looks first."""
    scored: list[int] = []
    original = watch.Watch._score
    monkeypatch.setattr(
        watch.Watch,
        "_score",
        lambda self, model, step, control: (
            scored.append(step),
            original(self, model, step, control),
        ),
    )
    every = {"evaluate_steps": "1", "save_steps": "1", "best_by": "mrr"}
    config = config_for(tmp_path, learning_rate="1e30", epochs="5", **every)
    handle = claim(sqlite_store, config)
    with pytest.raises(BadInput, match=r"the loss is nan at step (\d+)|NaN or infinite") as refused:
        train(handle)
    work = tmp_path / "inf-home" / "training" / handle.key
    assert len(list(work.glob("checkpoint-*/trainer_state.json"))) <= len(scored)
    assert "step" in str(refused.value)
