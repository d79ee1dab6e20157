from pathlib import Path

import pytest
import torch
from trainer_jobs import claim, config_for
from trainer_release import make_rows

from db.errors import BadInput, NotFound
from db.store import Store
from trainer.backbone import load_backbone
from trainer.experiment_files import list_experiments, read_experiment, with_overrides
from trainer.fitting import fit
from trainer.objectives.names import OBJECTIVES
from trainer.release_files import COLUMNS, Group
from trainer.settings import parse_settings
from trainer.train_job import train


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


def test_what_is_given_goes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('epochs = 3\nobjective = "I"\n')
    settings = parse_settings(with_overrides(str(file), {"objective": "IQ", "backbone": "x"}))
    assert (settings.epochs, settings.objective, settings.base_model) == (3.0, "IQ", "x")


def test_a_name_that_is_not_there_and_a_file_that_is_no_toml(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", list_experiments())
def test_every_experiment_trains_by_name_with_a_tiny_backbone(name: str, tmp_path: Path) -> None:
    """Two steps with the preset's own batch of 32 rows, of which the groups fill two."""
    given = {"backbone": backbone_for(name), "max_steps": "2"}
    settings = parse_settings(with_overrides(name, given))
    groups = [Group("", **{name: row[name] for name in COLUMNS}) for row in make_rows(2)]
    model = load_backbone(settings)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    done = fit(model, groups, settings, tmp_path, report=lambda *_: None, stream=lambda *_: None)
    assert done["steps"] == 2 and all(0 < loss < 50 for loss in done["losses"])
    assert any(not torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_an_experiment_is_a_whole_training(sqlite_store: Store, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    given = {"backbone": "tiny-random-qwen2", "max_steps": "1", "held_out": "0"}
    config["settings"] = with_overrides("table4-two-last-2", given)
    result = train(claim(sqlite_store, config))
    assert result["steps"] == 1 and result["loss_first"] > 0
