"""Import: what is read, what is refused and why, and that importing again adds nothing."""

import csv
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import count_rows
from pyarrow import parquet
from sqlalchemy import select

from curation.importing.importing import ImportReport, import_dataset
from curation.importing.rows import MAX_TEXT_BYTES
from db.corpus.datasets import get_dataset, list_datasets, text_sha256
from db.errors import BadInput, BadRows, NotFound, Refused
from db.store.store import Store
from db.tables import Dataset, Pair, Passage

PAIRS = [
    {"query_id": "q1", "query": "who wrote it", "passage_id": "p1", "source": "nq"},
    {"query_id": "q2", "query": "wer schrieb es – ü 🙂", "passage_id": "p2", "source": "nq"},
    {"query_id": "q3", "query": "who else wrote it", "passage_id": "p1", "source": "boolq"},
]
PASSAGES = [
    {"passage_id": "p1", "title": "Books", "text": 'She wrote it, "in 1901",\nat home.'},
    {"passage_id": "p2", "title": "Bücher", "text": "Sie schrieb es 1902."},
    {"passage_id": "p3", "title": "", "text": "Nobody asks about this one."},
]
GOOD_PAIR = b'{"query_id": "ok", "query": "fine", "passage_id": "p1", "passage": "the text"}\n'


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        parquet.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def do_import(store: Store, pairs: Path, **options: Any) -> ImportReport:
    return import_dataset(store, name="books", pairs=pairs, **options)


def reasons(store: Store, pairs: Path, **options: Any) -> list[tuple[int, str]]:
    """The lines and reasons that refuse the file; nothing is imported."""
    with pytest.raises(BadRows) as caught:
        do_import(store, pairs, **options)
    assert count_rows(store, "pair") == count_rows(store, "passage") == 0
    assert count_rows(store, "dataset") == 0
    return [(row.line, row.reason) for row in caught.value.rows]


@pytest.mark.parametrize("extension", ["jsonl", "csv", "parquet"])
def test_every_format_gives_the_same_rows_and_a_second_import_adds_nothing(
    store: Store, tmp_path: Path, extension: str
) -> None:
    pairs = write_rows(tmp_path / f"pairs.{extension}", PAIRS)
    passages = write_rows(tmp_path / f"passages.{extension}", PASSAGES)
    options = {"passages": passages, "source": "Books", "licence": "cc0-1.0"}
    first = do_import(store, pairs, **options)
    assert first.imported == {"pairs": 3, "passages": 3} and first.skipped == []
    again = do_import(store, pairs, **options)
    assert again.imported == {"pairs": 0, "passages": 0}
    assert again.unchanged == {"pairs": 3, "passages": 3}
    assert again.dataset_id == first.dataset_id
    with store.read() as session:
        stored = {row.external_id: row for row in session.scalars(select(Passage))}
        assert {key: row.origin for key, row in stored.items()} == {
            "p1": "seed",
            "p2": "seed",
            "p3": "pool",
        }
        assert stored["p1"].text == PASSAGES[0]["text"]
        assert stored["p1"].sha256 == text_sha256(PASSAGES[0]["text"])
        found = session.execute(select(Pair.query, Pair.meta).order_by(Pair.external_id)).all()
        assert [row.query for row in found] == [row["query"] for row in PAIRS]
        assert [row.meta for row in found] == [{"source": row["source"]} for row in PAIRS]
        (summary,) = list_datasets(session)
        assert (summary.name, summary.pairs, summary.passages) == ("books", 3, 3)
        assert (summary.source, summary.licence) == ("Books", "cc0-1.0")


BAD_LINES = [
    (b'{"query_id": "q", "query": "", "passage_id": "p1"}', "no query (`query` is empty)"),
    (b'{"query_id": "q", "query": "  ", "passage_id": "p1"}', "no query (`query` is empty)"),
    (b'{"query_id": "q", "passage_id": "p1"}', "no query (`query` is missing)"),
    (b'{"query_id": "q", "query": 7, "passage_id": "p1"}', "`query` is a number, not text"),
    (b'{"query": "x", "passage_id": "p1"}', "no query_id"),
    (b'{"query_id": "q", "query": "x"}', "no passage_id"),
    (b'{"query_id": [], "query": "x", "passage_id": "p1"}', "`query_id` is a list, not text"),
    (b'{"query_id": "q", "query": "x", "passage_id": "p9"}', "unknown passage_id 'p9'"),
    (
        b'{"query_id": "q", "query": "x", "passage_id": "p9", "passage": " "}',
        "empty text (`passage` is empty)",
    ),
    (b'{"query_id": "q", "query": "caf\xe9", "passage_id": "p1"}', "not UTF-8 (byte 0xe9"),
    (b'{"query_id": "q", "query": "a\x00b", "passage_id": "p1"}', "NUL byte in the line"),
    (b'{"query_id": "q", "query": "a\\u0000b", "passage_id": "p1"}', "NUL byte in `query`"),
    (
        b'{"query_id": "q", "query": "x", "passage_id": "p1", "note": {"a": ["\\u0000"]}}',
        "NUL byte in `note`",
    ),
    (b'{"query_id": "q", "query": "a\\ud800b", "passage_id": "p1"}', "lone surrogate U+D800"),
    (b'{"query_id": "ok", "query": "other", "passage_id": "p1"}', "duplicate query_id 'ok'"),
    (
        b'{"query_id": "q", "query": "x", "passage_id": "p1", "passage": "other"}',
        "duplicate passage_id 'p1': above it has another text",
    ),
    (b'{"query_id": "q", "query": "x"', "invalid JSON"),
    (b"[1, 2]", "invalid JSON: the line is not an object"),
    (b'{"query_id": "q", "query": "x", "passage_id": "p1", "n": NaN}', "invalid JSON: NaN"),
    (b'{"query_id": "q", "query": "x", "passage_id": "p1", "n": 1e999}', "number 1e999 is too"),
    (b"[" * 200_000, "invalid JSON: nested too deep"),
    (
        b'{"query_id": "q", "query": "x", "passage_id": "p2", "passage": "' + b"a" * 5_000_000,
        "invalid JSON",
    ),
    (
        b'{"query_id": "q", "query": "x", "passage_id": "p2", "passage": "%s"}'
        % (b"a" * 5_000_000),
        "text too long: `passage` has 5,000,000 bytes",
    ),
    (
        '{{"query_id": "q", "query": "x", "passage_id": "p2", "passage": "{}"}}'.format(
            "ü" * (MAX_TEXT_BYTES // 2 + 1)
        ).encode(),
        "text too long",
    ),
    (b'{"query_id": "%s", "query": "x", "passage_id": "p1"}' % (b"i" * 600), "longer than 512"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_LINES, ids=[words[:30] for _, words in BAD_LINES])
def test_a_bad_row_is_told_with_its_line_and_reason_and_nothing_is_imported(
    sqlite_store: Store, tmp_path: Path, bad: bytes, reason: str
) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(GOOD_PAIR + b"\n" + bad + b"\n")
    ((line, words),) = reasons(sqlite_store, path)
    assert line == 3 and reason in words


@pytest.mark.long
def test_the_rest_is_imported_when_bad_rows_are_skipped(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    lines = [line for line, _ in BAD_LINES]
    path.write_bytes(GOOD_PAIR + b"\n".join(lines) + b"\n" + GOOD_PAIR.replace(b"ok", b"ok2"))
    report = do_import(store, path, skip_bad=True)
    assert report.imported == {"pairs": 2, "passages": 1}
    assert [row.line for row in report.skipped] == list(range(2, len(lines) + 2))
    assert {row.file for row in report.skipped} == {"pairs.jsonl"}


def test_a_pair_of_a_bad_passage_is_bad_too(sqlite_store: Store, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "pairs.jsonl", PAIRS)
    bad = [*PASSAGES[1:], {"passage_id": "p1", "title": "", "text": ""}]
    passages = write_rows(tmp_path / "passages.jsonl", bad)
    found = do_import(sqlite_store, pairs, passages=passages, skip_bad=True)
    assert found.imported == {"pairs": 1, "passages": 2}
    assert [(row.file, row.line, row.reason) for row in found.skipped] == [
        ("passages.jsonl", 3, "empty text (`text` is empty)"),
        ("pairs.jsonl", 1, "unknown passage_id 'p1'"),
        ("pairs.jsonl", 3, "unknown passage_id 'p1'"),
    ]


def test_other_content_under_a_stored_id_is_refused(store: Store, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "pairs.jsonl", PAIRS)
    passages = write_rows(tmp_path / "passages.jsonl", PASSAGES)
    do_import(store, pairs, passages=passages)
    changed = [PAIRS[0] | {"query": "who did not"}, *PAIRS[1:]]
    retold = [PASSAGES[0] | {"title": "Other"}, PASSAGES[1] | {"text": "Other"}, PASSAGES[2]]
    with pytest.raises(BadRows) as caught:
        do_import(
            store,
            write_rows(tmp_path / "changed.jsonl", changed),
            passages=write_rows(tmp_path / "retold.jsonl", retold),
        )
    assert [str(row) for row in caught.value.rows] == [
        "retold.jsonl, line 1: duplicate passage_id 'p1': in the dataset it has another title or "
        "columns",
        "retold.jsonl, line 2: duplicate passage_id 'p2': in the dataset it has another text",
        "changed.jsonl, line 1: duplicate query_id 'q1': in the dataset it has another query or "
        "passage",
    ]
    assert "`skip_bad=`" in str(caught.value)


def test_a_later_pair_makes_a_pool_passage_a_seed(store: Store, tmp_path: Path) -> None:
    passages = write_rows(tmp_path / "passages.jsonl", PASSAGES)
    do_import(store, write_rows(tmp_path / "pairs.jsonl", PAIRS), passages=passages)
    later = [{"query_id": "q4", "query": "nobody", "passage_id": "p3"}]
    report = do_import(store, write_rows(tmp_path / "later.jsonl", later))
    assert report.imported == {"pairs": 1, "passages": 0}
    with store.read() as session:
        assert set(session.scalars(select(Passage.origin))) == {"seed"}


def test_further_columns_stay_equal_through_the_store(store: Store, tmp_path: Path) -> None:
    """JSONB keeps 1e20 as an integer and 2.0 as 2.0: the second import must not see a change."""
    meta = {"a": 1e20, "b": 2.0, "c": [1, {"d": None, "e": True}], "f": "ü", "g": -0.5, "h": 10**30}
    path = write_rows(tmp_path / "pairs.jsonl", [json.loads(GOOD_PAIR) | meta])
    assert do_import(store, path).imported["pairs"] == 1
    assert do_import(store, path).unchanged["pairs"] == 1


def test_whole_number_ids_and_negative_ones_are_taken_as_text(store: Store, tmp_path: Path) -> None:
    rows = [
        {"query_id": 1185869, "query": "x", "passage_id": 3, "passage": "text"},
        {"query_id": "nq--3290814144789249484", "query": "y", "passage_id": 3, "passage": "text"},
    ]
    assert do_import(store, write_rows(tmp_path / "p.parquet", rows[:1])).imported["pairs"] == 1
    assert do_import(store, write_rows(tmp_path / "p.jsonl", rows)).imported["pairs"] == 1
    with store.read() as session:
        assert set(session.scalars(select(Pair.external_id))) == {
            "1185869",
            "nq--3290814144789249484",
        }


def test_bad_rows_of_csv_are_told_with_the_line_they_begin_at(
    sqlite_store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(
        b"\xef\xbb\xbfquery_id,query,passage_id,passage\r\n"
        b'q1,"two\nlines",p1,text\r\n'
        b"q2,,p1,text\r\n"
        b"q3,caf\xe9,p1,text\r\n"
        b"q4,x,p1\r\n"
        b"q5,a\x00b,p1,text\r\n"
        b'q6,"a"b,p1,text\r\n'
        b"q7,fine,p1,text\r\n"
    )
    found = reasons(sqlite_store, path)
    assert [line for line, _ in found] == [4, 5, 6, 7, 8]
    for (_, words), reason in zip(
        found,
        ["no query", "not UTF-8 in `query`", "3 fields", "NUL byte in `query`", "invalid CSV"],
        strict=True,
    ):
        assert reason in words
    assert do_import(sqlite_store, path, skip_bad=True).imported["pairs"] == 2


def test_bad_rows_of_parquet_are_told_with_their_number(
    sqlite_store: Store, tmp_path: Path
) -> None:
    queries = pa.array([b"good", b"caf\xe9", None, b"a\x00b", b"fine"], pa.binary())
    table = pa.table(
        {
            "query_id": ["1", "2", "3", "4", "5"],
            "query": pa.Array.from_buffers(pa.string(), 5, queries.buffers()),
            "passage_id": ["p"] * 5,
            "passage": ["text"] * 5,
            "score": [1.0, float("nan"), None, 2.0, 3.0],
        }
    )
    path = tmp_path / "pairs.parquet"
    parquet.write_table(table, path)
    assert reasons(sqlite_store, path) == [
        (2, "not UTF-8 in `query`"),
        (3, "no query (`query` is missing)"),
        (4, "NUL byte in `query`: 'a\\x00b'; take it out"),
    ]


def test_a_column_that_no_row_has_is_one_error(sqlite_store: Store, tmp_path: Path) -> None:
    rows = [{"id": number, "question": "x", "passage_id": "p"} for number in range(100)]
    for name in ("pairs.jsonl", "pairs.csv", "pairs.parquet"):
        path = write_rows(tmp_path / name, rows)
        with pytest.raises(BadInput, match="no column `query`; it has"):
            do_import(sqlite_store, path)


def test_files_that_are_none_are_refused_in_words(sqlite_store: Store, tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("x")
    (tmp_path / "empty.jsonl").write_text("\n\n")
    (tmp_path / "not.parquet").write_text("PAR?")
    (tmp_path / "wide.csv").write_bytes("query_id,query".encode("utf-16"))
    (tmp_path / "wider.csv").write_bytes("query_id,query".encode("utf-32"))
    for name, words in [
        ("pairs.txt", "use .jsonl, .json, .csv"),
        ("missing.jsonl", "there is no such file"),
        ("empty.jsonl", "holds no rows"),
        ("not.parquet", "is not a Parquet file"),
        ("wide.csv", "holds no rows"),
        ("wider.csv", "is UTF-32: save it as UTF-8"),
    ]:
        with pytest.raises(BadInput, match=words):
            do_import(sqlite_store, tmp_path / name)


def test_a_data_set_keeps_its_licence(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(GOOD_PAIR)
    do_import(store, path)
    do_import(store, path, licence="cc-by-4.0")
    with pytest.raises(Refused, match=r"has the licence 'cc-by-4\.0', not 'mit'"):
        do_import(store, path, licence="mit")
    with store.read() as session:
        assert session.scalars(select(Dataset.licence)).all() == ["cc-by-4.0"]


def test_an_unknown_data_set_is_told_with_those_there_are(store: Store, tmp_path: Path) -> None:
    with store.read() as session, pytest.raises(NotFound, match="there is none yet"):
        get_dataset(session, "books")
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(GOOD_PAIR)
    do_import(store, path)
    with (
        store.read() as session,
        pytest.raises(NotFound, match="no dataset 'boks'; existing ones: books"),
    ):
        get_dataset(session, "boks")


def test_progress_ends_at_its_total(sqlite_store: Store, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    for extension in ("jsonl", "csv", "parquet"):
        path = write_rows(
            tmp_path / f"many.{extension}",
            [
                {"query_id": f"q{n}", "query": "x", "passage_id": "p", "passage": "text"}
                for n in range(3000)
            ],
        )
        do_import(sqlite_store, path, progress=lambda done, total: seen.append((done, total)))
        assert seen[-1][1] == 2 * path.stat().st_size
        assert seen[-1][0] == pytest.approx(seen[-1][1], rel=0.01)
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        seen.clear()


def test_the_command_imports_the_real_queries(store: Store, real_data: Path, inf: Any) -> None:
    folder = real_data / "google_queries"
    command = ["import", "--dataset", "google", "--pairs", folder / "pairs.jsonl"]
    command += ["--passages", folder / "passages.jsonl", "--licence", "cc-by-sa-3.0", "--json"]
    first = inf(*command)
    assert first.code == 0, first.err
    assert (first.json["imported"], first.json["imported_passages"]) == (3315, 3072)
    assert inf(*command).json | {"dataset_id": 0} == {
        "dataset_id": 0,
        "dataset": "google",
        "imported": 0,
        "imported_passages": 0,
        "imported_negatives": 0,
        "unchanged": 3315,
        "unchanged_passages": 3072,
        "skipped": 0,
        "bad_rows": [],
        "notices": [],
    }
    with store.read() as session:
        pair = session.scalars(
            select(Pair).where(Pair.external_id == "nq--3290814144789249484")
        ).one()
        assert pair.query == "who got the first nobel prize in physics"


def test_the_command_lists_bad_rows_as_json(sqlite_store: Store, tmp_path: Path, inf: Any) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(GOOD_PAIR + b"nonsense\n")
    refused = inf("import", "--dataset", "d", "--pairs", path, "--json")
    assert refused.code == 1 and "pairs.jsonl, line 2: invalid JSON" in refused.json["error"]
    assert refused.json["bad_rows"][0]["line"] == 2
    taken = inf("import", "--dataset", "d", "--pairs", path, "--json", "--skip-bad")
    assert taken.code == 0
    assert (taken.json["imported"], taken.json["skipped"]) == (1, 1)
    assert taken.json["bad_rows"][0]["file"] == "pairs.jsonl"
    assert inf("import", "--pairs", path).code == 2


@pytest.mark.long
def test_an_import_that_does_not_wait_is_a_job(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    pairs = tmp_path / "pairs.jsonl"
    row = {"query_id": "q", "query": "who", "passage_id": "p", "passage": "he"}
    pairs.write_text(json.dumps(row) + "\n")
    queued = inf("import", "--dataset", "mine", "--pairs", pairs, "--detach", "--json")
    assert queued.code == 0 and list(queued.json) == ["job_id"], queued.out + queued.err
    deadline = time.monotonic() + 60
    while (job := shown(inf, queued.json["job_id"]))["status"] in ("queued", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert job["status"] == "done", job
    assert (job["result"]["imported"], job["result"]["dataset_id"]) == (1, 1)
    pairs.write_text("not JSON\n")
    bad = inf("import", "--dataset", "mine", "--pairs", pairs, "--detach", "--json")
    while (job := shown(inf, bad.json["job_id"]))["status"] in ("queued", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert job["status"] == "failed" and "line 1" in job["error"]


def shown(inf: Any, job_id: int) -> Any:
    return inf("jobs", "show", job_id, "--json").json
