"""Benchmarks in mteb's layout, read as mteb's own loader reads them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from conftest import Ran
from hub_server import Hub
from trainer_folders import (
    FILES,
    INSTRUCTIR_PARTS,
    write_instructions_of_a_query,
    write_instructir,
    write_jsonl,
    write_judgments,
)

from db.errors import BadInput
from db.store.store import Store
from trainer.evaluate.benchmarks import Question
from trainer.suites.registry import read_benchmarks

QUERIES = INSTRUCTIR_PARTS["queries"][1]
CORPUS = INSTRUCTIR_PARTS["corpus"][1]
JUDGED = INSTRUCTIR_PARTS["default"][1]


def write_parquet(folder: Path) -> Path:
    """The layout that `datasets` itself pushes: a folder for each part, patterns in the card."""
    told = ["---", "configs:"]
    for name, (split, rows) in INSTRUCTIR_PARTS.items():
        part = "qrels" if name == "default" else name
        file = folder / part / f"{split}-00000-of-00001.parquet"
        file.parent.mkdir(parents=True)
        parquet.write_table(pa.Table.from_pylist(rows), file)
        told += [f"- config_name: {part}", "  data_files:"]
        told += [f"  - split: {split}", f"    path: {part}/{split}-*"]
    (folder / "README.md").write_text("\n".join([*told, "---", ""]))
    return folder


@pytest.mark.long
@pytest.mark.parametrize("write", [write_instructir, write_parquet])
def test_a_folder_is_read_as_mteb_reads_it(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    from mteb.abstasks.retrieval_dataset_loaders import RetrievalDatasetLoader

    (benchmark,) = read_benchmarks(write(tmp_path / "InstructIR"))
    theirs = RetrievalDatasetLoader(str(tmp_path / "InstructIR"), revision=None).load()
    assert benchmark.judgments == theirs["relevant_docs"]
    assert benchmark.questions == {
        row["id"]: Question(row["instruction"], row["text"]) for row in theirs["queries"]
    }
    assert benchmark.corpus == {row["id"]: row["text"] for row in theirs["corpus"]}
    assert (
        benchmark.kind == "InstructIR"
        and benchmark.same_query["7_1"] == benchmark.same_query["7_0"]
    )


def test_top_ranked_documents_are_those_that_are_ranked(tmp_path: Path) -> None:
    listed = [{"query-id": row["_id"], "corpus-ids": ["d0", "d1"]} for row in QUERIES]
    (benchmark,) = read_benchmarks(write_instructir(tmp_path, top_ranked=listed))
    assert benchmark.candidates["8_0"] == ["d0", "d1"]
    assert "a query's top_ranked documents are ranked" in benchmark.convention


def test_a_retrieval_task_without_instructions_is_one_too(tmp_path: Path) -> None:
    (benchmark,) = read_benchmarks(write_instructir(tmp_path, instruction=None))
    assert benchmark.kind == "BEIR" and benchmark.questions["8_0"] == Question("", "two")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"corpus": [*CORPUS, CORPUS[0]]}, "corpus.jsonl, line 4: document 'd0' is there twice"),
        ({"queries": [*QUERIES, QUERIES[0]]}, "queries.jsonl, line 4: query '7_0' is there twice"),
        ({"queries": [{"text": "one"}]}, "queries.jsonl, line 1 has no `_id`"),
        ({"corpus": [{"_id": "d0"}]}, "corpus.jsonl, line 1 has no `text`"),
        (
            {"default": [{"query-id": "9", "corpus-id": "d0", "score": 1}]},
            "qrels/test.jsonl, line 1: no query '9' among the queries",
        ),
        (
            {"default": [{"query-id": "7_0", "corpus-id": "d9", "score": 1}]},
            "qrels/test.jsonl, line 1: no document 'd9' in the corpus",
        ),
        (
            {"default": [{"query-id": "7_0", "corpus-id": "d0", "score": "high"}]},
            "qrels/test.jsonl, line 1: `score` must be a whole number, not 'high'",
        ),
        (
            {"default": [{"query-id": "7_0", "corpus-id": "d0", "score": 0.5}]},
            "qrels/test.jsonl, line 1: `score` must be a whole number, not 0.5",
        ),
        (
            {"top_ranked": [{"query-id": "7_0", "corpus-ids": ["d0"]}]},
            "top_ranked has nothing for the query '7_1'",
        ),
        ({"default": []}, "its part default holds no judgment"),
        (
            {"top_ranked": [{"query-id": "7_0", "corpus-ids": ["d9"]}]},
            "top_ranked/test.jsonl, line 1: no document 'd9' in the corpus",
        ),
    ],
)
def test_bad_rows_are_reported_with_part_and_row(
    tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput) as refused:
        read_benchmarks(write_instructir(tmp_path, **changed))
    assert words in str(refused.value) and str(tmp_path) in str(refused.value)


def test_a_missing_or_unreadable_part_is_reported(tmp_path: Path) -> None:
    folder = write_instructir(tmp_path)
    (folder / FILES["queries"]).write_text("{not json\n")
    with pytest.raises(BadInput, match=r"queries\.jsonl, line 1: invalid JSON"):
        read_benchmarks(folder)
    (folder / FILES["queries"]).unlink()
    with pytest.raises(BadInput, match=r"names queries\.jsonl, and there is no such file"):
        read_benchmarks(folder)


def test_a_card_cannot_name_files_outside_of_its_folder(tmp_path: Path) -> None:
    folder = write_instructir(tmp_path / "set")
    card = folder / "README.md"
    for elsewhere in ("../secret.jsonl", "/etc/passwd", "https://example.org/corpus.jsonl"):
        told = card.read_text().replace(FILES["corpus"], elsewhere)
        (tmp_path / "set" / "README.md").write_text(told)
        with pytest.raises(BadInput, match="is no file of the dataset itself"):
            read_benchmarks(folder)
        card.write_text(told.replace(elsewhere, FILES["corpus"]))


@pytest.mark.parametrize("told", ["foo: [unclosed", "1: foo", "configs: corpus", "configs: [1]"])
def test_a_readme_without_parts_does_not_change_the_layout(tmp_path: Path, told: str) -> None:
    folder = write_instructions_of_a_query(tmp_path)
    (folder / "README.md").write_text(f"---\n{told}\n---\n")
    (benchmark,) = read_benchmarks(folder)
    assert benchmark.kind == "InstructIR" and "qrels/test.tsv" in benchmark.convention


def test_a_beir_folder_with_a_card_keeps_its_ids(tmp_path: Path) -> None:
    """The judgments as TSV, which tells no types: ids like 007 stay what they are."""
    write_jsonl(tmp_path / "corpus.jsonl", [{"_id": "007", "text": "a"}, {"_id": "8", "text": "b"}])
    write_jsonl(tmp_path / "queries.jsonl", [{"_id": "null", "text": "one"}])
    write_judgments(tmp_path / "qrels" / "test.tsv", [("null", "007", 2)])
    write_judgments(tmp_path / "qrels" / "train.tsv", [("null", "8", 1)])
    told = """---
configs:
- config_name: corpus
  data_files: corpus.jsonl
- config_name: queries
  data_files: [queries.jsonl]
- config_name: qrels
  data_files:
    train: qrels/train.tsv
    test: qrels/test.tsv
---
"""
    (tmp_path / "README.md").write_text(told)
    (benchmark,) = read_benchmarks(tmp_path)
    assert benchmark.judgments == {"null": {"007": 2}} and benchmark.kind == "BEIR"
    assert "split test" in benchmark.convention


@pytest.mark.long
def test_only_the_files_that_the_card_names_are_downloaded(
    sqlite_store: Store,
    tmp_path: Path,
    hub: Hub,
    there: dict[str, str],
    inf: Callable[..., Ran],
) -> None:
    folder = write_parquet(tmp_path / "task")
    (folder / "extra").mkdir()
    (folder / "extra" / "big.parquet").write_bytes(b"not needed, and no parquet")
    hub.publish("mteb/task", folder)
    ran = inf("evaluate", "--model", "bm25", "--benchmark", "mteb/task", "--json", **there)
    assert ran.code == 0, ran.err
    assert ran.json["models"][0]["metrics"]["robustness@10"] > 0
    assert not any("extra" in path for path in map(str, Path(there["HF_HOME"]).rglob("*")))
