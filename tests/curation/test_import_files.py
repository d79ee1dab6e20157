"""Imports as people have them: columns by file, shards and folders, MS MARCO, names proposed."""

import json
import lzma
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import count_rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from sqlalchemy import select

from curation.importing.columns import (
    MissingColumns,
    columns_of,
    guessed_columns,
    proposed_columns,
)
from curation.importing.importing import ImportReport, import_dataset, preview_import
from db.errors import BadInput, BadRows, InfError, Refused
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Pair, Passage


def do_import(store: Store, pairs: Path, **options: Any) -> ImportReport:
    return import_dataset(store, name="mine", pairs=pairs, **options)


def stored(store: Store) -> list[tuple[str, str, str]]:
    """(query_id, query, passage) of every pair."""
    with store.read() as session:
        query = select(Pair.external_id, Pair.query, Passage.text)
        found = session.execute(query.join(Passage, Pair.passage_id == Passage.id))
        return sorted((a, b, c) for a, b, c in found)


def of_lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


# ---- columns by file


def test_a_column_is_mapped_in_the_file_that_has_it(store: Store, tmp_path: Path) -> None:
    """Passages say `docid`, pairs `passage_id`: one mapping for both made this impossible."""
    pairs = of_lines(tmp_path / "pairs.jsonl", {"query": "tea?", "passage_id": "d1"})
    passages = of_lines(tmp_path / "docs.jsonl", {"docid": "d1", "text": "Leaves."})
    columns = {"passage_id": "docid"}
    assert do_import(store, pairs, passages=passages, columns=columns).imported["pairs"] == 1
    assert [row[1:] for row in stored(store)] == [("tea?", "Leaves.")]


def test_one_column_is_another_of_ours_in_each_file(sqlite_store: Store, tmp_path: Path) -> None:
    pairs = of_lines(tmp_path / "pairs.jsonl", {"text": "tea?", "doc": "d1", "id": "q7"})
    passages = of_lines(tmp_path / "docs.jsonl", {"id": "d1", "text": "Leaves."})
    columns = {
        "pairs.query": "text",
        "pairs.query_id": "id",
        "pairs.passage_id": "doc",
        "passages.passage_id": "id",
    }
    done = do_import(sqlite_store, pairs, passages=passages, columns=columns)
    assert done.imported == {"pairs": 1, "passages": 1}
    assert stored(sqlite_store) == [("q7", "tea?", "Leaves.")]


def test_a_mapping_that_may_be_meant_for_either_file_is_refused(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    pairs = of_lines(tmp_path / "pairs.jsonl", {"query": "q", "passage_id": "d1", "docid": "x"})
    passages = of_lines(tmp_path / "docs.jsonl", {"docid": "d1", "text": "Leaves."})
    words = ("import", "--dataset", "mine", "--pairs", pairs, "--passages", passages)
    refused = inf(*words, "--column", "passage_id=docid", "--json")
    assert refused.code == 1 and "pairs.passage_id=docid" in refused.json["error"]
    assert count_rows(sqlite_store, "dataset") == 0
    done = inf(*words, "--column", "passages.passage_id=docid", "--json")
    assert done.code == 0, done.out
    with sqlite_store.read() as session:
        assert session.scalars(select(Pair)).one().meta == {"docid": "x"}


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"pairs.text": "x"}, r"no column `pairs\.text`"),
        ({"other.query": "x"}, r"no column `other\.query`"),
        ({"passages.text": "x"}, "there is no file of passages"),
        ({"pairs.query": "a", "passage": "a"}, "`a` is mapped twice"),
    ],
)
def test_a_mapping_that_cannot_be_meant_is_refused(
    sqlite_store: Store, tmp_path: Path, columns: dict[str, str], sentence: str
) -> None:
    pairs = of_lines(tmp_path / "pairs.jsonl", {"query": "q", "passage": "p", "a": "b"})
    with pytest.raises(BadInput, match=sentence):
        do_import(sqlite_store, pairs, columns=columns)


@pytest.mark.parametrize(
    "columns",
    [{"query_id": "qury_id"}, {"pairs.query_id": "qury_id"}, {"passages.title": "titel"}],
    ids=str,
)
def test_a_mapping_to_a_column_that_no_file_has_is_refused_with_the_nearest_name(
    sqlite_store: Store, tmp_path: Path, columns: dict[str, str]
) -> None:
    """An optional column with a typo was read as an absent one: ids from content, no title."""
    row = {"query_key": "q7", "query_id_": "x", "query": "tea?", "passage_id": "d1"}
    pairs = of_lines(tmp_path / "pairs.jsonl", row)
    row = {"passage_id": "d1", "text": "Leaves.", "title_": "Tea"}
    passages = of_lines(tmp_path / "docs.jsonl", row)
    ((ours, theirs),) = columns.items()
    near = "`title_`" if theirs == "titel" else "`query_id_`"
    with pytest.raises(BadInput) as caught:
        do_import(sqlite_store, pairs, passages=passages, columns=columns)
    message = str(caught.value)
    assert f"no column `{theirs}`" in message and f"`{ours}`" in message
    assert f"did you mean {near}?" in message and "`passage_id`" in message
    assert "docs.jsonl" in message if ours.startswith("passages") else "pairs.jsonl" in message
    assert count_rows(sqlite_store, "dataset") == 0


def test_a_column_that_only_late_rows_have_is_no_typo(sqlite_store: Store, tmp_path: Path) -> None:
    rows = [{"query": f"q{n}", "passage": "p"} for n in range(300)]
    pairs = of_lines(tmp_path / "pairs.jsonl", *rows, {"query": "q", "passage": "p", "qid": "late"})
    with pytest.raises(BadRows, match="no query_id"):  # the rows without it, not the mapping
        do_import(sqlite_store, pairs, columns={"query_id": "qid"})
    do_import(sqlite_store, pairs, columns={"query_id": "qid"}, skip_bad=True)
    assert [row[0] for row in stored(sqlite_store)] == ["late"]
    passages = [{"passage_id": str(n), "text": f"t{n}"} for n in range(300)]
    docs = of_lines(tmp_path / "docs.jsonl", *passages, {"passage_id": "x", "text": "t", "t": "T"})
    do_import(sqlite_store, pairs, passages=docs, columns={"title": "t"})
    with sqlite_store.read() as session:
        assert session.scalars(select(Passage.title).where(Passage.title != "")).all() == ["T"]


# ---- missing columns, and proposals


def test_all_missing_columns_come_at_once_with_the_shortest_file_that_would_do(
    sqlite_store: Store, tmp_path: Path
) -> None:
    pairs = of_lines(tmp_path / "pairs.jsonl", {"x": "tea?"}, {"y": "7"})
    passages = of_lines(tmp_path / "docs.jsonl", {"z": "Leaves."})
    with pytest.raises(MissingColumns) as caught:
        do_import(sqlite_store, pairs, passages=passages)
    sentence = str(caught.value)
    assert "docs.jsonl has no column `passage_id` and no column `text`; it has `z`" in sentence
    assert "pairs.jsonl has no column `query` and no column `passage` or `passage_id`" in sentence
    assert sentence.endswith("query,passage\nwhat is tea?,Leaves in hot water.")
    shortest = tmp_path / "shortest.csv"
    shortest.write_text(sentence.partition("is\n")[2])
    assert do_import(sqlite_store, shortest).imported == {"pairs": 1, "passages": 1}


@pytest.mark.parametrize(
    ("row", "guessed"),
    [
        (
            {"nr": 7, "was": "what is tea?", "best reply": "Leaves in hot water, steeped."},
            {"query": "was", "passage": "best reply"},
        ),
        ({"Question": "what is tea?", "reply": "Leaves in water."}, {"passage": "reply"}),
        ({"query": "tea", "hint": "Leaves in water."}, {"passage": "hint"}),
        ({"query": "what is tea?", "passage_id": "p", "hint": "Leaves in water."}, {}),
        ({"a": "1", "b": "one", "c": 2.5}, {}),
    ],
)
def test_columns_are_guessed_by_what_is_in_them_where_names_propose_none(
    tmp_path: Path, row: dict[str, Any], guessed: dict[str, str]
) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps(row))
    file = columns_of("pairs", tmp_path / "x.jsonl")
    found = guessed_columns(file, proposed_columns(file, {}, with_passages=False))
    assert {name: found.get(name) for name in guessed} == guessed
    assert set(found) - set(guessed) <= {"query", "query_id"}


@pytest.mark.parametrize(
    ("row", "proposed"),
    [
        ({"question": "q", "answer": "a"}, {"query": "question", "passage": "answer"}),
        ({"text": "t", "label": "l"}, {"query": "text", "passage": "label"}),
        ({"text": "t", "label": 1}, {"query": "text"}),
        ({"anchor": "q", "positive": "p", "negative": "n"},
         {"query": "anchor", "passage": "positive"}),
        ({"id": "5", "title": "T", "context": "c", "question": "q", "answers": {"text": ["a"]}},
         {"query": "question", "passage": "context", "query_id": "id"}),
        ({"sentence1": "a", "sentence2": "b", "score": 0.5},
         {"query": "sentence1", "passage": "sentence2"}),
        ({"Prompt": "a", "Response": "b"}, {"query": "Prompt", "passage": "Response"}),
        ({"query": "q", "Doc-ID": "d"}, {"passage_id": "Doc-ID"}),
        ({"query": "q", "passage": "p"}, {}),
        ({"a": "q", "b": "p"}, {}),
    ],
)  # fmt: skip
def test_usual_names_are_proposed_where_their_values_fit(
    tmp_path: Path, row: dict[str, Any], proposed: dict[str, str]
) -> None:
    file = columns_of("pairs", of_lines(tmp_path / "rows.jsonl", row))
    assert proposed_columns(file, {}, with_passages=False) == proposed


def test_a_proposal_is_applied_by_a_flag_and_never_by_itself(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    path = tmp_path / "faq.csv"
    path.write_text("question,answer,topic\nWhat is tea?,Leaves in water.,drinks\n")
    words = ("import", "--dataset", "faq", "--pairs", path)
    refused = inf(*words, "--json")
    assert refused.code == 1
    assert refused.json["proposed_columns"] == {"query": "question", "passage": "answer"}
    assert "--column query=question --column passage=answer" in refused.json["error"]
    assert "--usual-columns" in refused.json["error"]
    assert count_rows(sqlite_store, "dataset") == 0
    shown = inf(*words, "--usual-columns", "--preview")
    assert shown.code == 0 and "1 pair and 1 passage would be imported" in shown.out, shown.err
    assert inf(*words, "--usual-columns").code == 0
    with sqlite_store.read() as session:
        assert session.scalars(select(Pair)).one().meta == {"topic": "drinks"}


def test_proposals_for_two_files_name_the_file(sqlite_store: Store, tmp_path: Path) -> None:
    pairs = of_lines(tmp_path / "pairs.jsonl", {"question": "tea?", "docid": "d1"})
    passages = of_lines(tmp_path / "docs.jsonl", {"_id": "d1", "contents": "Leaves."})
    with pytest.raises(MissingColumns) as caught:
        do_import(sqlite_store, pairs, passages=passages)
    assert caught.value.proposed == {
        "passages.passage_id": "_id",
        "passages.text": "contents",
        "pairs.query": "question",
        "pairs.passage_id": "docid",
    }
    done = do_import(sqlite_store, pairs, passages=passages, columns=caught.value.proposed)
    assert done.imported == {"pairs": 1, "passages": 1}


# ---- shards, folders, MS MARCO


def shards(folder: Path) -> Path:
    """A dataset of the Hub as it is downloaded: a card, a description, shards of two splits."""
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")
    (folder / "dataset_infos.json").write_text("{}")
    for split, numbers in (("train", (0, 1)), ("test", (2,))):
        for number in numbers:
            table = pa.table({"question": [f"q{number}"], "answer": [f"text {number}"]})
            name = f"{split}-{number:05}-of-00002.parquet"
            parquet.write_table(table, folder / "data" / name)
    return folder


def test_a_folder_of_the_hub_is_one_import_of_a_split(
    store: Store, tmp_path: Path, inf: Any
) -> None:
    folder = shards(tmp_path / "faq")
    with pytest.raises(Refused, match="several splits, test, train: name one with `split=`"):
        do_import(store, folder)
    words = ("import", "--dataset", "mine", "--pairs", folder, "--split", "train")
    done = inf(*words, "--usual-columns", "--json")
    assert (done.code, done.json["imported"]) == (0, 2), done.out
    assert sorted(row[1:] for row in stored(store)) == [("q0", "text 0"), ("q1", "text 1")]


def test_a_pattern_is_one_import_of_all_that_match(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    folder = shards(tmp_path / "faq")
    pattern = folder / "data" / "*.parquet"
    done = inf("import", "--dataset", "m", "--pairs", pattern, "--usual-columns", "--json")
    assert (done.code, done.json["imported"]) == (0, 3), done.out
    bad = of_lines(tmp_path / "s-2.jsonl", {"query": "a", "passage": ""})
    of_lines(tmp_path / "s-1.jsonl", {"query": "a", "passage": "b"})
    with pytest.raises(BadRows) as caught:
        do_import(sqlite_store, tmp_path / "s-*.jsonl")
    assert [(row.file, row.line) for row in caught.value.rows] == [(bad.name, 1)]


def test_a_folder_with_pairs_and_passages_needs_no_second_name(
    sqlite_store: Store, tmp_path: Path
) -> None:
    of_lines(tmp_path / "set" / "pairs.jsonl", {"query": "tea?", "passage_id": "d"})
    of_lines(tmp_path / "set" / "passages.jsonl", {"passage_id": "d", "text": "Leaves."})
    assert do_import(sqlite_store, tmp_path / "set").imported == {"pairs": 1, "passages": 1}


def msmarco(folder: Path, qrels: str = "qrels.train.tsv") -> Path:
    """Classic MS MARCO: no headers, quotes are text, two splits of queries."""
    folder.mkdir(parents=True)
    texts = ['Tea is "leaves" in water', 'a 6" pipe', "Coffee is a seed", "unjudged"]
    (folder / "collection.tsv.xz").write_bytes(
        lzma.compress("".join(f"{n}\t{text}\n" for n, text in enumerate(texts)).encode())
    )
    (folder / "queries.train.tsv").write_text(
        "10\twhat is tea\n11\twhat is coffee\n12\tnot judged\n"
    )
    (folder / "queries.dev.tsv").write_text("20\thow wide is a pipe\n")
    (folder / qrels).write_text("10\t0\t0\t1\n11\t0\t2\t1\n11\t0\t0\t0\n")
    return folder


def test_classic_ms_marco_is_read_without_headers(store: Store, tmp_path: Path, inf: Any) -> None:
    folder = msmarco(tmp_path / "msmarco")
    (folder / "qrels.dev.small.tsv").write_text("20 0 1 1\n")
    train = ("import", "--dataset", "mine", "--pairs", folder, "--split", "train", "--json")
    done = inf(*train)
    assert (done.code, done.json["imported"], done.json["imported_passages"]) == (0, 2, 4), done.out
    assert stored(store) == [
        ("10", "what is tea", 'Tea is "leaves" in water'),
        ("11", "what is coffee", "Coffee is a seed"),
    ]
    dev = inf("import", "--dataset", "dev", "--pairs", folder, "--split", "dev.small", "--preview")
    assert "1 pair and 4 passages would be imported" in dev.out, dev.out + dev.err


@pytest.mark.parametrize("qrels", ["qrels", "qrels.txt", "qrels.tsv"])
def test_the_qrels_of_ms_marco_may_have_any_usual_name(
    sqlite_store: Store, tmp_path: Path, qrels: str
) -> None:
    folder = msmarco(tmp_path / "msmarco", qrels)
    (folder / "queries.train.tsv").rename(folder / "queries.tsv")
    assert do_import(sqlite_store, folder).imported == {"pairs": 2, "passages": 4}
    (folder / "queries.tsv").write_text("10\twhat is tea\nbroken\n")
    with pytest.raises(BadRows, match=r"queries\.tsv, line 2: 1 fields, not 2"):
        do_import(sqlite_store, folder)


def test_a_file_is_read_as_a_format_that_is_named(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    path = of_lines(tmp_path / "gsm.jsonl", {"question": "1+1?", "answer": "<<1+1=2>>2"})
    done = inf("import", "--dataset", "m", "--pairs", path, "--as", "math", "--json")
    assert (done.code, done.json["imported"]) == (0, 1), done.out
    assert [row[1:] for row in stored(sqlite_store)] == [("1+1?", "2")]
    for name, sentence in (("nothing", "no source 'nothing'"), ("trec", "inf convert trec")):
        refused = inf("import", "--dataset", "m", "--pairs", path, "--as", name, "--json")
        assert refused.code == 1 and sentence in refused.json["error"]


def test_a_job_reads_a_folder_as_the_command_does(store: Store, tmp_path: Path) -> None:
    from curation.importing.job import import_files
    from db.jobs import jobs
    from db.jobs.runner import JobHandle

    folder = shards(tmp_path / "faq")
    about = {"name": "mine", "source": "", "licence": "", "skip_bad": False, "groups": []}
    read_by = {"columns": {}, "layout": None, "split": "train", "usual_columns": True}
    config = {**about, **read_by, "pairs": str(folder), "passages": None}
    with store.write() as session:
        job = jobs.enqueue_job(session, "import", config)
        claimed = jobs.claim_job(session, job.id)
        session.commit()
    assert claimed is not None
    assert import_files(JobHandle(store, claimed.id, claimed.attempt)).imported == 2


def test_a_pull_proposes_names_too(tmp_path: Path) -> None:
    from curation.hub.layouts import Wanted, layout_of

    file = of_lines(tmp_path / "train.jsonl", {"prompt": "q", "completion": "a"})
    with pytest.raises(Refused, match="`column=query=prompt` `column=passage=completion`"):
        layout_of([file], Wanted(), shape=INF_IR)


# ---- encodings, with a notice


def test_another_encoding_is_read_with_a_notice_in_the_report_and_the_preview(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    path = tmp_path / "faq.csv"
    path.write_bytes("query;passage\nWas ist Käse?;Gereifte Milch – süß.\n".encode("cp1252"))
    preview = preview_import(sqlite_store, name="m", pairs=path)
    assert [each.split(":")[0] for each in preview.notices] == [
        "faq.csv is not UTF-8 and is read as Windows-1252 (cp1252)"
    ]
    done = inf("import", "--dataset", "m", "--pairs", path)
    assert "note: faq.csv is not UTF-8 and is read as Windows-1252" in done.out
    assert [row[1:] for row in stored(sqlite_store)] == [("Was ist Käse?", "Gereifte Milch – süß.")]


def test_groups_in_another_encoding_come_with_a_notice_too(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    path = tmp_path / "groups.csv"
    texts = ",".join(f"{name} über Käse" for name in INF_IR.columns)
    path.write_bytes(f"{','.join(INF_IR.columns)}\n{texts}\n".encode("cp1252"))
    done = inf("import", "--dataset", "g", "--groups", path)
    assert done.code == 0 and "note: groups.csv is not UTF-8" in done.out, done.out + done.err


# ---- any bytes


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([".jsonl", ".json", ".csv", ".tsv", ".csv.gz", ".jsonl.xz", ".parquet"]),
    st.binary(max_size=120)
    | st.lists(
        st.dictionaries(
            st.sampled_from(["query", "passage", "passage_id", "query_id", "text", "x"]),
            st.none() | st.integers() | st.text(max_size=5) | st.lists(st.none(), max_size=1),
        ),
        max_size=3,
    ).map(lambda rows: "\n".join(map(json.dumps, rows)).encode()),
    st.dictionaries(
        st.sampled_from(["query", "passage", "pairs.query", "passages.text", "a.b", "."]),
        st.text(max_size=3),
        max_size=2,
    ),
)
def test_any_bytes_give_a_preview_or_one_of_our_errors(
    sqlite_store: Store, tmp_path: Path, ending: str, content: bytes, columns: dict[str, str]
) -> None:
    path = tmp_path / f"any{ending}"
    path.write_bytes(content)
    for passages in (None, path.with_name("passages.jsonl")):
        if passages is not None:
            passages.write_bytes(content)
        try:
            preview_import(sqlite_store, name="m", pairs=path, passages=passages, columns=columns)
        except InfError as error:
            assert str(error)
