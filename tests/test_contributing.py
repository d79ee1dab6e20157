"""The worked examples of CONTRIBUTING.md do what the text around them says."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sqlalchemy import create_engine, inspect, text

from analysis.agreement import measures
from app.kit.menu import APP, MENU
from curation.importing.request import DatasetImport
from curation.judges.judge import ItemView
from curation.sources.registry import SOURCES
from db.store.store import Store
from trainer.objectives.names import BASELINES, Objective

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"<!-- example: (\w+) -->\n```python\n(.*?)```", re.DOTALL)
EXAMPLES = dict(BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))


def example(name: str) -> dict[str, Any]:
    """The names that an example defines, once it has run."""
    found: dict[str, Any] = {"__name__": f"example_{name}"}
    exec(compile(EXAMPLES[name], f"CONTRIBUTING.md: {name}", "exec"), found)
    return found


def test_every_way_in_has_an_example_that_is_run_here() -> None:
    assert set(EXAMPLES) == {
        "page",
        "judge",
        "format",
        "measure",
        "objective",
        "migration",
    }


def test_the_page_is_one_more_row_of_the_menu_whose_file_exists() -> None:
    menu = example("page")["menu"]
    assert menu[:-1] == MENU
    assert (APP / menu[-1].file).is_file()
    assert menu[-1].name not in {view.name for view in MENU}


def test_the_judge_chooses_for_every_item() -> None:
    judge = example("judge")["FirstJudge"]()
    items = [ItemView("an instruction", "a query", ("one", "two"))] * 3
    assert [choice.position for choice in judge.choose(items)] == [0, 0, 0]


def test_the_format_is_taken_by_every_door_from_its_row_alone(
    sqlite_store: Store, inf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SOURCES, "_ours", {**SOURCES._ours, **example("format")["FORMATS"]})
    (tmp_path / "letters").mkdir()
    for number in range(3):
        text = f"What is letter {number}?\nThe answer to {number}."
        (tmp_path / "letters" / f"{number}.letter").write_text(text)
    for more in ((), ("--as", "letters"), ("--detach",)):
        done = inf("import", "--dataset", "mail", "--pairs", tmp_path / "letters", *more, "--json")
        assert done.code == 0, done.out + done.err
        if more != ("--detach",):
            assert done.json["imported"] == (0 if more else 3)
    assert inf("convert", "letters", tmp_path / "letters", "--out", tmp_path / "out").code == 0
    from app.access.identity import owner
    from app.operations import datasets

    request = DatasetImport(name="x", pairs=str(tmp_path / "letters"))
    assert datasets.preview(owner("ada"), request).pairs == 3


def test_the_measure_is_computed_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two items of two judgments each: one agreed, one not, so half of the pairs differ."""
    monkeypatch.setattr(measures, "MEASURES", dict(measures.MEASURES))
    example("measure")
    counts, weights = np.array([[2, 0], [1, 1]]), np.ones((1, 2))
    values = measures.measure_values(counts, weights, 2)
    assert values["disagreement"] == pytest.approx([0.5])


def test_the_objective_has_the_value_worked_by_hand_and_a_name_of_its_own() -> None:
    """Scores [[1, 0], [0, 1]], margin 0.5: every negative is 1 below its positive, so 0.

    With both passages equal every score is 1 or 0 alike: a row gives 0.5, the mean is 0.5.
    """
    found = example("objective")
    unit = torch.eye(2)
    assert float(found["margin_loss"](unit, unit, 0.5)) == 0.0
    same = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert float(found["margin_loss"](same, same, 0.5)) == pytest.approx(0.5)
    assert found["margin"].name not in BASELINES
    assert Objective(("P",), "uni", found["margin"]).label == "Margin"


def test_the_migration_adds_its_column_and_takes_it_away_again() -> None:
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    found = example("migration")
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE account (id INTEGER PRIMARY KEY)"))
        with Operations.context(MigrationContext.configure(connection)):
            found["upgrade"]()
            assert _columns(connection) == {"id", "affiliation"}
            found["downgrade"]()
            assert _columns(connection) == {"id"}
    engine.dispose()


def _columns(connection: Any) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns("account")}
