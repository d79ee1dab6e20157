"""Memory and time of a training, measured on a few steps before it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Ran
from sentence_transformers import SentenceTransformer
from trainer_jobs import TINY, claim, config_for
from trainer_release import write_release

from db.machine import peak_memory
from db.store.store import Store
from trainer.data.release_files import read_release
from trainer.data.splitting import Groups
from trainer.launch import estimate, scoring_time
from trainer.launch.here import train
from trainer.model.backbone import load_backbone
from trainer.settings.settings import TrainSettings, parse_settings

PEAK = """
import json, sys
from pathlib import Path
from db.machine import peak_memory
from trainer.data.release_files import read_release
from trainer.launch.estimate import measure_training
from trainer.loop.fitting import fit
from trainer.data.splitting import Groups
from trainer.model.backbone import load_backbone
from trainer.settings.settings import parse_settings

release = read_release(Path(sys.argv[1]))
settings = parse_settings(json.loads(sys.argv[3]))
model = load_backbone(settings)
if sys.argv[2] == "estimate":
    found = measure_training(model, settings, Groups(release, release.groups, []))
    print(json.dumps([found["peak_bytes"], found["seconds"]]))
else:
    done = fit(model, release.groups, settings, Path(sys.argv[4]), report=lambda *_: None,
               stream=lambda *_: None)
    print(json.dumps([peak_memory(), done["seconds"]]))
"""


@pytest.mark.long
def test_the_estimate_is_within_20_percent_of_the_peak_of_the_training(tmp_path: Path) -> None:
    """30 groups, 4 batches of 8, on a processor; each in a process of its own."""
    release = write_release(tmp_path / "release", 30)
    settings = TINY | {"rows_per_batch": "8", "epochs": "2", "held_out": "0"}
    found = {}
    for what in ("estimate", "train"):
        words = [sys.executable, "-c", PEAK, str(release), what, json.dumps(settings)]
        ran = subprocess.run(
            [*words, str(tmp_path / "work")], capture_output=True, text=True, check=True
        )
        found[what] = json.loads(ran.stdout.splitlines()[-1])
    assert found["estimate"][0] == pytest.approx(found["train"][0], rel=0.2)
    # Time depends on what else the machine does.
    assert found["estimate"][1] > 0 < found["train"][1]


def test_scoring_is_estimated_from_the_texts_it_will_encode(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text costs a second here: the estimate is their number, as the training encodes them."""
    monkeypatch.setattr(scoring_time, "_seconds_per_text", lambda *_: 1.0)
    encoded: list[str] = []
    real = SentenceTransformer.encode

    def counting(model: SentenceTransformer, inputs: list[str], **more: Any) -> Any:
        encoded.extend(inputs)
        return real(model, inputs, **more)

    given = {"epochs": "3", "evaluate_steps": "2"}  # 6 steps: after 2, 4 and 6
    config = config_for(tmp_path, **given)
    first = train(claim(sqlite_store, config | {"estimate": True}))["estimate"]
    monkeypatch.setattr(SentenceTransformer, "encode", counting)
    trained = train(claim(sqlite_store, config))
    assert first["scoring_seconds"] == len(encoded) > 0
    assert trained["scoring_seconds"].keys() == {"before", "now", "after"}
    # the base model's vectors are kept now: as if there were nothing to score before
    again = train(claim(sqlite_store, config | {"estimate": True}))["estimate"]
    between_and_after = again["scoring_seconds"]
    encoded.clear()
    train(claim(sqlite_store, config | {"out": str(tmp_path / "again")}))
    assert between_and_after == len(encoded) < first["scoring_seconds"]


def test_an_estimate_trains_nothing_and_writes_nothing(sqlite_store: Store, tmp_path: Path) -> None:
    config = config_for(tmp_path, epochs="3") | {"estimate": True}
    found = train(claim(sqlite_store, config))["estimate"]
    assert found["steps"] == 6  # 8 of 10 groups, batches of 4, 3 epochs
    assert found["seconds"] == pytest.approx(6 * found["seconds_per_step"])
    assert found["scoring_seconds"] > 0 and found["device"] == "CPU"
    peak = peak_memory()
    assert peak / 2 < found["peak_bytes"] < 2 * peak  # this process did much else before
    assert not (tmp_path / "out").exists()


def test_the_estimate_takes_the_steps_of_the_training_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its optimizer with its moments, adapters alone with LoRA, and the copy for base_share."""
    groups = read_release(write_release(tmp_path / "release", 8)).groups
    seen: list[dict[str, Any]] = []

    def measured(model: Any, some: list[Any], given: TrainSettings) -> Callable[[Any], None]:
        step = real(model, some, given)

        def counted(rows: Any) -> None:
            step(rows)
            seen.append(
                {"numbers": copied.numbers, "kind": type(made[-1]).__name__}
                | {
                    "state": sum(
                        each.numel() for of in made[-1].state.values() for each in of.values()
                    )
                }
            )

        return counted

    real, make, copy = estimate._stepper, estimate.make_optimizer, estimate.copy_weights
    made: list[Any] = []
    copied = SimpleNamespace(numbers=0)

    def copying(model: Any) -> Any:
        found = copy(model)
        copied.numbers = sum(each.numel() for each in found.values())
        return found

    monkeypatch.setattr(estimate, "_stepper", measured)
    monkeypatch.setattr(estimate, "copy_weights", copying)
    monkeypatch.setattr(
        estimate, "make_optimizer", lambda *given: made.append(make(*given)) or made[-1]
    )
    state = {}
    for name, given in (("whole", {}), ("lora", {"lora_rank": "2", "base_share": "0.5"})):
        settings = parse_settings(TINY | given | {"held_out": "0"})
        model = load_backbone(settings)
        whole = sum(each.numel() for each in model.parameters())
        estimate.measure_training(
            model, settings, Groups(read_release(tmp_path / "release"), groups, [])
        )
        assert seen[-1]["kind"] == "AdamW"
        assert seen[-1]["numbers"] == (whole if name == "lora" else 0)
        state[name] = seen[-1]["state"]
    assert 1.5 * whole < state["whole"] < 2.1 * whole and state["lora"] < 0.5 * whole


@pytest.mark.slow
def test_the_command_prints_the_estimate_and_needs_no_folder(
    sqlite_store: Store, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    release = write_release(tmp_path / "release", 10)
    settings = [f"{key}={value}" for key, value in TINY.items()]
    ran = inf("train", "--release", release, "--estimate", "max_steps=7", *settings)
    assert ran.code == 0, ran.err
    assert "7 steps, about" in ran.out and "peak memory about" in ran.out
    ran = inf("train", "--release", release, *settings)
    assert ran.code == 2 and "give --out" in ran.err
