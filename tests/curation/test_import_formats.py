"""The formats and folders that people have: compressed, semicolons, tabs, arrays, Excel, BEIR."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import count_rows
from sqlalchemy import select

from curation.importing.importing import ImportReport, import_dataset, preview_import
from db.errors import BadInput, BadRows
from db.store.store import Store
from db.tables import Pair, Passage

ROWS = [
    {
        "query_id": "q1",
        "query": "why is the sky blue?",
        "passage_id": "p1",
        "passage": "Air; light",
    },
    {"query_id": "q2", "query": 'said "no", twice', "passage_id": "p2", "passage": "Línea\nzwei"},
]


def delimited(delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(ROWS[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(ROWS)
    return text.getvalue().encode()


def lines() -> bytes:
    return "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def array() -> bytes:
    return json.dumps(ROWS, indent=1, ensure_ascii=False).encode()


def workbook() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(list(ROWS[0]))
    for row in ROWS:
        sheet.append(list(row.values()))
    kept = io.BytesIO()
    book.save(kept)
    return kept.getvalue()


FORMATS = {
    "rows.csv": delimited(";"),
    "rows.tsv": delimited("\t"),
    "tabs.csv": delimited("\t"),
    "marked.csv": b"\xef\xbb\xbf" + delimited(";"),
    "rows.csv.gz": gzip.compress(delimited(",")),
    "rows.tsv.gz": gzip.compress(delimited("\t")),
    "rows.jsonl.gz": gzip.compress(lines()),
    "rows.csv.bz2": bz2.compress(delimited(";")),
    "rows.jsonl.xz": lzma.compress(lines()),
    "rows.json.bz2": bz2.compress(array()),
    "wide.csv": delimited(",").decode().encode("utf-16"),
    "bare.csv": delimited(";").decode().encode("utf-16-le"),
    "wide.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode(
        "utf-16-be"
    ),
    "wide.tsv.xz": lzma.compress(delimited("\t").decode().encode("utf-16")),
    "excel.csv": delimited(";").decode().encode("cp1252"),
    "object.json": json.dumps({"version": 2, "data": ROWS}, indent=2).encode(),
    "object.json.gz": gzip.compress(json.dumps({"records": ROWS}).encode()),
    "rows.json": array(),
    "array.json": b"\n " + array() + b"\n",
    "rows.json.gz": gzip.compress(array()),
    "lines.json": lines(),
    "rows.xlsx": workbook(),
}


def do_import(store: Store, path: Path, **options: Any) -> ImportReport:
    return import_dataset(store, name="books", pairs=path, **options)


def stored(store: Store) -> list[tuple[str, str, str, str]]:
    with store.read() as session:
        query = select(Pair.external_id, Pair.query, Passage.external_id, Passage.text)
        found = session.execute(query.join(Passage, Pair.passage_id == Passage.id))
        return sorted((a, b, c, d) for a, b, c, d in found)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_pairs(sqlite_store: Store, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FORMATS[name])
    report = do_import(sqlite_store, tmp_path / name)
    assert report.imported == {"pairs": 2, "passages": 2}
    assert stored(sqlite_store) == [tuple(row.values()) for row in ROWS]
    assert do_import(sqlite_store, tmp_path / name).imported == {"pairs": 0, "passages": 0}


def test_two_columns_are_enough_and_ids_come_from_content(
    sqlite_store: Store, tmp_path: Path
) -> None:
    text = "query,passage\nwhat is tea?,Leaves in water.\nwhat is tea?,A meal.\n"
    (tmp_path / "one.csv").write_text(text)
    (tmp_path / "other.csv").write_text("passage;query\nA meal.;what is tea?\n")
    assert do_import(sqlite_store, tmp_path / "one.csv").imported == {"pairs": 2, "passages": 2}
    again = do_import(sqlite_store, tmp_path / "other.csv")
    assert (again.imported, again.unchanged["pairs"]) == ({"pairs": 0, "passages": 0}, 1)


@pytest.mark.parametrize("empty", ["query_id", "passage_id"])
def test_an_id_that_is_empty_is_still_a_bad_row(
    sqlite_store: Store, tmp_path: Path, empty: str
) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROWS[0] | {empty: ""}))
    with pytest.raises(BadRows, match=f"no {empty}"):
        do_import(sqlite_store, tmp_path / "rows.jsonl")


def test_columns_are_mapped_and_what_cannot_be_meant_is_refused(
    sqlite_store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("question,answer,query\nwhat is tea?,Leaves in water.,kept\n")
    with pytest.raises(BadInput, match=r"no column `passage` or `passage_id`") as missing:
        do_import(sqlite_store, path)
    assert "propose `column=passage=answer`: give these" in str(missing.value)
    with pytest.raises(BadInput, match="no column `questoin`"):
        do_import(sqlite_store, path, columns={"questoin": "question"})
    with pytest.raises(BadInput, match="`answer` is mapped twice"):
        do_import(sqlite_store, path, columns={"query": "answer", "passage": "answer"})
    assert count_rows(sqlite_store, "dataset") == 0
    do_import(sqlite_store, path, columns={"query": "question", "passage": "answer"})
    with sqlite_store.read() as session:
        pair = session.scalars(select(Pair)).one()
        assert (pair.query, pair.meta) == ("what is tea?", {"query (file)": "kept"})


def refusals(folder: Path) -> list[tuple[Path, str]]:
    """Places that hold no rows, each with what its message must say."""
    (folder / "folder.jsonl").mkdir()
    (folder / "loop.jsonl").symlink_to(folder / "loop.jsonl")
    (folder / "nowhere.jsonl").symlink_to(folder / "missing")
    (folder / "pickle.jsonl").write_bytes(bytes(range(256)) * 40)
    (folder / "book.csv").write_bytes(workbook())
    (folder / "packed.jsonl").write_bytes(gzip.compress(lines()))
    (folder / "plain.jsonl.gz").write_bytes(lines())
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(lines() * 500)[:-30])
    (folder / "text.xlsx").write_text("query,passage")
    (folder / "broken.json").write_text('[{"query": "a",\n "passage": "b"},\n {"query": }]')
    (folder / "open.json").write_text('[{"query": "a", "passage": "b"}')
    os.mkfifo(folder / "pipe.csv")
    return [
        (folder / "folder.jsonl", r"folder\.jsonl: the dataset has no \.parquet"),
        (folder / "nothing-*.jsonl", "no file matches"),
        (folder / "loop.jsonl", "a symbolic link that leads back to itself"),
        (folder / "nowhere.jsonl", "a symbolic link to nothing"),
        (folder / "pickle.jsonl", "is not text: it holds binary data"),
        (folder / "book.csv", "looks like a zip archive or an Excel workbook"),
        (folder / "packed.jsonl", "looks like gzip: its name must end in .gz"),
        (folder / "plain.jsonl.gz", "is damaged or cut off"),
        (folder / "cut.jsonl.gz", "is damaged or cut off"),
        (folder / "text.xlsx", "is not an Excel workbook"),
        (folder / "broken.json", "broken.json, line 3: invalid JSON"),
        (folder / "open.json", "no `,` or `\\]` after this element"),
        (folder / "pipe.csv", "is neither a file nor a folder"),
        (folder / "rows.doc", "the extension gives the format"),
    ]


def test_what_holds_no_rows_has_an_error_of_its_own(sqlite_store: Store, tmp_path: Path) -> None:
    for path, message in refusals(tmp_path):
        with pytest.raises(BadInput, match=message):
            do_import(sqlite_store, path)
    assert count_rows(sqlite_store, "dataset") == count_rows(sqlite_store, "pair") == 0


def test_a_key_that_stands_twice_is_a_bad_row(sqlite_store: Store, tmp_path: Path) -> None:
    row = '{"query": "a", "query": "b", "passage": "c"}'
    (tmp_path / "rows.jsonl").write_text(row)
    with pytest.raises(BadRows, match="the key `query` stands twice"):
        do_import(sqlite_store, tmp_path / "rows.jsonl")


def test_bad_elements_of_an_array_are_told_with_their_line(
    sqlite_store: Store, tmp_path: Path
) -> None:
    (tmp_path / "rows.json").write_text(
        '[\n {"query": "a", "passage": "b"},\n 7,\n {"query": ""}\n]'
    )
    with pytest.raises(BadRows) as caught:
        do_import(sqlite_store, tmp_path / "rows.json")
    assert [row.line for row in caught.value.rows] == [3, 4]


def test_a_preview_shows_rows_and_refusals_and_stores_nothing(
    sqlite_store: Store, tmp_path: Path
) -> None:
    pairs, passages = tmp_path / "pairs.csv", tmp_path / "passages.csv"
    pairs.write_text("qid,query,passage_id\n" + "".join(f"{n},q{n},p{n}\n" for n in range(30)))
    passages.write_text("passage_id,text\n" + "".join(f"p{n},text {n}\n" for n in range(29)))
    preview = preview_import(
        sqlite_store, name="n", pairs=pairs, passages=passages, columns={"query_id": "qid"}
    )
    assert (preview.pairs, preview.passages, len(preview.preview)) == (29, 29, 20)
    assert preview.preview[3] == {
        "query_id": "3",
        "query": "q3",
        "passage_id": "p3",
        "passage": "text 3",
    }
    assert [(row.line, row.reason) for row in preview.bad_rows] == [
        (31, "unknown passage_id 'p29'")
    ]
    assert count_rows(sqlite_store, "dataset") == count_rows(sqlite_store, "passage") == 0


def beir(folder: Path) -> Path:
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"d{n}", "title": f"T{n}", "text": f"text {n}"} for n in range(5)]
    queries = [{"_id": "1", "text": "one"}, {"_id": "2", "text": "two"}, {"_id": "3", "text": "x"}]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n1\td0\t1\n2\td1\t1\n2\td2\t2\n3\td3\t0\n"
    )
    return folder


def test_a_beir_folder_gives_a_pair_for_every_relevant_document(
    store: Store, tmp_path: Path, inf: Any
) -> None:
    folder = beir(tmp_path / "scifact")
    done = inf("import", "--dataset", "sci", "--beir", folder, "--licence", "cc0-1.0", "--json")
    result = done.json
    assert (result["imported"], result["imported_passages"]) == (3, 5)
    assert [row[:3] for row in stored(store)] == [
        ("1", "one", "d0"),
        ("2:d1", "two", "d1"),
        ("2:d2", "two", "d2"),
    ]
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.write("9\td0\t1\n")
    refused = inf("import", "--dataset", "other", "--beir", folder, "--json")
    assert refused.code == 1
    assert refused.json["bad_rows"] == [
        {"file": "test.tsv", "line": 6, "reason": "the query is not in queries"}
    ]


def test_a_beir_folder_is_previewed_with_its_refusals_and_nothing_is_stored(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    folder = beir(tmp_path / "scifact")
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.write("9\td0\t1\n")
    shown = inf("import", "--dataset", "sci", "--beir", folder, "--preview", "--json")
    assert shown.code == 0, shown.err
    assert (shown.json["pairs"], shown.json["passages"]) == (3, 5)
    assert sorted(row["query_id"] for row in shown.json["preview"]) == ["1", "2:d1", "2:d2"]
    assert [row["reason"] for row in shown.json["bad_rows"]] == ["the query is not in queries"]
    assert count_rows(sqlite_store, "dataset") == count_rows(sqlite_store, "passage") == 0
    assert inf("import", "--dataset", "x", "--groups", folder, "--preview").code == 2


def test_the_command_maps_columns_and_previews(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    path = tmp_path / "faq.csv"
    path.write_text("Frage;Antwort\nWas ist Tee?;Blätter in Wasser.\n")
    mapped = ["--column", "query=Frage", "--column", "passage=Antwort"]
    shown = inf("import", "--dataset", "faq", "--pairs", path, *mapped, "--preview")
    assert "1 pair and 1 passage would be imported" in shown.out
    assert count_rows(sqlite_store, "pair") == 0
    inf("import", "--dataset", "faq", "--pairs", path, *mapped)
    assert [row[1] for row in stored(sqlite_store)] == ["Was ist Tee?"]
    wrong = inf("import", "--dataset", "faq", "--pairs", path, "--column", "query")
    assert wrong.code == 2
