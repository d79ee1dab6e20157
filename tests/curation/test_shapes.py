"""Runs of different shapes side by side: InF-IR's, and one that a recipe declares."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from curation_runs import add_dataset, run_curation
from openai_server import Server
from records_world import list_groups
from shaped_recipes import write_recipe
from sqlalchemy import select

from db.run.group_detail import get_group
from db.run.position_bias import position_bias
from db.run.runs import funnel, shape_of
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Call, Item

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
