"""What goes wrong while training: memory, disk, numbers that are none, decoders without padding."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_language_models import write_other
from trainer_jobs import claim, config_for
from trainer_release import write_release

from db.errors import BadInput
from db.jobs.runner import JobHandle
from db.store.store import Store
from trainer.data.groups import Group
from trainer.data.release_files import read_release
from trainer.data.splitting import Groups
from trainer.launch.estimate import measure_training
from trainer.launch.here import train
from trainer.loop import precision
from trainer.loop.best import Best, newest_state
from trainer.loop.failures import translated
from trainer.loop.fitting import fit
from trainer.loop.precision import Precision, uses_bf16
from trainer.model import weights
from trainer.model.backbone import load_backbone
from trainer.settings.settings import TrainSettings, parse_settings


def settings_for(**given: str) -> TrainSettings:
    few = {"base_model": "tiny-random-bert", "rows_per_batch": "4", "max_steps": "3"}
    return parse_settings(few | {"save_steps": "1", "precision": "fp32"} | given)


def run(tmp_path: Path, settings: TrainSettings, model: Any = None, **more: Any) -> dict[str, Any]:
    groups: list[Group] = read_release(write_release(tmp_path / "release", 8)).groups
    return fit(
        model or load_backbone(settings),
        groups,
        settings,
        tmp_path / "work",
        report=lambda *_: None,
        stream=lambda *_: None,
        **more,
    )


def test_out_of_memory_names_the_settings_to_change(tmp_path: Path) -> None:
    settings = settings_for()
    model = load_backbone(settings)
    model[0].register_forward_pre_hook(lambda *_: torch.empty(2**55) and None)
    with pytest.raises(BadInput) as refused:
        run(tmp_path, settings, model)
    for message in (
        *("out of memory with rows_per_batch=4", "texts_at_once=4", "passage_tokens=512"),
        *("lora_rank=16", "optimizer=adamw-8bit", "fsdp=on"),
    ):
        assert message in str(refused.value)


def test_out_of_memory_names_no_setting_that_is_used_already() -> None:
    used = {"texts_at_once": "4", "lora_rank": "4", "gradient_checkpointing": "on"}
    given = settings_for(**used, base_share="0.5")
    message = str(translated(torch.OutOfMemoryError("CUDA out of memory"), given))
    for name in ("texts_at_once", "gradient_checkpointing", "lora_rank", "fsdp"):
        assert f"{name}=" not in message
    assert "quantize=4bit" not in message  # base_share needs whole weights
    assert "base_share=0" in message and "rows_per_batch" in message
    message = str(translated(torch.OutOfMemoryError("x"), settings_for(**used)))
    assert "quantize=4bit" in message and "base_share" not in message


def test_a_model_that_cannot_recompute_activations_is_refused_by_name(tmp_path: Path) -> None:
    given = settings_for(
        base_model=str(write_other(tmp_path / "base", "mpnet")), gradient_checkpointing="on"
    )
    with pytest.raises(BadInput, match="MPNetModel cannot recompute") as refused:
        run(tmp_path, given)
    assert "texts_at_once=" in str(refused.value)


def test_a_disk_that_fills_up_while_a_state_is_kept_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_file = weights.save_file

    def fills_up(state: Any, file: Path) -> None:
        if file.parent.name == "checkpoint-2":
            raise OSError(28, "No space left on device")
        save_file(state, file)

    monkeypatch.setattr(weights, "save_file", fills_up)
    with pytest.raises(BadInput, match="the state before it is intact"):
        run(tmp_path, settings_for())
    assert newest_state(tmp_path / "work") == (1, tmp_path / "work" / "checkpoint-1")
    monkeypatch.setattr(weights, "save_file", save_file)
    assert run(tmp_path, settings_for())["steps"] == 3


def test_a_disk_that_is_full_for_the_optimizer_leaves_the_state_before(tmp_path: Path) -> None:
    """The real error of torch.save on a full device, whose message does not name the cause."""
    state = tmp_path / "work" / "checkpoint-2"
    state.mkdir(parents=True)
    (state / "optimizer.pt").symlink_to("/dev/full")
    with pytest.raises(BadInput, match="the state before it is intact"):
        run(tmp_path, settings_for())
    assert newest_state(tmp_path / "work") == (1, tmp_path / "work" / "checkpoint-1")


def test_nan_weights_are_not_saved(tmp_path: Path) -> None:
    settings = settings_for()
    model = load_backbone(settings)
    steps = 0

    def spoil(*_: Any) -> bool:
        nonlocal steps
        steps += 1
        if steps == 2:
            next(model.parameters()).data[0, 0] = torch.nan
        return False

    with pytest.raises(BadInput, match=r"NaN or infinite after step 2: this state was not saved"):
        run(tmp_path, settings, model, stopping=spoil)
    assert newest_state(tmp_path / "work") == (1, tmp_path / "work" / "checkpoint-1")
    kept = weights.read_weights(tmp_path / "work" / "checkpoint-1")
    assert all(value.isfinite().all() for value in kept.values())


def test_a_nan_loss_leaves_the_last_good_state(tmp_path: Path) -> None:
    """Two columns a step: from the fifth embedding on, in step 3, everything is nan."""
    model = load_backbone(settings_for())
    calls = 0

    def spoil(_module: Any, _given: Any, found: dict[str, Any]) -> None:
        nonlocal calls
        calls += 1
        if calls > 4:
            found["sentence_embedding"] = found["sentence_embedding"] * torch.nan

    hook = model.register_forward_hook(spoil)
    with pytest.raises(BadInput, match="the loss is nan at step 3"):
        run(tmp_path, settings_for(), model)
    assert newest_state(tmp_path / "work") == (2, tmp_path / "work" / "checkpoint-2")
    hook.remove()
    again = run(tmp_path, settings_for(), model)
    assert again["losses"] == run(tmp_path / "whole", settings_for())["losses"]


@pytest.mark.parametrize("base_model", ["tiny-random-bert", "tiny-random-qwen2"])
def test_recomputed_activations_change_no_loss(tmp_path: Path, base_model: str) -> None:
    given = {"base_model": base_model, "objective": "P,I:multi"}
    kept = run(tmp_path / "off", settings_for(**given))["losses"]
    settings = settings_for(**given, gradient_checkpointing="on")
    model = load_backbone(settings)
    assert run(tmp_path / "on", settings, model)["losses"] == pytest.approx(kept, rel=1e-5)
    assert any(getattr(module, "gradient_checkpointing", False) for module in model.modules())


def test_a_training_ended_by_patience_does_no_further_step_after_a_kill(tmp_path: Path) -> None:
    values = iter([0.5, 0.4, 0.3, 0.9])
    settings = settings_for(evaluate_steps="1", best_by="mrr", patience="2", max_steps="9")
    first = run(tmp_path, settings, evaluate=lambda _: {"mrr": next(values)})
    assert (first["steps"], first["best_step"]) == (3, 1)
    again = run(tmp_path, settings, evaluate=lambda _: {"mrr": next(values)})
    assert (again["steps"], again["best_step"]) == (3, 1)  # killed between its end and the saving


def test_the_best_weights_before_a_kill_survive_the_resume(tmp_path: Path) -> None:
    model = load_backbone(settings_for())
    before = Best(tmp_path, patience=0)
    for step, value in ((2, 0.1), (4, 0.5), (8, 0.6)):
        before.record(model.state_dict, step, value)
    after = Best(tmp_path, patience=0)
    after.forget_after(6)  # the newest state is of step 6
    assert after.folder == tmp_path / "best-4"
    assert sorted(path.name for path in tmp_path.glob("best-*")) == ["best-4", "best-8"]


def test_bf16_trains_and_is_near_fp32(tmp_path: Path) -> None:
    exact = run(tmp_path / "a", settings_for())["losses"]
    rounded = run(tmp_path / "b", settings_for(precision="bf16"))["losses"]
    assert rounded != exact and rounded == pytest.approx(exact, rel=0.05)
    with pytest.raises(BadInput, match="one of auto, bf16, fp32"):
        settings_for(precision="fp8")


def test_auto_is_bf16_only_where_the_hardware_has_units_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for units in ("amx_bf16", "avx512_bf16"):
        for has in (True, False):
            monkeypatch.setattr(torch.cpu, "get_capabilities", lambda u=units, h=has: {u: h})
            assert uses_bf16("auto") == has
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)  # a processor that does not say
    assert not uses_bf16("auto") and uses_bf16("bf16") and not uses_bf16("fp32")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for native in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda has=native, **_: has)
        assert uses_bf16("auto") == native


@pytest.fixture
def bf16_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})


def slow_model(slow: str) -> Any:
    """A model on a processor that is slow in that type: it spends CPU time in each forward."""
    model = load_backbone(settings_for())

    def spend(*_: Any) -> None:
        if torch.is_autocast_enabled("cpu") == (slow == "bf16"):
            until = time.process_time() + 0.2
            while time.process_time() < until:
                pass

    model[0].register_forward_pre_hook(spend)
    return model


@pytest.mark.long
@pytest.mark.parametrize("extra", [{}, {"texts_at_once": "3"}, {"lora_rank": "2"}])
def test_auto_trains_in_bf16_on_a_cpu_after_measuring_that_it_is_equal_and_faster(
    bf16_units: None, tmp_path: Path, extra: dict[str, str]
) -> None:
    auto, wanted = (settings_for(precision=name, **extra) for name in ("auto", "bf16"))
    chosen = run(tmp_path / "auto", auto, slow_model("fp32"))
    measured = chosen["precision"]
    assert measured["used"] == "bf16"
    assert 0.95 < measured["gradient_cosine"] < 1 and 0 <= measured["loss_difference"] < 0.02
    assert measured["bf16_seconds"] < 0.9 * measured["fp32_seconds"]
    forced = run(tmp_path / "bf16", wanted)
    assert forced["precision"].pop("used") == "bf16"
    assert set(forced["precision"].values()) == {None}
    assert chosen["losses"] == forced["losses"]  # measuring leaves no trace


@pytest.mark.parametrize(
    ("loss", "cosine"), [(0.5, 1.0), (0.0, 0.5), (float("nan"), 1.0), (0.0, float("nan"))]
)
def test_one_measure_that_differs_is_enough_not_to_be_equal(loss: float, cosine: float) -> None:
    assert Precision("bf16", loss_difference=0.0, gradient_cosine=1.0).is_equal
    assert not Precision("bf16", loss_difference=loss, gradient_cosine=cosine).is_equal


@pytest.mark.long
def test_auto_trains_in_fp32_where_bf16_was_measured_to_be_slower(
    bf16_units: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chosen = run(tmp_path / "auto", settings_for(precision="auto"), slow_model("bf16"))
    measured = chosen["precision"]
    assert measured["used"] == "fp32" and measured["gradient_cosine"] > 0.95
    assert measured["bf16_seconds"] > measured["fp32_seconds"] > 0
    assert chosen["losses"] == run(tmp_path / "fp32", settings_for())["losses"]


@pytest.mark.long
@pytest.mark.parametrize("slow", ["fp32", "bf16"])
def test_the_estimate_steps_in_the_type_that_the_training_will_choose(
    bf16_units: None, tmp_path: Path, slow: str
) -> None:
    settings = settings_for(precision="auto", natural_probe="off")
    model = slow_model(slow)
    types: list[bool] = []
    model[0].register_forward_pre_hook(lambda *_: types.append(torch.is_autocast_enabled("cpu")))
    release = read_release(write_release(tmp_path / "release", 8))
    measure_training(model, settings, Groups(release, release.groups, []))
    assert types[-1] == (slow == "fp32")


def test_auto_trains_in_fp32_where_bf16_was_measured_to_differ_also_when_it_goes_on(
    bf16_units: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    steady = {"schedule": "constant", "warmup": "0"}
    exact = run(tmp_path / "fp32", settings_for(**steady))["losses"]
    with monkeypatch.context() as strict:
        strict.setattr(precision, "MIN_COSINE", 1.1)
        settings = settings_for(precision="auto", max_steps="2", **steady)
        found = run(tmp_path / "auto", settings)
    assert found["precision"]["used"] == "fp32" and found["precision"]["bf16_seconds"] is None
    assert "this training is in float32" in caplog.text
    again = run(tmp_path / "auto", settings_for(precision="auto", **steady))
    assert again["losses"] == exact and again["precision"] == found["precision"]


def test_a_decoder_without_a_pad_token_pads_with_its_end_token(
    sqlite_store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "decoder"
    load_backbone(settings_for(base_model="tiny-random-llama")).save(str(folder))
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        if (folder / name).exists():
            config = json.loads((folder / name).read_text())
            config.pop("pad_token", None)
            (folder / name).write_text(json.dumps(config))
    config = config_for(
        tmp_path, base_model=str(folder), max_steps="1", held_out="0", objective="P,I:multi"
    )
    handle: JobHandle = claim(sqlite_store, config)
    assert train(handle)["loss_last"] > 0
    shutil.rmtree(tmp_path / "out")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config.pop("eos_token", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match="no token to pad with"):
        load_backbone(settings_for(base_model=str(folder)))
