"""attention=flash, with a CPU emulation of the kernels: transformers' own code around them is real.

Nothing here ran on a GPU.
"""

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from trainer_jobs import claim, config_for, fit_few
from transformers import PreTrainedModel, modeling_flash_attention_utils

from db.errors import BadInput
from db.store.store import Store
from trainer.evaluate.job import evaluate
from trainer.launch.here import train
from trainer.model import backbone
from trainer.model.tiny import build_tiny_model
from trainer.settings.settings import parse_settings

FEW = {"rows_per_batch": "4", "max_steps": "2", "objective": "P,I:multi", "dropout": "0"}


def dense(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, **_: Any) -> Tensor:
    """flash_attn_func: (B, L, heads, d), half precision alone."""
    if q.dtype not in (torch.float16, torch.bfloat16):
        raise RuntimeError("FlashAttention only support fp16 and bf16 data type")
    query, key, value = (each.transpose(1, 2) for each in (q, k, v))
    found = scaled_dot_product_attention(query, key, value, is_causal=causal, enable_gqa=True)
    return found.transpose(1, 2)


def ragged(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
    """flash_attn_varlen_func: (tokens, heads, d), text after text."""
    ends = given["cu_seqlens_q"].tolist()
    assert ends == given["cu_seqlens_k"].tolist()
    parts = [
        dense(q[None, a:b], k[None, a:b], v[None, a:b], causal=given["causal"])[0]
        for a, b in itertools.pairwise(ends)
    ]
    return torch.cat(parts)


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels on the CPU; unpadding, packing and masks are transformers' own."""
    names: Any = modeling_flash_attention_utils
    monkeypatch.setattr(names, "_loaded_implementation", "flash_attention_2")
    monkeypatch.setattr(names, "_flash_fn", dense, raising=False)
    monkeypatch.setattr(names, "_flash_varlen_fn", ragged, raising=False)
    monkeypatch.setattr(names, "_flash_with_kvcache_fn", None, raising=False)
    monkeypatch.setattr(names, "_pad_fn", names._pad_input, raising=False)
    monkeypatch.setattr(names, "_unpad_fn", names._unpad_input, raising=False)
    process = names._lazy_define_process_function
    monkeypatch.setattr(names, "_process_flash_kwargs_fn", process(ragged), raising=False)
    monkeypatch.setattr(names, "_process_with_kvcache_kwargs_fn", dict, raising=False)
    monkeypatch.setattr(PreTrainedModel, "_flash_attn_can_dispatch", lambda *_, **__: True)
    monkeypatch.setattr(backbone, "require_packages", lambda **_: None)


def losses(tmp_path: Any, **given: str) -> list[float]:
    found: list[float] = fit_few(tmp_path, parse_settings(FEW | given))["losses"]
    return found


@pytest.mark.parametrize("architecture", ["qwen2", "bert"])
@pytest.mark.parametrize("lora_rank", ["0", "2"])
def test_the_term_i_trains_under_flash_attention_as_it_does_without(
    emulated: None, tmp_path: Any, architecture: str, lora_rank: str
) -> None:
    """On a decoder every instruction-query is encoded whole: a mask of four axes would end in an
    IndexError here and in an assert on CUDA. With LoRA the frozen weights are bfloat16."""
    folder = tmp_path / "base"
    build_tiny_model(f"tiny-random-{architecture}").to(torch.bfloat16).save(str(folder))
    given = {"base_model": str(folder), "precision": "bf16", "lora_rank": lora_rank}
    plain = losses(tmp_path / "sdpa", **given, attention="sdpa", packing="off")
    assert losses(tmp_path / "flash", **given, attention="flash") == pytest.approx(plain, rel=0.02)


def test_flash_attention_in_float32_is_refused_before_a_model_is_loaded() -> None:
    with pytest.raises(BadInput, match="attention=flash computes in bfloat16 alone"):
        parse_settings({"attention": "flash", "precision": "fp32"})


def test_flash_attention_is_refused_on_a_gpu_without_bfloat16(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: False)
    with pytest.raises(BadInput, match="attention=flash needs a GPU with bfloat16 units"):
        backbone.require_packages(attention="flash")


def test_the_base_of_a_model_trained_with_flash_attention_is_scored_without_it(
    emulated: None, sqlite_store: Store, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scoring is in float32, which the kernels refuse."""
    given = {"base_model": "tiny-random-qwen2", "precision": "bf16", "held_out": "0"}
    config = config_for(tmp_path, **FEW, **given, attention="flash")
    path = train(claim(sqlite_store, config))["path"]
    asked = {"models": [path], "release": config["release"], "held_out": 0.3}
    scored = evaluate(claim(sqlite_store, asked, "evaluate"))["models"]
    assert [each["model"] for each in scored] == ["tiny-random-qwen2", path]
