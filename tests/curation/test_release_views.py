"""What other trainers read, and which groups a release takes: studies, balance."""

import json
import shutil
from array import array
from pathlib import Path
from typing import Any

import pytest
from exporting import export, load_afresh, rows_of
from records_world import make_run
from sqlalchemy import select
from study_world import sampled_study

from curation.release.choice import balanced
from db.errors import BadInput, NotFound, Refused
from db.store.store import Store
from db.tables import Item, StudyItem
from trainer.data.release_files import read_release


@pytest.mark.long
def test_the_views_hold_the_three_queries_of_every_group(
    sqlite_store: Store, tmp_path: Path
) -> None:
    make_run(sqlite_store, kept=1)
    export(sqlite_store, tmp_path / "out", views=["sentence-transformers", "tevatron"])
    anchors = load_afresh(tmp_path / "out", tmp_path, "sentence-transformers")["books"]
    assert list(anchors["types"]) == ["anchor", "positive", "negative_1", "negative_2"]
    assert anchors["rows"] == [
        {
            "anchor": "Find the author of book 0. who wrote book 0",
            "positive": "Book 0 was written by author 0.",
            "negative_1": "Book 0 came out in 1900.",
            "negative_2": "Book 0 was printed by printer 0.",
        },
        {
            "anchor": "Find the year of book 0. who wrote book 0",
            "positive": "Book 0 came out in 1900.",
            "negative_1": "Book 0 was written by author 0.",
            "negative_2": "Book 0 was printed by printer 0.",
        },
        {
            "anchor": "Find the author of book 0. who printed book 0",
            "positive": "Book 0 was printed by printer 0.",
            "negative_1": "Book 0 was written by author 0.",
            "negative_2": "Book 0 came out in 1900.",
        },
    ]
    first = load_afresh(tmp_path / "out", tmp_path, "tevatron")["books"]["rows"][0]
    assert first["query"] == "Find the author of book 0. who wrote book 0"
    assert [passage["text"] for passage in first["positive_passages"]] == [
        "Book 0 was written by author 0."
    ]
    assert [passage["text"] for passage in first["negative_passages"]] == [
        "Book 0 came out in 1900.",
        "Book 0 was printed by printer 0.",
    ]
    card = (tmp_path / "out" / "README.md").read_text()
    assert 'sentence_transformers = load_dataset("PATH_OR_NAME", "sentence-transformers")' in card


def test_promptrievers_columns_are_written_and_read(sqlite_store: Store, tmp_path: Path) -> None:
    make_run(sqlite_store, kept=1)
    export(sqlite_store, tmp_path / "out", views=["promptriever"])
    loaded = load_afresh(tmp_path / "out", tmp_path, "promptriever")["books"]
    assert list(loaded["types"]) == [
        *("query_id", "query", "only_query", "only_instruction", "has_instruction"),
        *("positive_passages", "negative_passages"),
    ]
    right, other, off = (
        "Book 0 was written by author 0.",
        "Book 0 came out in 1900.",
        "Book 0 was printed by printer 0.",
    )
    found = [
        (
            row["only_query"],
            row["only_instruction"],
            [each["text"] for each in row["positive_passages"]],
            [(each["text"], each["explanation"]) for each in row["negative_passages"]],
        )
        for row in loaded["rows"]
    ]
    author, year = "Find the author of book 0.", "Find the year of book 0."
    wrote, printed = "who wrote book 0", "who printed book 0"
    violates, misses = "instruction_negative", "query_negative"
    assert found == [
        (wrote, author, [right], [(other, violates), (off, misses)]),
        (wrote, year, [other], [(right, violates), (off, misses)]),
        (printed, author, [off], [(right, misses), (other, misses)]),
        (wrote, "", [right, other], [(off, misses)]),
        (printed, "", [off], [(right, misses), (other, misses)]),
    ]
    first, *_ = loaded["rows"]
    assert first["query"] == f"{wrote} {author}" and first["has_instruction"] is True
    read = read_release(tmp_path / "out" / "promptriever").groups
    assert [(group.triplets()[0], len(group.negatives)) for group in read] == [
        ((told, asked, positive), len(negatives))
        for asked, told, positives, negatives in found
        for positive in positives
    ]
    assert [negative.grade for negative in read[0].negatives] == [1, 0]


@pytest.mark.parametrize("view", ["tevatron", "promptriever"])
def test_a_view_with_lists_is_refused_as_csv(
    sqlite_store: Store, tmp_path: Path, view: str
) -> None:
    make_run(sqlite_store, kept=1)
    with pytest.raises(BadInput, match="use parquet or jsonl"):
        export(sqlite_store, tmp_path / "out", format="csv", views=[view])
    export(sqlite_store, tmp_path / "out", format="csv", views=["sentence-transformers"])


def test_balanced_takes_as_many_of_every_kind_in_any_order() -> None:
    ids, kinds = array("q", range(10)), ["a"] * 7 + ["b"] * 3
    taken = balanced(ids, kinds, seed=1)
    assert list(taken) == sorted(taken) and [kinds[place] for place in taken].count("a") == 3
    assert set(taken) >= {7, 8, 9}
    backwards = balanced(array("q", reversed(ids)), kinds[::-1], seed=1)
    assert set(backwards) == set(taken) != set(balanced(ids, kinds, seed=2))


def test_a_release_is_balanced_by_source(store: Store, tmp_path: Path) -> None:
    make_run(store, kept=5)
    told = export(store, tmp_path / "out", balance="source", split_by="source")
    assert told["splits"] == {"boolq": 2, "nq": 2}
    assert "as many groups of every source" in (tmp_path / "out" / "README.md").read_text()


def test_a_release_of_a_study_holds_its_groups_only(store: Store, tmp_path: Path) -> None:
    run_id = make_run(store, kept=9, dropped=0)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=3, overlap=1, name="three")
        session.commit()
        study_id = study.id
        query = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        groups = set(session.scalars(query.where(StudyItem.study_id == study_id)))
    told = export(store, tmp_path / "out", study_id=study_id, format="jsonl")
    assert {row["group_id"] for row in rows_of(tmp_path / "out")["books"]} == groups
    assert told["groups"] == len(groups) == 3
    with pytest.raises(NotFound, match="no study 99"):
        export(store, tmp_path / "none", study_id=99)
    other = make_run(store, name="papers")
    with pytest.raises(BadInput, match=rf"study {study_id} is of run {run_id}"):
        export(store, tmp_path / "none", dataset="papers", run_id=other, study_id=study_id)
    with pytest.raises(Refused, match="has no item of a group that could be exported"):
        export(store, tmp_path / "none", study_id=study_id, reviews="approved")


@pytest.mark.long
@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv"])
def test_passages_of_a_megabyte_come_back_whole(
    format: str, sqlite_store: Store, tmp_path: Path
) -> None:
    long = 'He said: "dunes,\n\r\nmove"; ‮ü🙂 ' * 33_000
    assert len(long.encode()) > 1_000_000
    make_run(sqlite_store, texts={"document_positive": long, "query_positive": "=1+1"})
    export(sqlite_store, tmp_path / "out", format=format)
    row = load_afresh(tmp_path / "out", tmp_path)["books"]["rows"][0]
    assert row["document_positive"] == long
    assert row["query_positive"] == ("'=1+1" if format == "csv" else "=1+1")


@pytest.mark.long
def test_a_release_outlives_the_files_it_was_imported_from_but_not_its_folder(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    pairs = tmp_path / "groups.jsonl"
    row = {
        "query_positive": "q",
        "instruction_positive": "i",
        "document_positive": "p",
        "query_negative": "q2",
        "instruction_negative": "i2",
        "hard_negative_document_1": "p1",
        "hard_negative_document_2": "p2",
    }
    pairs.write_text(json.dumps(row) + "\n")
    assert inf("import", "--dataset", "mine", "--groups", pairs).code == 0
    pairs.unlink()
    told = inf("export", "--dataset", "mine", "--out", tmp_path / "out", "--json")
    assert told.code == 0 and told.json["groups"] == 1
    shutil.rmtree(tmp_path / "out")
    again = inf("export", "--dataset", "mine", "--out", tmp_path / "again", "--json")
    assert again.json["content_sha256"] == told.json["content_sha256"]
    lost = inf("train", "--release", 1, "--out", tmp_path / "model", "--json")
    assert lost.code == 1 and "is no longer at" in lost.json["error"]
    assert "export it again" in lost.json["error"]
