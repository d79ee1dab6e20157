"""LoRA: by hand, merged = unmerged, only the additions train, resume, an ordinary checkpoint."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from sentence_transformers import SentenceTransformer
from tiny_language_models import OTHERS, write_other
from torch import nn
from trainer_jobs import claim, config_for, fit_few, train_until

from db.errors import BadInput
from db.store.store import Store
from trainer.launch.here import train
from trainer.model.backbone import load_backbone, load_model
from trainer.model.lora import adapted_layers, attach_lora, merge_lora
from trainer.settings.settings import parse_settings
from trainer.settings.template import Template

TEXTS = ["how long is the bridge", "of stone"]


def test_the_addition_by_hand() -> None:
    from peft import LoraConfig, inject_adapter_in_model

    model: Any = nn.Sequential(nn.Linear(2, 1, bias=False))
    model[0].weight.data = torch.tensor([[1.0, 2.0]])
    inject_adapter_in_model(LoraConfig(r=1, lora_alpha=3.0, target_modules=["0"]), model)
    (layer,) = adapted_layers(model).values()
    layer.lora_A["default"].weight.data = torch.tensor([[1.0, 1.0]])
    layer.lora_B["default"].weight.data = torch.tensor([[0.5]])
    x = torch.tensor([[1.0, 10.0]])
    # 1·1 + 2·10 = 21, and 3/1 · 0.5 · (1 + 10) = 16.5
    assert model(x).item() == pytest.approx(37.5)
    merge_lora(model)
    assert type(model[0]) is nn.Linear and model(x).item() == pytest.approx(37.5)


def test_doras_weight_by_hand() -> None:
    from peft import LoraConfig, inject_adapter_in_model

    model: Any = nn.Sequential(nn.Linear(2, 1, bias=False))
    model[0].weight.data = torch.tensor([[3.0, 4.0]])
    config = LoraConfig(r=1, lora_alpha=3.0, target_modules=["0"], use_dora=True)
    inject_adapter_in_model(config, model)
    (layer,) = adapted_layers(model).values()
    layer.lora_A["default"].weight.data = torch.tensor([[1.0, 1.0]])
    layer.lora_B["default"].weight.data = torch.tensor([[0.5]])
    layer.lora_magnitude_vector["default"].weight.data = torch.tensor([10.0])  # 5 = ‖W‖ at first
    x = torch.tensor([[1.0, 10.0]])
    # V = W + 3/1 · 0.5 · (1, 1) = (4.5, 5.5), 10 · V / ‖V‖ = 10 · (4.5 + 55) / √50.5
    assert model(x).item() == pytest.approx(595 / 50.5**0.5)
    merge_lora(model)
    assert type(model[0]) is nn.Linear and model(x).item() == pytest.approx(595 / 50.5**0.5)


def base_of(folder: Path, architecture: str) -> SentenceTransformer:
    name = f"tiny-random-{architecture}"
    if architecture in OTHERS:
        name = str(write_other(folder / architecture, architecture))
    return load_backbone(parse_settings({"base_model": name}))


@pytest.mark.parametrize("dora", [False, True])
@pytest.mark.parametrize("architecture", ["bert", "qwen2", "gpt2", "mamba"])
def test_lora_starts_at_the_base_model_trains_and_merges_exactly(
    tmp_path: Path, architecture: str, dora: bool
) -> None:
    """GPT-2's linear layers have transposed weights; Mamba reads most of its own without calling
    them: an adapter there would be trained by nothing."""
    model = base_of(tmp_path, architecture)
    names = list(model.state_dict())
    before = model.encode(TEXTS)
    attach_lora(model, Template(), rank=4, alpha=8, seed=1, dora=dora)
    assert np.array_equal(model.encode(TEXTS), before)
    features = model.train()(model.preprocess(TEXTS))
    features["sentence_embedding"][:, 0].sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == (".lora_" in name), name
        if ".lora_B." in name:
            assert parameter.grad is not None and parameter.grad.any(), name
            nn.init.normal_(parameter, std=0.2)
        if ".lora_magnitude_vector." in name:
            assert dora and parameter.grad is not None and parameter.grad.any(), name
            parameter.data.mul_(1.5)
    changed = model.eval().encode(TEXTS)
    assert np.abs(changed - before).max() > 1e-3
    merge_lora(model)
    assert np.allclose(model.encode(TEXTS), changed, atol=2e-6)
    assert list(model.state_dict()) == names


@pytest.mark.long
@pytest.mark.parametrize("architecture", ["gpt2", "mamba"])
def test_gpt2_and_mamba_train_with_lora_and_are_saved_as_ordinary_models(
    sqlite_store: Store, tmp_path: Path, architecture: str
) -> None:
    base = write_other(tmp_path / "base", architecture)
    given = {"base_model": str(base), "lora_rank": "4", "max_steps": "3", "learning_rate": "1e-2"}
    result = train(claim(sqlite_store, config_for(tmp_path, **given, objective="P,I:multi")))
    trained, before = load_model(result["path"]), load_model(str(base))
    assert not np.allclose(trained.encode(TEXTS), before.encode(TEXTS), atol=1e-3)


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is:FutureWarning")  # of PEFT
def test_dora_trains_and_its_kept_adapters_are_read_by_peft(
    sqlite_store: Store, tmp_path: Path
) -> None:
    from peft import PeftModel

    given = {"lora_rank": "2", "dora": "on", "keep_adapters": "on", "max_steps": "3"}
    result = train(claim(sqlite_store, config_for(tmp_path, **given, learning_rate="1e-2")))
    lengths = {"learning_rate": "1e-2", "max_steps": "3"}
    base: Any = load_backbone(parse_settings({"base_model": "tiny-random-bert"} | lengths))
    before = base.encode(TEXTS)
    PeftModel.from_pretrained(base[0].model, str(Path(result["path"]) / "adapters"))  # in place
    trained = load_model(result["path"]).encode(TEXTS)
    assert np.abs(trained - before).max() > 1e-3
    assert np.allclose(base.encode(TEXTS), trained, atol=2e-6)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"dora": "on"}, "dora=on applies only to LoRA"),
        ({"dora": "on", "lora_rank": "2", "quantize": "4bit"}, "dora=on"),
        ({"dora": "on", "lora_rank": "2", "fsdp": "on"}, "dora=off"),
        ({"keep_adapters": "on", "lora_rank": "2", "encoders": "two"}, "encoders=shared"),
    ],
)
def test_what_adapters_cannot_do_is_refused_before_training(
    given: dict[str, str], named: str
) -> None:
    with pytest.raises(BadInput, match=named):
        parse_settings(given)


def test_a_state_to_resume_from_holds_the_adapters_and_not_the_base(tmp_path: Path) -> None:
    settings = {"base_model": "tiny-random-bert", "lora_rank": "2", "max_steps": "2"}
    settings |= {"save_steps": "1", "evaluate_steps": "1", "best_by": "mrr"}
    fit_few(tmp_path, parse_settings(settings), evaluate=lambda _: {"mrr": 0.5})
    states = sorted((tmp_path / "work").rglob("weights.safetensors"))
    assert {each.parent.name.split("-")[0] for each in states} == {"checkpoint", "best"}
    for state in states:
        with safe_open(state, "pt") as weights:
            names = list(weights.keys())
        assert names and all(".lora_" in name for name in names), state


@pytest.mark.long
def test_a_stopped_lora_training_resumes_and_gives_an_ordinary_model(
    sqlite_store: Store, tmp_path: Path
) -> None:
    settings = {"lora_rank": "4", "epochs": "2", "save_steps": "1", "learning_rate": "1e-3"}
    whole = train(claim(sqlite_store, config_for(tmp_path / "a", **settings)))
    again = train(train_until(sqlite_store, config_for(tmp_path / "b", **settings), step=2))
    assert again["loss_last"] == whole["loss_last"]
    with safe_open(Path(again["path"]) / "model.safetensors", "pt") as weights:
        assert not [name for name in weights.keys() if "base" in name]  # noqa: SIM118
    here, there = (load_model(result["path"]).encode(TEXTS) for result in (whole, again))
    assert np.array_equal(here, there)
    base = load_model("tiny-random-bert")
    frozen = "0.model.embeddings.word_embeddings.weight"
    trained = load_model(again["path"])
    assert torch.equal(trained.state_dict()[frozen], base.state_dict()[frozen])
