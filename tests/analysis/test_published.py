import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from grown_dataset import grown, run_job

from analysis.files.published import read_published
from db.errors import BadInput
from db.store.store import Store
from db.tables import SlotText

TOPIC = {
    "title": "International Organized Crime",
    "description": "Identify organizations that participate in international criminal activity.",
    "narrative": "A relevant document must as a minimum identify the organization and the type of "
    "illegal activity. Vague references to international drug trade are not relevant.",
}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def texts_of(path: Path) -> list[tuple[str, str, str]]:
    return [(row.field, row.role, row.text) for row in read_published(path)]


def followir(folder: Path) -> Path:
    """FollowIR's layout: queries, corpus, judgments and rankings."""
    write(
        folder / "queries.jsonl",
        [
            {
                "_id": "301",
                "text": TOPIC["description"],
                "instruction_og": TOPIC["narrative"],
                "instruction_changed": TOPIC["narrative"] + " Only Asia counts.",
                "keywords": TOPIC["title"],
            }
        ],
    )
    write(folder / "corpus.jsonl", [{"_id": "d1", "title": "t", "text": "a newspaper article"}])
    write(folder / "top_ranked.jsonl", [{"qid": "301", "pid": "d1"}])
    (folder / "qrels_og").mkdir()
    (folder / "qrels_og" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n301\td1\t1\n")
    return folder


def test_followir_gives_queries_both_instructions_and_the_corpus(tmp_path: Path) -> None:
    assert texts_of(followir(tmp_path / "robust04")) == [
        ("passage", "pool", "a newspaper article"),
        ("query", "positive", TOPIC["description"]),
        ("query", "positive", TOPIC["title"]),
        ("instruction", "positive", TOPIC["narrative"]),
        ("instruction", "changed", TOPIC["narrative"] + " Only Asia counts."),
    ]


def test_inf_ir_gives_seven_texts_a_row(tmp_path: Path) -> None:
    row = {
        "query_positive": "q+",
        "instruction_positive": "i+",
        "document_positive": "p+",
        "query_negative": "q-",
        "instruction_negative": "i-",
        "hard_negative_document_1": "p1-",
        "hard_negative_document_2": "p2-",
        "positive_language": "python",
    }
    (tmp_path / "data").mkdir()
    parquet.write_table(pa.Table.from_pylist([row]), tmp_path / "data" / "msmarco-0.parquet")
    assert texts_of(tmp_path) == [
        ("query", "positive", "q+"),
        ("instruction", "positive", "i+"),
        ("passage", "positive", "p+"),
        ("query", "query_negative", "q-"),
        ("instruction", "instruction_negative", "i-"),
        ("passage", "instruction_negative", "p1-"),
        ("passage", "query_negative", "p2-"),
    ]


def test_promptriever_keeps_query_and_instruction_apart(tmp_path: Path) -> None:
    passages = [{"docid": "1", "title": "", "text": "good"}]
    row = {
        "query_id": "1",
        "query": "q i",
        "only_query": "q",
        "only_instruction": "i",
        "has_instruction": True,
        "positive_passages": passages,
        "negative_passages": [{"docid": "2", "title": "", "text": "bad"}],
    }
    plain = {**row, "only_instruction": "", "has_instruction": False, "negative_passages": []}
    parquet.write_table(pa.Table.from_pylist([row, plain]), tmp_path / "train.parquet")
    assert texts_of(tmp_path) == [
        ("query", "positive", "q"),
        ("instruction", "positive", "i"),
        ("passage", "positive", "good"),
        ("passage", "negative", "bad"),
        ("query", "positive", "q"),
    ]


def test_instructir_mair_bright_and_plain_files_are_known(tmp_path: Path) -> None:
    instructir = tmp_path / "InstructIR"
    write(instructir / "queries.jsonl", [{"_id": "1", "text": "a question"}])
    write(
        instructir / "instructions.jsonl",
        [{"query-id": "1", "instruction": "I am a nurse"}, {"query-id": "2", "text": "I am two"}],
    )
    write(instructir / "corpus.jsonl", [{"_id": "d", "title": "", "text": "doc"}])
    write(instructir / "qrels" / "test.jsonl", [{"query-id": "1", "corpus-id": "d", "score": 1}])
    assert sorted(texts_of(instructir)) == [
        ("instruction", "positive", "I am a nurse"),
        ("instruction", "positive", "I am two"),
        ("passage", "pool", "doc"),
        ("query", "positive", "a question"),
    ]
    mair = tmp_path / "mair"
    write(
        mair / "queries.jsonl",
        [{"qid": "1", "instruction": "Find.", "query": "q", "labels": [{"id": "d", "score": 1}]}],
    )
    write(mair / "docs.jsonl", [{"id": "d", "doc": "document"}])
    assert sorted(texts_of(mair)) == [
        ("instruction", "positive", "Find."),
        ("passage", "pool", "document"),
        ("query", "positive", "q"),
    ]
    bright = tmp_path / "bright"
    write(
        bright / "examples.jsonl",
        [{"query": "why", "id": "1", "excluded_ids": ["x"], "gold_ids": ["d"], "reasoning": "r"}],
    )
    write(bright / "documents.jsonl", [{"id": "d", "content": "text"}])
    assert sorted(texts_of(bright)) == [("passage", "pool", "text"), ("query", "positive", "why")]
    assert texts_of(write(tmp_path / "t.jsonl", [{"text": "free"}])) == [("text", "text", "free")]
    (tmp_path / "pairs.csv").write_text("query,passage\nwho,me\n")
    assert texts_of(tmp_path / "pairs.csv") == [
        ("query", "positive", "who"),
        ("passage", "positive", "me"),
    ]


def test_a_release_of_another_shape_is_read_by_its_manifest(tmp_path: Path) -> None:
    """Its columns may be called as those of pairs, or as some of InF-IR's."""
    for query in ("query", "query_positive"):
        columns = {"Q": query, "P": "passage", "S": "searcher", "D": "instruction_negative"}
        kinds = {"Q": "query", "P": "passage", "S": "instruction", "D": "instruction"}
        texts: list[dict[str, Any]] = [
            {"sign": one, "field": kinds[one], "column": name, "from_source": one in "QP"}
            for one, name in columns.items()
        ]
        texts.append({"sign": "N", "field": "passage", "column": "other"})
        scenarios = [
            {"role": "searcher", "instruction": "S", "query": "Q", "passage": "P"},
            {"role": "stranger", "instruction": "D", "query": "Q", "passage": "N"},
        ]
        folder = tmp_path / query
        row = {name: sign for sign, name in columns.items()} | {"other": "N"}
        file = write(folder / "data" / "train.jsonl", [row])
        manifest = {"shape": {"texts": texts, "scenarios": scenarios}}
        (folder / "release.json").write_text(json.dumps(manifest))
        for path in (folder, file):
            assert texts_of(path) == [
                ("query", "searcher", "Q"),
                ("passage", "searcher", "P"),
                ("instruction", "searcher", "S"),
                ("instruction", "stranger", "D"),
                ("passage", "stranger", "N"),
            ]


def test_a_passage_of_many_rows_is_listed_once_and_a_query_every_time(tmp_path: Path) -> None:
    rows = [{"query": "q", "passage": "p"}, {"query": "q", "passage": "p"}]
    assert [field for field, _, _ in texts_of(write(tmp_path / "p.jsonl", rows))] == [
        "query",
        "passage",
        "query",
    ]


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{}\nnonsense\n")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "empty").mkdir()
    odd = write(tmp_path / "odd.jsonl", [{"a": 1, "b": 2}])
    for path, message in (
        (tmp_path / "bad.jsonl", "line 2: invalid JSON"),
        (tmp_path / "notes.txt", "known are .jsonl"),
        (tmp_path / "broken.parquet", "is not a Parquet file"),
        (tmp_path / "empty", "holds no .jsonl"),
        (tmp_path / "nowhere", "no such file or folder"),
        (odd, r"no columns of a known format \(odd.jsonl: a, b\)"),
    ):
        with pytest.raises(BadInput, match=message):
            read_published(path)


def test_pairs_of_robust04_are_caught_against_followir(
    sqlite_store: Store, inf: Any, tmp_path: Path
) -> None:
    run_id = grown(sqlite_store, groups=4)
    with sqlite_store.write() as session:
        first, second = session.query(SlotText).filter_by(slot="Q+").limit(2)
        third = session.query(SlotText).filter_by(slot="I+")[2]
        first.text = TOPIC["title"].lower()  # as a title, as a description, as a narrative
        second.text = TOPIC["description"]
        third.text = f"Relevant is this: {TOPIC['narrative']}"
        caught = [first.group_id, second.group_id, third.group_id]
        session.commit()
    against = followir(tmp_path / "robust04")
    done = inf("analyze", "contamination", "--dataset", "demo", "--against", against, "--json")
    assert done.code == 0, done.err
    assert done.json["groups"] == caught
    assert {"exact", "normalised", "near"} <= {pair["how"] for pair in done.json["pairs"]}
    other = write(tmp_path / "other.jsonl", [{"text": "something else entirely"}])
    clean = run_job(
        sqlite_store, "contamination", datasets=["demo"], run=run_id, against=[str(other)]
    )
    assert (clean["overlapping"], clean["groups"]) == (0, [])
    repeated = run_job(sqlite_store, "near_duplicates", datasets=["demo"], published=[str(against)])
    assert repeated["fields"]["query"]["between"] == 2
    assert inf("analyze", "contamination", "--dataset", "demo", "--json").code == 2
