"""Releases of groups of other shapes: their files, card and manifest, and two in one store."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from curation_runs import add_dataset, run_curation
from exporting import export, load_afresh, rows_of
from openai_server import Server
from records_world import list_groups
from shaped_recipes import SHAPES, write_recipe

from curation.hub.pull import pull
from curation.importing.job import import_as
from curation.importing.request import DatasetImport
from curation.recipe.recipe import load_recipe
from curation.release.plan import plan_release
from curation.release.request import ReleasePlan
from db.errors import BadInput, BadRows, Refused
from db.review.reviews import approve_group, edit_group
from db.run.group_detail import get_group
from db.run.runs import shape_of
from db.shape import INF_IR, RELEASE_COLUMNS, shape_from, shape_in
from db.store.store import Store

PAIRS = 8


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def grown(store: Store, tmp_path: Path, name: str) -> int:
    """A run of the shape over the dataset `small`, all of whose groups are kept."""
    recipe = write_recipe(tmp_path, name)
    result = run_curation(store, dataset="small", provider="openai", recipe=recipe)
    assert (result["status"], result["kept"]) == ("done", PAIRS), result["dropped"]
    return int(result["run_id"])


@pytest.mark.parametrize("name", SHAPES)
def test_a_release_has_the_texts_of_its_shape(
    store: Store, server: Server, tmp_path: Path, name: str
) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id, shape = grown(store, tmp_path, name), SHAPES[name]
    out, views = tmp_path / "out", ["sentence-transformers", "tevatron", "promptriever"]
    result = export(store, out, dataset="small", runs=[run_id], format="jsonl", views=views)
    assert result["kept"] == PAIRS
    rows = rows_of(out)["small"]
    assert list(rows[0]) == [*shape.columns, *RELEASE_COLUMNS]
    assert all(row[column] for row in rows for column in shape.columns)
    triplets, count = rows_of(out, "triplets")["small"], len(shape.roles)
    assert len(triplets) == PAIRS * (2 * count - 1)
    assert sum(row["label"] for row in triplets) == PAIRS * count
    anchors = rows_of(out, "sentence-transformers")["small"]
    assert len(anchors) == PAIRS * count
    assert all(len(set(row.values())) == count + 1 for row in anchors)
    for row in rows_of(out, "tevatron")["small"]:
        assert len(row["negative_passages"]) == count - 1
    asked = rows_of(out, "promptriever")["small"]
    queries = {scenario.query.sign for scenario in shape.all_scenarios}
    assert len(asked) == PAIRS * (count + len(queries))
    for row in asked:
        assert len(row["positive_passages"]) + len(row["negative_passages"]) == count
        assert row["has_instruction"] == bool(row["only_instruction"])
        explained = {each["explanation"] for each in row["negative_passages"]}
        assert row["has_instruction"] or "instruction_negative" not in explained
    manifest = json.loads((out / "release.json").read_text())
    assert shape_in(manifest) == shape
    described = json.loads((out / "croissant.json").read_text())
    default = next(each for each in described["recordSet"] if each["@id"].startswith("data/"))
    assert [each["name"] for each in default["field"]] == list(rows[0])
    card = (out / "README.md").read_text()
    assert all(each.label in card.replace("\\", "") for each in shape.all_scenarios)
    front, _, text = card.partition("# small")
    assert "inf-ir" not in front and "instruction-following" in front
    in_words = {1: "one row", 3: "three rows", 5: "five rows", 9: "nine rows"}
    assert in_words.get(2 * count - 1, "rows") + " per group" in text


@pytest.mark.long
def test_a_parquet_release_of_five_scenarios_loads(
    store: Store, server: Server, tmp_path: Path
) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id = grown(store, tmp_path, "five")
    export(store, tmp_path / "out", dataset="small", runs=[run_id], held_out=0.3)
    read = load_afresh(tmp_path / "out", tmp_path)
    assert sum(len(split["rows"]) for split in read.values()) == PAIRS
    assert set(read) == {"small", "small_held_out"}
    assert all(list(each["types"])[:10] == list(SHAPES["five"].columns) for each in read.values())


def test_two_shapes_in_a_store_are_released_each_by_itself(
    store: Store, server: Server, tmp_path: Path
) -> None:
    add_dataset(store, pairs=PAIRS)
    four, two = grown(store, tmp_path, "four"), grown(store, tmp_path, "without_query")
    own = run_curation(store, dataset="small", provider="openai", settings=["model=small"])
    runs = {"four": four, "two": two, "inf-ir": own["run_id"]}
    columns = {}
    for name, run_id in runs.items():
        export(store, tmp_path / name, dataset="small", runs=[run_id], format="jsonl")
        columns[name] = list(rows_of(tmp_path / name)["small"][0])
    assert [len(found) - len(RELEASE_COLUMNS) for found in columns.values()] == [8, 5, 7]
    assert "shape" not in json.loads((tmp_path / "inf-ir" / "release.json").read_text())
    with store.read() as session:
        for one, other in ((four, two), (own["run_id"], four)):
            with pytest.raises(Refused) as refused:
                plan_release(session, ReleasePlan(runs=(one, other), out="out"))
            assert refused.value.code == "release_of_two_shapes"


def test_a_group_of_another_shape_is_listed_edited_and_approved(
    store: Store, server: Server, tmp_path: Path
) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id, other = grown(store, tmp_path, "without_query"), grown(store, tmp_path, "four")
    with store.write() as session:
        for each in (run_id, other):
            assert all(row.is_complete for row in list_groups(session, each).rows)
        group_id = list_groups(session, run_id).rows[0].id
        for changes, code in (
            ({"query_negative": "x"}, "field_unknown"),
            ({"document_positive": "x"}, "field_not_editable"),
        ):
            with pytest.raises(BadInput) as refused:
                edit_group(session, group_id, changes, reviewed_by="ada")
            assert refused.value.code == code
        edit_group(session, group_id, {"instruction_negative": "Other"}, reviewed_by="ada")
        approve_group(session, group_id, reviewed_by="ada")
        session.commit()
    export(store, tmp_path / "out", dataset="small", runs=[run_id], format="jsonl")
    edited = [
        row["instruction_negative"]
        for row in rows_of(tmp_path / "out")["small"]
        if row["review"] == "approve"
    ]
    assert edited == ["Other"]


def declared(**changed: Any) -> dict[str, Any]:
    """The body of the shape `two`, with changes of its second passage."""
    body = SHAPES["two"].body()
    body["texts"][-1] |= changed
    return body


@pytest.mark.parametrize("column", [*RELEASE_COLUMNS, "document", "language", "validation"])
def test_a_text_has_no_name_that_a_row_or_a_prompt_has(column: str) -> None:
    with pytest.raises(BadInput, match="a name of our own") as refused:
        shape_from(declared(column=column))
    assert refused.value.code == "shape_column_taken"


@pytest.mark.parametrize("role", ["none", "ambiguous"])
def test_a_scenario_has_no_name_that_an_answer_has(role: str) -> None:
    body = SHAPES["two"].body()
    body["scenarios"][1]["role"] = role
    with pytest.raises(BadInput) as refused:
        shape_from(body)
    assert refused.value.code == "shape_role_taken"


def test_two_texts_are_not_written_by_one_task() -> None:
    body = SHAPES["two"].body()
    body["texts"][3]["column"] = "passage_defying"  # the task that writes N1
    with pytest.raises(BadInput) as refused:
        shape_from(body)
    assert refused.value.code == "shape_task_twice"


@pytest.mark.parametrize("shape", [None, 3, [], {}, {"texts": 1, "scenarios": 2}, {"texts": [1]}])
def test_a_manifest_with_no_shape_that_can_be_read_is_refused(shape: Any) -> None:
    with pytest.raises(BadInput) as refused:
        shape_in({"shape": shape})
    assert refused.value.code == "shape_unreadable"


def test_recipes_of_all_shapes_have_identities_of_their_own(tmp_path: Path) -> None:
    found = {name: load_recipe(write_recipe(tmp_path, name)).sha256 for name in SHAPES}
    assert len(set(found.values())) == len(SHAPES)
    assert INF_IR.entry == {}


@pytest.mark.parametrize("name", ["one", "reordered", "five"])
def test_a_release_is_imported_with_its_shape_and_released_again_as_it_was(
    store: Store, server: Server, tmp_path: Path, name: str
) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id = grown(store, tmp_path, name)
    export(store, tmp_path / "out", dataset="small", runs=[run_id], format="jsonl")
    again = pull(store, repo=str(tmp_path / "out"), name="again").groups
    assert again is not None and again.imported == PAIRS
    file = next((tmp_path / "out" / "data").iterdir())
    by_file = DatasetImport(name="filed", groups=(str(file),))
    for count in (PAIRS, 0):
        result = import_as(store, by_file, by="ada", progress=lambda done, total: None)
        assert result.imported == count
    with store.read() as session:
        assert shape_of(session, again.run_id) == SHAPES[name]
        assert shape_of(session, result.run_id) == SHAPES[name]
        group = get_group(session, list_groups(session, again.run_id).rows[0].id)
        assert tuple(group.triplets) == SHAPES[name].roles
    export(store, tmp_path / "twice", dataset="again", runs=[again.run_id], format="jsonl")
    texts = [
        sorted(tuple(row[column] for column in SHAPES[name].columns) for row in found)
        for found in (rows_of(tmp_path / "out")["small"], rows_of(tmp_path / "twice")["again"])
    ]
    assert texts[0] == texts[1]


def test_files_of_releases_of_two_shapes_are_not_imported_as_one(
    store: Store, tmp_path: Path
) -> None:
    files = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "release.json").write_text(json.dumps(SHAPES[name].entry))
        files.append(str(tmp_path / name / "x.jsonl"))
        row = dict.fromkeys(SHAPES[name].columns, "a text")
        Path(files[-1]).write_text(json.dumps(row) + "\n")
    wanted = DatasetImport(name="both", groups=tuple(files))
    with pytest.raises(BadInput) as refused:
        import_as(store, wanted, by="ada", progress=lambda done, total: None)
    assert refused.value.code == "files_of_two_shapes"
    alone = DatasetImport(name="alone", groups=(files[0],))
    (tmp_path / "one" / "x.jsonl").write_text('{"query_positive": "q"}\n')
    with pytest.raises(BadRows, match="3 texts of its release's shape"):
        import_as(store, alone, by="ada", progress=lambda done, total: None)
