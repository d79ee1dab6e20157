from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import Ran
from job_metrics import metric_points
from trainer_release import write_release

from db.errors import BadInput, NotFound
from db.outcome.checkpoints import list_checkpoints
from db.store.store import Store
from trainer.model.backbone import load_model
from trainer.objectives.names import OBJECTIVES
from trainer.settings.experiment_files import list_experiments, read_experiment, with_overrides
from trainer.settings.settings import parse_settings


def test_every_row_of_tables_2_3_and_4_is_there_and_valid() -> None:
    counts = dict.fromkeys(("table2", "table3", "table4", "baseline"), 0)
    for name in list_experiments():
        settings = parse_settings(read_experiment(name))
        counts[name.split("-")[0]] += 1
        assert settings.rows_per_batch == 32 and settings.temperature == 0.05
    assert counts == {"table2": 9, "table3": len(OBJECTIVES), "table4": 4, "baseline": 2}
    objectives = {
        parse_settings(read_experiment(n)).objective for n in list_experiments() if "table3" in n
    }
    assert objectives == set(OBJECTIVES)


def test_given_settings_take_precedence_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('epochs = 3\nobjective = "I"\n')
    settings = parse_settings(with_overrides(str(file), {"objective": "IQ", "backbone": "x"}))
    assert (settings.epochs, settings.objective, settings.base_model) == (3.0, "IQ", "x")


def test_an_unknown_name_and_an_invalid_toml_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="table2-e5-base-v2"):
        read_experiment("table9")
    with pytest.raises(NotFound):
        read_experiment("../experiments/table2-e5-base-v2")
    (tmp_path / "x.toml").write_text("epochs =")
    with pytest.raises(BadInput, match="is not TOML"):
        read_experiment(str(tmp_path / "x.toml"))


ARCHITECTURES = {"e5": "bert", "modernbert": "modernbert", "llama": "llama", "qwen2": "qwen2"}


def backbone_for(name: str) -> str:
    """The tiny model of the preset's own architecture."""
    base = str(read_experiment(name)["base_model"]).lower()
    (architecture,) = [tiny for word, tiny in ARCHITECTURES.items() if word in base.split("/")[-1]]
    return f"tiny-random-{architecture}"


@pytest.mark.slow
@pytest.mark.parametrize("name", list_experiments())
def test_every_experiment_trains_by_its_name(
    name: str,
    sqlite_store: Store,
    tmp_path: Path,
    inf: Callable[..., Ran],
) -> None:
    """`inf train --experiment NAME` with the architecture's tiny model and the preset's own batch
    of 32 rows, of which the groups fill two: the command and its job run here."""
    release, out = write_release(tmp_path / "release", 2), tmp_path / "out"
    arguments = ("train", "--release", release, "--out", out, "--experiment", name)
    settings = (f"backbone={backbone_for(name)}", "max_steps=2", "held_out=0", "natural_probe=off")
    ran = inf(*arguments, *settings, "--json")
    assert ran.code == 0, ran.err
    with sqlite_store.read() as session:
        (checkpoint,) = list_checkpoints(session)
        points = metric_points(session, ran.json["job_id"])
        losses = [point.value for point in points if point.name == "loss"]
    assert len(losses) == 2 and all(0 < loss < 50 for loss in losses)
    objective = parse_settings(read_experiment(name)).parsed_objective
    assert checkpoint.path == str(out) and checkpoint.config["objective"] == objective.name
    assert f"(`{objective.name}`)" in (out / "README.md").read_text()
    before = load_model(backbone_for(name)).encode_document(["a bridge"])
    trained = load_model(str(out)).encode_document(["a bridge"])
    assert trained.shape[0] == 1 and np.isfinite(trained).all()
    assert not np.allclose(trained, before)


@pytest.mark.long
def test_an_experiment_trains_by_a_command_of_its_own(
    sqlite_store: Store, tmp_path: Path, inf_process: Callable[..., Ran]
) -> None:
    release, out = write_release(tmp_path / "release", 4), tmp_path / "out"
    arguments = ("train", "--release", release, "--out", out, "--experiment", "table4-two-last-2")
    settings = ("backbone=tiny-random-qwen2", "max_steps=1", "held_out=0")
    ran = inf_process(*arguments, *settings, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["steps"] == 1 and ran.json["loss_first"] > 0
