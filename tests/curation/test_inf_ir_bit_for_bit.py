"""InF-IR's groups, calls and releases stay what they were before groups had a shape.

The hashes are of the tree at a0bea9f, the last whose shape of a group was a constant of the store:
the first pairs of the demo set, replayed from its recording with three votes a scenario.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from curation_runs import run_curation, texts_of
from exporting import export
from sqlalchemy import select

from curation.importing.importing import import_dataset
from curation.recipe.recipe import list_recipes, load_recipe
from curation.recorded.recording import SHIPPED
from db.shape import INF_IR
from db.store.store import Store, open_store
from db.tables import Call, Group, GroupCall, Pair

pytestmark = pytest.mark.long

PAIRS, VOTES = 40, 3
OF_THE_TIME = ("README.md", "release.json", "croissant.json", "judgments")
GROUPS = "68de56b882441a64"
CALLS = "8eaf868791b91761"
RECIPES = "92ea307df4611d1e"
RELEASE: dict[str, tuple[int, str]] = {
    "jsonl": (5, "6d729fa66f5d7021"),
    "csv": (3, "f62604df3eb36275"),
}


def sha256(value: Any) -> str:
    """Of JSON whose keys are sorted; of bytes as they are."""
    data = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()[:16]


@pytest.fixture(scope="module")
def replayed(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, int]]:
    """A store with a run of the recording with three votes, and the run."""
    path = tmp_path_factory.mktemp("replay") / "inf.db"
    shutil.copy(sqlite_template, path)
    store = open_store(f"sqlite:///{path}")
    demo = SHIPPED.parent
    import_dataset(store, name="demo", pairs=demo / "pairs.jsonl", passages=demo / "passages.jsonl")
    asked = {"dataset": "demo", "provider": "recorded", "limit": PAIRS}
    result = run_curation(store, **asked, settings=[f"validation.votes={VOTES}"])
    assert result["calls"]["reused"] == 0
    yield store, result["run_id"]
    store.close()


def calls_of(store: Store, run_id: int) -> list[list[Any]]:
    """Every answer a run used: its pair, task and sample number, and the key it is kept under."""
    with store.read() as session:
        rows = session.execute(
            select(Pair.external_id, GroupCall.task, GroupCall.sample, Call.key)
            .join(Group, Group.id == GroupCall.group_id)
            .join(Pair, Pair.id == Group.pair_id)
            .join(Call, Call.id == GroupCall.call_id)
            .where(Group.run_id == run_id)
        )
        return sorted(list(row) for row in rows)


def test_the_same_pairs_give_the_same_groups_and_ask_the_same_calls(
    replayed: tuple[Store, int],
) -> None:
    store, run_id = replayed
    calls = calls_of(store, run_id)
    assert len(calls) >= PAIRS * (5 + 3 * VOTES) - 20
    assert {sample for _, task, sample, _ in calls if task == "validation"} == set(range(9))
    assert sha256(texts_of(store, run_id)) == GROUPS
    assert sha256(calls) == CALLS


def test_a_second_run_pays_for_no_answer_again(replayed: tuple[Store, int]) -> None:
    store, run_id = replayed
    asked = {"dataset": "demo", "provider": "recorded", "limit": PAIRS}
    again = run_curation(store, **asked, settings=[f"validation.votes={VOTES}"])
    assert again["calls"]["made"] == 0 and again["calls"]["reused"] > 0
    assert calls_of(store, again["run_id"]) == calls_of(store, run_id)


def test_built_in_recipes_keep_their_identity() -> None:
    of_inf_ir = [name for name in list_recipes() if load_recipe(name).shape == INF_IR]
    assert sha256({name: load_recipe(name).sha256 for name in of_inf_ir}) == RECIPES


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_a_release_has_the_same_bytes(
    replayed: tuple[Store, int], tmp_path: Path, format: str
) -> None:
    store, run_id = replayed
    views = ["sentence-transformers", "tevatron"] if format == "jsonl" else []
    out = tmp_path / "out"
    export(store, out, dataset="demo", runs=[run_id], format=format, views=views)
    found = {
        path.relative_to(out).as_posix(): sha256(path.read_bytes())
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.relative_to(out).parts[0] not in OF_THE_TIME
    }
    assert {f"data/demo-00000-of-00001.{format}"} <= found.keys()
    # times and ids drawn at random are in them: which answers these are is tested above
    found = {name: of for name, of in found.items() if not name.startswith("provenance/calls")}
    assert (len(found), sha256(found)) == RELEASE[format]
