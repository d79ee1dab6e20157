"""Published datasets as groups or pairs: presets, mapped columns, and nothing dropped unnamed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
from conftest import Ran
from hub_server import Hub
from sqlalchemy import select

from analysis.files.storage import local_file
from curation.hub.layouts import Wanted, layout_of, rows_of
from curation.hub.pull import pull
from curation.hub.request import is_folder
from curation.sources.rows import LeftOut, SourcePair
from db.errors import BadInput, NotFound, Refused
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Dataset, Group, Pair, Passage

PASSAGE = {"docid": "1", "title": "Dunes", "text": "A dune is a hill of sand."}
OTHER = {"docid": "2", "title": "", "text": "A dune is a novel."}
INSTRUCTED = {
    "query_id": "7",
    "query": "what is a dune Only geology.",
    "positive_passages": [PASSAGE | {"explanation": "e", "followir_score": 0.9, "joint_id": "j"}],
    "negative_passages": [OTHER],
    "only_instruction": "Only geology.",
    "only_query": "what is a dune",
    "has_instruction": True,
    "new_negatives": [PASSAGE | {"docid": "3", "text": "Dunes move with the wind."}],
}
PROMPTRIEVER = [
    INSTRUCTED,
    INSTRUCTED | {"has_instruction": False, "only_instruction": "", "new_negatives": []},
    INSTRUCTED | {"query_id": "8", "positive_passages": []},
]
FOLLOWIR = [
    {"score": 1, "label": "true", "id": "t1", "document": "D1", "query": "q", "instruction": "i"},
    {"score": 0, "label": "false", "id": "t1", "document": "D2", "query": "q", "instruction": "i"},
    {"score": 1, "label": True, "id": "t1", "document": "D3", "query": "q", "instruction": "i"},
    {"score": 1, "label": "maybe", "id": "t2", "document": "D4", "query": "q", "instruction": "i"},
]


def folder_of(tmp_path: Path, rows: list[dict[str, Any]], name: str = "train.jsonl") -> Path:
    folder = tmp_path / "published"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def pulled(store: Store, folder: Path | str, **wanted: Any) -> Any:
    return pull(store, repo=str(folder), name="x", licence="mit", wanted=Wanted(**wanted))


def stored(store: Store) -> tuple[dict[str, tuple[str, str, Any]], set[str]]:
    """The pairs by id (query, passage, instruction), and the texts of all passages."""
    with store.read() as session:
        rows = session.execute(
            select(Pair, Passage.text).join(Passage, Passage.id == Pair.passage_id)
        )
        pairs = {
            pair.external_id: (pair.query, text, pair.meta.get("instruction"))
            for pair, text in rows
        }
        return pairs, set(session.scalars(select(Passage.text)))


def test_promptriever_gives_a_query_with_and_without_its_instruction(
    sqlite_store: Store, tmp_path: Path
) -> None:
    found = pulled(sqlite_store, folder_of(tmp_path, PROMPTRIEVER))
    assert (found.layout, found.left_out) == ("promptriever", {"no positive passage": 1})
    pairs, passages = stored(sqlite_store)
    assert pairs == {
        "7-instructed": ("what is a dune", PASSAGE["text"], "Only geology."),
        "7": ("what is a dune", PASSAGE["text"], None),
    }
    assert passages == {PASSAGE["text"], OTHER["text"], "Dunes move with the wind."}
    with sqlite_store.read() as session:
        dataset = session.scalars(select(Dataset)).one()
    assert (dataset.source, dataset.licence) == ("folder:published", "mit")


def test_followir_rows_are_pairs_only_where_the_label_says_relevant(
    sqlite_store: Store, tmp_path: Path
) -> None:
    found = pulled(sqlite_store, folder_of(tmp_path, FOLLOWIR))
    assert found.left_out == {"label is neither true nor false": 1}
    pairs, passages = stored(sqlite_store)
    assert sorted(text for _, text, _ in pairs.values()) == ["D1", "D3"]
    assert passages == {"D1", "D2", "D3"}, "a passage of an unreadable label is not in the pool"
    again = pulled(sqlite_store, folder_of(tmp_path, FOLLOWIR))
    assert again.pairs.imported == {"pairs": 0, "passages": 0}


@pytest.mark.parametrize(
    "row",
    [
        {"anchor": "q", "positive": "right", "negative_1": "wrong", "negative_2": ""},
        {"query": "q", "pos": ["right"], "neg": ["wrong"]},
        {"query": "q", "positive_passages": [{"text": "right"}], "negative_passages": [
            {"text": "wrong"}]},
        {"question": "q", "answer": "right", "hard_negatives": "wrong"},
    ],
)  # fmt: skip
def test_any_query_positive_negatives_is_found_by_its_columns(
    sqlite_store: Store, tmp_path: Path, row: dict[str, Any]
) -> None:
    found = pulled(sqlite_store, folder_of(tmp_path, [row]))
    assert found.layout == "triplets"
    pairs, passages = stored(sqlite_store)
    assert [each[:2] for each in pairs.values()] == [("q", "right")]
    assert passages == {"right", "wrong"}


def test_columns_of_other_names_are_mapped_to_pairs_and_to_groups(
    sqlite_store: Store, tmp_path: Path
) -> None:
    odd = folder_of(tmp_path, [{"frage": "q", "treffer": "right", "daneben": ["wrong"]}])
    with pytest.raises(Refused, match="columns frage, treffer, daneben fit no layout"):
        pulled(sqlite_store, odd)
    columns = {"query": "frage", "positive": "treffer", "negatives": "daneben"}
    pulled(sqlite_store, odd, columns=columns, negatives=False)
    assert stored(sqlite_store)[1] == {"right"}
    theirs = {name: f"their {name}" for name in INF_IR.columns}
    row = {there: f"text of {ours}" for ours, there in theirs.items()}
    groups = folder_of(tmp_path, [row])
    found = pull(sqlite_store, repo=str(groups), name="y", wanted=Wanted(columns=theirs))
    assert found.layout == "groups" and found.groups is not None and found.groups.imported == 1
    with sqlite_store.read() as session:
        assert session.scalars(select(Group)).one().verdict == "kept"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"query": "frgae", "positive": "treffer"},
            "`query` is mapped to `frgae`, and train.jsonl has no column `frgae`: it has "
            "`frage`, `treffer`, `daneben`; did you mean `frage`?",
        ),
        ({"qurey": "frage", "positive": "treffer"}, "no column `qurey` to map to; did you mean"),
        # these did not matter for the layout, and were left out silently
        (
            {"query": "frage", "positive": "treffer", "instrution": "daneben"},
            "no column `instrution` to map to; did you mean `instruction`?",
        ),
        (
            {"query": "frage", "positive": "treffer", "negatives": "danebn"},
            "did you mean `daneben`?",
        ),
    ],
)
def test_a_mistyped_mapping_is_a_sentence_with_the_nearest_name(
    inf: Callable[..., Ran],
    sqlite_store: Store,
    tmp_path: Path,
    given: dict[str, str],
    sentence: str,
) -> None:
    odd = folder_of(tmp_path, [{"frage": "q", "treffer": "right", "daneben": ["wrong"]}])
    columns = [part for pair in given.items() for part in ("--column", "=".join(pair))]
    ran = inf("hub", "pull", odd, "--dataset", "x", *columns)
    assert ran.code == 1 and sentence in " ".join(ran.err.split()), ran.err
    with sqlite_store.read() as session:
        assert session.scalars(select(Pair)).all() == []


def test_splits_are_never_mixed_silently(sqlite_store: Store, tmp_path: Path) -> None:
    row = {"anchor": "q", "positive": "p"}
    folder_of(tmp_path, [row], "train-00000-of-00002.jsonl")
    folder_of(tmp_path, [row | {"anchor": "r"}], "train-00001-of-00002.jsonl")
    folder = folder_of(tmp_path, [row | {"anchor": "test"}], "test-00000-of-00001.jsonl")
    with pytest.raises(Refused, match="several splits, test, train"):
        pulled(sqlite_store, folder)
    with pytest.raises(BadInput, match="no files of a split 'dev'"):
        pulled(sqlite_store, folder, split="dev")
    assert pulled(sqlite_store, folder, split="train").pairs.imported["pairs"] == 2
    assert {query for query, _, _ in stored(sqlite_store)[0].values()} == {"q", "r"}


def test_a_limit_ends_early_and_a_wrong_layout_says_what_it_lacks(
    sqlite_store: Store, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, FOLLOWIR)
    with pytest.raises(BadInput, match="no row gives a pair as promptriever"):
        pulled(sqlite_store, folder, layout="promptriever")
    with pytest.raises(BadInput, match="no layout 'x'"):
        Wanted(layout="x")
    assert pulled(sqlite_store, folder, limit=1).pairs.imported["pairs"] == 1


def test_rows_that_are_no_objects_are_left_out_with_their_line(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, FOLLOWIR[:1])
    with (folder / "train.jsonl").open("a") as file:
        file.write("[1, 2]\n{broken\n")
    found = list(rows_of([folder / "train.jsonl"], "followir", Wanted()))
    assert [one.line for one in found if isinstance(one, LeftOut)] == [2, 3]
    assert len([one for one in found if isinstance(one, SourcePair)]) == 1


def test_a_folder_of_a_storage_is_read_through_fsspec(sqlite_store: Store, tmp_path: Path) -> None:
    files = fsspec.filesystem("memory")
    files.pipe_file(
        "/bucket/set/data/train.jsonl", "".join(json.dumps(r) + "\n" for r in FOLLOWIR).encode()
    )
    try:
        pulled(sqlite_store, "memory://bucket/set")
        assert len(stored(sqlite_store)[0]) == 2
        with pytest.raises(NotFound, match="no files"):
            pulled(sqlite_store, "memory://bucket/empty")
    finally:
        files.rm("/bucket", recursive=True)
    with pytest.raises(NotFound, match="no folder"):
        pulled(sqlite_store, tmp_path / "missing")


def test_a_name_of_the_hub_is_never_taken_for_a_folder_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ada" / "books").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert not is_folder("ada/books")
    assert is_folder("./ada/books") and is_folder("s3://bucket/x") and is_folder("/srv/x")


def test_layouts_are_found_without_reading_more_than_the_first_row(tmp_path: Path) -> None:
    for rows, layout in ((PROMPTRIEVER, "promptriever"), (FOLLOWIR, "followir")):
        folder = folder_of(tmp_path, rows)
        assert layout_of([folder / "train.jsonl"], Wanted(), shape=INF_IR) == layout


@pytest.mark.long
def test_a_preset_is_pulled_from_the_hub_by_its_name(
    sqlite_store: Store, hub: Hub, there: dict[str, str], tmp_path: Path, inf: Any
) -> None:
    hub.publish("jhu-clsp/FollowIR-train", folder_of(tmp_path, FOLLOWIR))
    done = inf("hub", "pull", "jhu-clsp/FollowIR-train", "--dataset", "followir", "--json", **there)
    assert done.code == 0, done.out + done.err
    assert (done.json["layout"], done.json["imported"]) == ("followir", 2)
    assert done.json["left_out"] == {"label is neither true nor false": 1}


def test_a_file_of_a_storage_is_copied_anew_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_HOME", str(tmp_path / "home"))
    files = fsspec.filesystem("memory")
    files.pipe_file("/bucket/pairs.jsonl", b"one")
    try:
        assert local_file("memory://bucket/pairs.jsonl").read_bytes() == b"one"
        files.pipe_file("/bucket/pairs.jsonl", b"two")
        copy = local_file("memory://bucket/pairs.jsonl")
        assert (copy.read_bytes(), copy.name) == (b"two", "pairs.jsonl")
        with pytest.raises(NotFound, match="there is no file"):
            local_file("memory://bucket/missing.jsonl")
    finally:
        files.rm("/bucket", recursive=True)
    assert local_file("pairs.jsonl") == Path("pairs.jsonl")
    assert local_file("file:///srv/pairs.jsonl") == Path("/srv/pairs.jsonl")
