from pathlib import Path

import pytest
from trainer_jobs import claim, config_for

from db.errors import BadInput, NotFound
from db.store import Store
from trainer.experiment_files import list_experiments, read_experiment, with_overrides
from trainer.objectives.names import OBJECTIVES
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


@pytest.mark.parametrize(
    ("name", "backbone"),
    [
        ("table2-e5-base-v2", "tiny-random-bert"),
        ("table2-modernbert-base", "tiny-random-modernbert"),
        ("table2-llama-3.2-1b", "tiny-random-llama"),
        ("table3-p-i-iq-multi", "tiny-random-qwen2"),
        ("table4-shared-avg-2", "tiny-random-qwen2"),
        ("table4-two-last-2", "tiny-random-qwen2"),
    ],
)
def test_an_experiment_runs_with_a_tiny_backbone(
    sqlite_store: Store, tmp_path: Path, name: str, backbone: str
) -> None:
    given = {"backbone": backbone, "max_steps": "1", "rows_per_batch": "2", "held_out": "0"}
    config = config_for(tmp_path)
    config["settings"] = with_overrides(name, given)
    result = train(claim(sqlite_store, config))
    assert result["steps"] == 1 and result["loss_first"] > 0
