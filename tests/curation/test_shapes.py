"""Runs of different shapes side by side: InF-IR's, and one that a recipe declares."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from app_pages import open_page, sign_in
from conftest import Ran
from curation_runs import add_dataset, run_curation
from openai_server import Server
from records_world import list_groups
from shaped_recipes import write_recipe
from sqlalchemy import select
from study_world import sampled_study

from curation.importing.importing import import_dataset
from curation.judging.gold_item_file import add_from_file, template_rows
from curation.recorded.recording import SHIPPED
from db.errors import BadRows
from db.outcome.position_bias import position_bias
from db.run.group_detail import get_group
from db.run.runs import funnel, shape_of
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Call, Group, Item, Pair

PAIRS = 12


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A recipe with the shape `two`, and a server that answers it."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield write_recipe(tmp_path, "two")


def test_groups_of_two_shapes_lie_side_by_side_and_each_is_measured_by_its_own(
    store: Store, recipe: str
) -> None:
    add_dataset(store, pairs=PAIRS)
    asked: dict[str, Any] = {"dataset": "small", "provider": "openai"}
    first = run_curation(store, **asked, settings=["model=small"])
    own = {"recipe": recipe, "settings": ["validation.votes=2"]}
    result = run_curation(store, **asked, **own)
    assert (result["status"], result["kept"]) == ("done", PAIRS), result["dropped"]
    assert result["calls"]["made"] + result["calls"]["reused"] == PAIRS * (3 + 2 * 2)
    assert list(result["leakage"]["comparisons"]) == ["D / I", "N1 / P"]
    assert result["shared_parts"]["groups"] == PAIRS
    with store.read() as session:
        assert shape_of(session, first["run_id"]) == INF_IR
        shape = shape_of(session, result["run_id"])
        assert shape.roles == ("plain", "defying")
        assert funnel(session, result["run_id"]).generated == PAIRS
        rows = list_groups(session, result["run_id"]).rows
        group = get_group(session, rows[0].id)
        assert list(group.triplets) == ["plain", "defying"]
        assert group.triplets["plain"].passage == group.passage
        assert [one.agrees for one in group.judgments] == [True, True]
        assert {call.sample for call in group.calls if call.task == "validation"} == {0, 1, 3, 4}
        places = position_bias(session, result["run_id"])
        assert sum(place.right for place in places) == PAIRS * 2 * 2
        scenarios = set(session.scalars(select(Item.scenario)))
        assert scenarios == {*INF_IR.roles, "plain", "defying"}
        calls = len(session.scalars(select(Call.id)).all())
    again = run_curation(store, **asked, **own)
    assert again["calls"]["made"] == 0 and again["kept"] == PAIRS
    old = run_curation(store, **asked, settings=["model=small"])
    assert old["calls"]["made"] == 0 and old["kept"] == first["kept"]
    with store.read() as session:
        assert len(session.scalars(select(Call.id)).all()) == calls


def test_a_study_of_another_shape_takes_gold_and_is_filtered_by_its_own_scenarios(
    sqlite_store: Store,
    recipe: str,
    tmp_path: Path,
    inf: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = sqlite_store
    add_dataset(store, pairs=PAIRS)
    run_id = run_curation(store, dataset="small", provider="openai", recipe=recipe)["run_id"]
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=6, overlap=1).id
        session.commit()
        rows = template_rows(session, study_id, 4)
        pair = session.scalars(
            select(Pair.external_id)
            .join(Group, Group.pair_id == Pair.id)
            .join(Item, Item.group_id == Group.id)
            .where(Item.id == rows[0]["item"])
        ).one()
    assert [row["scenario"] for row in rows] == ["plain", "defying"] * 2
    gold = {"pair": pair, "scenario": "defying", "right": "defying", "explanation": "so"}
    file = tmp_path / "gold.jsonl"
    file.write_text(json.dumps(gold))
    with store.write() as session:
        assert len(add_from_file(session, study_id, "gold", file)) == 1
        session.commit()
    file.write_text(json.dumps(gold | {"scenario": "positive"}))
    with store.write() as session, pytest.raises(BadRows, match="one of plain, defying"):
        add_from_file(session, study_id, "gold", file)
    for judge in ("simulated:3", "simulated:5"):
        assert inf("studies", "judge", study_id, "--judge", judge).code == 0
    asked = ("analyze", "agreement", "--study", study_id, "--json")
    found = {role: inf(*asked, "--role", role) for role in ("plain", "defying", "positive")}
    assert found["positive"].json["code"] == "scenario_unknown"
    assert [found[role].code for role in ("plain", "defying")] == [0, 0]
    assert (
        sum(found[role].json["items"] for role in ("plain", "defying")) == inf(*asked).json["items"]
    )
    sign_in(store, monkeypatch, "admin")
    page = open_page("agreement", study=str(study_id))
    roles = next(each for each in page.get("button_group") if each.key == "agreement.scenarios")
    assert not page.exception and len(roles.value) == 2


@pytest.mark.long
@pytest.mark.parametrize("query", ["query_positive", "question"])
def test_the_offline_rules_write_what_a_shape_says_whatever_its_names(
    sqlite_store: Store, tmp_path: Path, query: str
) -> None:
    """A column may be called as InF-IR's beside others that are not."""
    recipe = write_recipe(tmp_path, "two")
    for file in filter(Path.is_file, tmp_path.iterdir()):
        file.write_text(file.read_text().replace("query_positive", query))
    demo = SHIPPED.parent
    import_dataset(
        sqlite_store, name="demo", pairs=demo / "pairs.jsonl", passages=demo / "passages.jsonl"
    )
    result = run_curation(sqlite_store, dataset="demo", provider="offline", recipe=recipe, limit=40)
    assert result["status"] == "done" and result["kept"] >= 5, result["dropped"]
