"""The settings people expect of a trainer: each acts, or is refused with the reason."""

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_language_models import other_transformer
from torch import nn
from trainer_jobs import claim, config_for
from trainer_release import make_rows, write_release

from db.errors import BadInput
from db.shape import INF_IR
from db.store.store import Store
from trainer.data.batches import build_batch, with_plain_rows
from trainer.data.groups import Group, group_of
from trainer.data.release_files import read_release
from trainer.launch.here import train
from trainer.launch.plan import plan_settings
from trainer.launch.request import TrainStart
from trainer.loop.arguments import step_count, training_arguments
from trainer.loop.embedding_loss import EmbeddingLoss, objective_loss
from trainer.loop.fitting import fit, prepare_weights
from trainer.loop.group_trainer import rate_share
from trainer.loop.packing_check import make_collator
from trainer.model.backbone import load_backbone, load_model
from trainer.model.trained_weights import set_dropout
from trainer.settings.settings import TrainSettings, parse_settings
from trainer.settings.template import Template

GROUPS: list[Group] = [group_of(row, shape=INF_IR) for row in make_rows(8)]


def settings_for(**given: str) -> TrainSettings:
    few = {"base_model": "tiny-random-bert", "rows_per_batch": "4", "max_steps": "4"}
    return parse_settings(few | {"save_steps": "100", "precision": "fp32"} | given)


def run(tmp_path: Path, **given: str) -> tuple[Any, list[tuple[int, dict[str, float]]]]:
    """(the trained model, the numbers of every step)."""
    settings = settings_for(**given)
    model = load_backbone(settings)
    numbers: list[tuple[int, dict[str, float]]] = []
    groups = read_release(write_release(tmp_path / "release", 8)).groups
    fit(
        model,
        groups,
        settings,
        tmp_path / "work",
        report=lambda *_: None,
        stream=lambda step, values: numbers.append((step, dict(values))),
    )
    return model, numbers


def rates(numbers: list[tuple[int, dict[str, float]]]) -> list[float]:
    return [values["learning_rate"] for _, values in numbers]


def test_the_rate_rises_over_the_warm_up_and_falls_by_the_schedule(tmp_path: Path) -> None:
    """4 steps, warm-up 2: 0, 1/2 of the rate, then from 1 down to 0 over the last two."""
    found = rates(run(tmp_path / "a", learning_rate="1e-4", warmup="2")[1])
    assert found == pytest.approx([0, 0.5e-4, 1e-4, 0.5e-4])
    found = rates(run(tmp_path / "b", learning_rate="1e-4", schedule="cosine")[1])
    wanted = [0.5e-4 * (1 + math.cos(math.pi * step / 4)) for step in range(4)]
    assert found == pytest.approx(wanted)
    found = rates(run(tmp_path / "c", learning_rate="1e-4", schedule="constant")[1])
    assert found == pytest.approx([1e-4] * 4)


def test_with_a_limit_of_seconds_the_same_shapes_follow_the_clock() -> None:
    assert rate_share("linear", 0.25, 9, 0) == pytest.approx(0.75)
    assert rate_share("cosine", 0.5, 9, 0) == pytest.approx(0.5)
    assert rate_share("constant", 0.9, 9, 0) == 1.0
    assert rate_share("linear", 0.0, 0, 3) == pytest.approx(0.25)  # first of three warm-up steps


def test_weight_decay_shrinks_weights_that_have_no_gradient_of_their_own(tmp_path: Path) -> None:
    """Decay alone: with a rate of 1e-2 and decay 1 a step multiplies by 0.99 besides Adam's."""
    given = {"learning_rate": "1e-2", "schedule": "constant", "max_steps": "1"}
    plain, _ = run(tmp_path / "a", **given)
    decayed, _ = run(tmp_path / "b", **given, weight_decay="1")
    start = load_backbone(settings_for()).state_dict()
    name = "0.model.encoder.layer.0.output.dense.weight"
    difference = plain.state_dict()[name] - decayed.state_dict()[name]
    assert torch.allclose(difference, 0.01 * start[name], atol=1e-6)
    bias = "0.model.encoder.layer.0.output.dense.bias"
    assert torch.equal(plain.state_dict()[bias], decayed.state_dict()[bias])


def test_gradients_are_clipped_at_the_norm_that_is_set() -> None:
    arguments = training_arguments(settings_for(clip_norm="0.25"), Path("work"))
    assert arguments.max_grad_norm == 0.25
    assert training_arguments(settings_for(), Path("work")).max_grad_norm == 1.0


def test_accumulated_batches_make_one_step_of_their_mean_gradient(tmp_path: Path) -> None:
    """8 groups, batches of 4: two accumulated batches are one step an epoch."""
    settings = settings_for(max_steps="0", epochs="3", accumulation_steps="2")
    assert step_count(settings, 8) == 3
    _, numbers = run(tmp_path, max_steps="0", epochs="3", accumulation_steps="2", dropout="0")
    assert [step for step, _ in numbers] == [1, 2, 3]
    _, alone = run(tmp_path, max_steps="2", learning_rate="1e-9", dropout="0", save_steps="9")
    mean = sum(values["loss"] for _, values in alone) / 2
    assert numbers[0][1]["loss"] == pytest.approx(mean, rel=1e-3)


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
def test_8_bit_moments_need_bitsandbytes() -> None:
    with pytest.raises(BadInput, match="needs the package bitsandbytes"):
        plan_settings(TrainStart(release="1", settings={"optimizer": "adamw-8bit"}), 1)


def test_dropout_is_set_in_every_layer_and_minus_one_leaves_the_models_own() -> None:
    model = load_backbone(settings_for())
    own = [module.p for module in model.modules() if isinstance(module, nn.Dropout)]
    prepare_weights(model, settings_for())
    assert [m.p for m in model.modules() if isinstance(m, nn.Dropout)] == own and any(own)
    prepare_weights(model, settings_for(dropout="0.3"))
    assert {m.p for m in model.modules() if isinstance(m, nn.Dropout)} == {0.3}
    decoder = load_backbone(settings_for(base_model="tiny-random-qwen2"))
    prepare_weights(decoder, settings_for(base_model="tiny-random-qwen2", dropout="0.3"))
    layers: Any = decoder[0]
    assert layers.model.layers[0].self_attn.attention_dropout == 0.3
    for architecture in ("opt", "biogpt", "t5", "xlm"):  # dropout by a function of the layer
        transformer = other_transformer(architecture).train()
        ids = torch.arange(3, 15).reshape(2, 6)
        states = [transformer(ids, attention_mask=ids > 0).last_hidden_state for _ in range(2)]
        assert not torch.equal(*states), architecture
        set_dropout(transformer, 0.0)
        states = [transformer(ids, attention_mask=ids > 0).last_hidden_state for _ in range(2)]
        assert torch.equal(*states), architecture
    with pytest.raises(BadInput, match=r"dropout=-0\.5"):
        settings_for(dropout="-0.5")


def test_frozen_weights_stay_and_the_others_move(tmp_path: Path) -> None:
    start = load_backbone(settings_for()).state_dict()
    model, _ = run(tmp_path, freeze="*embeddings*, *layer.0.*", learning_rate="1e-3")
    for name, weights in model.state_dict().items():
        stays = "embeddings" in name or "layer.0." in name or "pooler" in name
        assert torch.equal(weights, start[name]) or not stays, name
    moved = "0.model.encoder.layer.1.output.dense.weight"
    assert not torch.equal(model.state_dict()[moved], start[moved])
    for pattern, message in (("*nothing*", "fits no weight"), ("*", "nothing is left to train")):
        with pytest.raises(BadInput, match=message):
            prepare_weights(load_backbone(settings_for()), settings_for(freeze=pattern))
    with pytest.raises(BadInput, match="no effect with lora_rank"):
        settings_for(freeze="*embeddings*", lora_rank="4")


def test_lora_reaches_the_named_layers_alone_with_its_dropout() -> None:
    settings = settings_for(lora_rank="4", lora_targets="query, value", lora_dropout="0.5")
    model = load_backbone(settings)
    prepare_weights(model, settings)
    trained = {n.split(".")[-4] for n, weights in model.named_parameters() if weights.requires_grad}
    assert trained == {"query", "value"}
    texts = ["how long is the bridge"]
    for name, weights in model.named_parameters():
        if ".lora_B." in name:
            nn.init.normal_(weights, std=0.2)
    model.train()
    two = [model(model.preprocess(texts))["sentence_embedding"] for _ in range(2)]
    assert not torch.equal(*two)
    with pytest.raises(
        BadInput, match="no linear layer 'q_proj' that an adapter reaches, there is dense"
    ):
        prepare_weights(
            load_backbone(settings_for()), settings_for(lora_rank="4", lora_targets="q_proj")
        )
    with pytest.raises(BadInput, match=r"lora_dropout=0\.1 applies only to LoRA"):
        settings_for(lora_dropout="0.1")


def test_kept_adapters_are_the_difference_from_the_base_model(
    sqlite_store: Store, tmp_path: Path
) -> None:
    given = {"lora_rank": "4", "lora_alpha": "8", "keep_adapters": "on", "max_steps": "2"}
    result = train(claim(sqlite_store, config_for(tmp_path, **given, learning_rate="1e-2")))
    folder = Path(result["path"])
    adapters = load_file(folder / "adapters" / "adapter_model.safetensors")
    config = json.loads((folder / "adapters" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (4, 8)
    assert "encoder.layer.0.attention.self.query" in config["target_modules"]
    assert config["base_model_name_or_path"] == "tiny-random-bert"
    layer = "encoder.layer.0.attention.self.query"
    key = f"base_model.model.{layer}"
    added = 8 / 4 * adapters[f"{key}.lora_B.weight"] @ adapters[f"{key}.lora_A.weight"]
    base: Any = load_backbone(settings_for())[0]
    merged = load_file(folder / "model.safetensors")[f"{layer}.weight"]
    assert added.abs().max() > 0
    assert torch.allclose(merged, base.model.state_dict()[f"{layer}.weight"] + added, atol=1e-6)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_flash_attention_is_refused_without_a_gpu() -> None:
    with pytest.raises(BadInput, match="attention=flash needs an NVIDIA GPU"):
        load_backbone(settings_for(attention="flash", precision="auto"))


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
def test_4_bit_weights_need_bitsandbytes() -> None:
    with pytest.raises(BadInput, match="quantize=4bit needs the package bitsandbytes"):
        load_backbone(settings_for(quantize="4bit", lora_rank="4"))


def test_4_bit_weights_need_lora() -> None:
    with pytest.raises(BadInput, match="quantize=4bit applies only to LoRA: give lora_rank=16"):
        settings_for(quantize="4bit")


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_attention_is_computed_as_chosen(attention: str) -> None:
    model: Any = load_backbone(settings_for(attention=attention))
    assert model[0].model.config._attn_implementation == attention


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
def test_compile_compiles_the_transformer_in_place() -> None:
    model: Any = load_backbone(settings_for())
    names = list(model.state_dict())
    prepare_weights(model, settings_for(compile="on"))  # the compiler itself runs at the first step
    assert model[0].model._compiled_call_impl is not None
    assert list(model.state_dict()) == names
    with pytest.raises(BadInput, match="fsdp=on needs compile=off"):
        settings_for(compile="on", fsdp="on")


def test_a_matryoshka_loss_is_the_mean_over_the_whole_and_the_cut_vectors() -> None:
    settings = settings_for(objective="P,I:multi", matryoshka="8, 16")
    model = load_backbone(settings)
    objective = settings.parsed_objective
    batch = make_collator(model, GROUPS[:3], settings)([group.row() for group in GROUPS[:3]])
    tables = batch["label"]
    columns = [torch.randn(len(batch[f"{n}_input_ids"]), 32) for n in ("queries", "passages")]
    loss = EmbeddingLoss(
        model, objective, temperature=0.05, sizes=settings.matryoshka_sizes, shape=INF_IR
    )
    found = loss.calculate_loss([[column] for column in columns], tables)
    parts = [
        objective_loss(objective, [column[:, :size] for column in columns], tables, 0.05)
        for size in (32, 16, 8)
    ]
    assert found.item() == pytest.approx(torch.stack(parts).mean().item())
    with pytest.raises(BadInput, match="64 is not less than the 32 numbers"):
        prepare_weights(model, settings_for(matryoshka="64"))
    with pytest.raises(BadInput, match="'x' is not a number of dimensions"):
        settings_for(matryoshka="x")


def test_a_plain_row_has_no_instruction_and_both_its_passages_answer_the_query() -> None:
    (plain,) = with_plain_rows(GROUPS[:1], 0.999999)
    assert plain.triplets() == (
        ("", plain.text("Q+"), plain.text("P+")),
        ("", plain.text("Q+"), plain.text("P1-")),
        ("", plain.text("Q-"), plain.text("P2-")),
    )
    objective = parse_settings({"objective": "P,I:multi"}).parsed_objective
    batch = build_batch([plain, GROUPS[1]], Template(), objective)
    assert batch.queries[: batch.matched] == [
        plain.text("Q+"),
        plain.text("Q-"),
        *dict.fromkeys(Template().apply(i, q) for i, q, _ in GROUPS[1].triplets()),
    ]
    assert all(place == -1 for row in batch.crossed_of[:3] for place in row)
    alone = {batch.queries.index(text) for text in (plain.text("Q+"), plain.text("Q-"))}
    assert not alone & {place for row in batch.crossed_of for place in row}


def test_the_share_of_plain_rows_is_the_one_that_is_set_and_depends_on_the_batch_alone() -> None:
    many = [
        group_of({**row, "query_positive": f"q {n}"}, shape=INF_IR)
        for n in range(60)
        for row in make_rows(5)
    ]
    count = sum(
        not group.text("I+")
        for start in range(0, 300, 4)
        for group in with_plain_rows(many[start : start + 4], 0.3)
    )
    assert 60 < count < 120  # 90 ± 3.8 standard deviations of 300 draws
    assert with_plain_rows(many[:8], 0.3) == with_plain_rows(many[:8], 0.3)
    assert with_plain_rows(many[:8], 0) == many[:8]


@pytest.mark.parametrize("objective", ["P,I,IQ:multi", "promptriever", "mnrl"])
def test_plain_rows_train_under_every_kind_of_objective(tmp_path: Path, objective: str) -> None:
    _, numbers = run(tmp_path, objective=objective, standard_share="0.5")
    assert all(math.isfinite(values["loss"]) for _, values in numbers)


# A process that prepares batches is a fork, which a program of many threads, as the tests are after
# an hour, may not survive; a training has a program of its own.
TWO_TRAININGS = """
import sys
from pathlib import Path
import torch
from test_usual_settings import run
found = [run(Path(sys.argv[1]) / prefetch, prefetch=prefetch) for prefetch in ("off", "on")]
(here, numbers), (there, others) = [(model.state_dict(), numbers) for model, numbers in found]
assert [v["loss"] for _, v in numbers] == [v["loss"] for _, v in others]
assert here.keys() == there.keys() and all(torch.equal(here[name], there[name]) for name in here)
print("the same")
"""


@pytest.mark.long
def test_batches_prepared_ahead_give_the_same_training(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWO_TRAININGS, tmp_path],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["the same"], done.stderr


@pytest.mark.parametrize("lora", [{}, {"lora_rank": "4"}], ids=["whole", "lora"])
def test_the_result_lies_at_the_share_between_base_and_trained(
    tmp_path: Path, lora: dict[str, str]
) -> None:
    base = load_backbone(settings_for()).state_dict()
    trained = run(tmp_path / "a", **lora)[0].state_dict()
    mixed = run(tmp_path / "b", **lora, base_share="0.25")[0].state_dict()
    assert mixed.keys() == base.keys() == trained.keys()
    moved = 0
    for name, value in mixed.items():
        if value.is_floating_point():
            assert torch.allclose(value, 0.25 * base[name] + 0.75 * trained[name], atol=1e-6)
            moved += not torch.equal(base[name], trained[name])
    assert moved > 0


def test_the_saved_model_is_the_mixed_one_that_was_scored(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """A share near 1 leaves the base model: the checkpoint's vectors and scores are its own."""
    config = config_for(tmp_path, base_share="0.999999", learning_rate="0.01", max_steps="3")
    result = train(claim(sqlite_store, config))
    texts = ["a passage", "another"]
    base = load_model("tiny-random-bert").encode(texts)
    saved = load_model(result["path"]).encode(texts)
    assert abs(base - saved).max() < 1e-3
    before, after = result["held_out"]["before"], result["held_out"]["after"]
    assert after == pytest.approx(before, abs=1e-3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base_share": "1"}, "base_share"),
        ({"base_share": "0.5", "fsdp": "on"}, "whole weights"),
        ({"base_share": "0.5", "lora_rank": "4", "quantize": "4bit"}, "whole weights"),
    ],
)
def test_what_cannot_be_mixed_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        settings_for(**given)
