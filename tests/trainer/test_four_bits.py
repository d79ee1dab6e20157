"""bitsandbytes itself, on the CPU where there is no GPU: QLoRA's weights and moments in 8 bits."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiny_language_models
import torch
from tiny_language_models import write_decoder
from trainer_jobs import claim, config_for
from trainer_release import make_rows

from db.store.store import Store
from trainer.launch.here import train
from trainer.model.backbone import load_backbone, load_model
from trainer.model.lora import adapted_layers, attach_lora, merge_lora, unquantized
from trainer.settings.settings import TrainSettings, parse_settings
from trainer.settings.template import Template

pytestmark = pytest.mark.skipif(
    find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed"
)
WIDE = {"hidden_size": 128, "intermediate_size": 256, "num_key_value_heads": 4}
TEXTS = [row["query_positive"] for row in make_rows(4)]


@pytest.fixture(autouse=True)
def wide_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """bitsandbytes packs 32 rows at a time on a CPU."""
    sizes = tiny_language_models.SIZES | WIDE
    monkeypatch.setattr(tiny_language_models, "SIZES", sizes)


def settings_for(folder: Path, **given: str) -> TrainSettings:
    few = {"base_model": str(folder), "rows_per_batch": "4", "max_steps": "4"}
    return parse_settings(few | {"lora_rank": "4", "quantize": "4bit"} | given)


def test_merging_keeps_what_the_layers_in_4_bits_computed(tmp_path: Path) -> None:
    model = load_backbone(settings_for(write_decoder(tmp_path / "base")))
    kinds = {type(each).__name__ for each in model.modules() if isinstance(each, torch.nn.Linear)}
    assert kinds == {"Linear4bit"}
    attach_lora(model, Template(), rank=4, alpha=8, seed=0)
    layers = adapted_layers(model)
    for each in layers.values():
        torch.nn.init.normal_(each.lora_B["default"].weight, std=0.1)
        if each.get_base_layer().bias is not None:  # of queries, keys and values
            torch.nn.init.normal_(each.get_base_layer().bias)
    before = model.encode(TEXTS, normalize_embeddings=True)
    base: Any = next(iter(layers.values())).get_base_layer()
    x = torch.randn(3, base.in_features).to(torch.bfloat16)
    computed = base(x).float()
    assert base.bias is not None and base.bias.any()
    assert torch.allclose(unquantized(base)(x.float()), computed, atol=0.03)
    assert torch.equal(base(x).float(), computed)
    merge_lora(model)
    assert {weights.dtype for weights in model.parameters()} == {torch.float32}
    after = model.encode(TEXTS, normalize_embeddings=True)
    assert ((before * after).sum(axis=1) > 0.999).all()


def test_a_training_in_4_bits_leaves_an_ordinary_model(sqlite_store: Store, tmp_path: Path) -> None:
    base = write_decoder(tmp_path / "base")
    given = {"base_model": str(base), "lora_rank": "4", "quantize": "4bit", "max_steps": "2"}
    result = train(claim(sqlite_store, config_for(tmp_path, **given, learning_rate="1e-2")))
    folder = Path(result["path"])
    assert "quantization" not in (folder / "config.json").read_text()
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float32"
    trained, before = load_model(str(folder)), load_model(str(base))
    assert {weights.dtype for weights in trained.parameters()} == {torch.float32}
    one, other = (each.encode(TEXTS, normalize_embeddings=True) for each in (trained, before))
    alike = (one * other).sum(axis=1)
    assert (alike < 0.9999).all() and (alike > 0.5).all()


def test_moments_in_8_bits_train(sqlite_store: Store, tmp_path: Path) -> None:
    base = write_decoder(tmp_path / "base")
    given = {"base_model": str(base), "optimizer": "adamw-8bit", "max_steps": "2"}
    result = train(claim(sqlite_store, config_for(tmp_path, **given, learning_rate="1e-3")))
    trained, before = load_model(result["path"]), load_model(str(base))
    changed = [
        (old != new).float().mean()
        for old, new in zip(before.parameters(), trained.parameters(), strict=True)
    ]
    assert max(changed) > 0.9
