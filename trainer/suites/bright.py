"""BRIGHT as published: queries with documents to leave out, a corpus for each task.

`examples/<task>-….parquet` {id, query, gold_ids, excluded_ids} and `documents/<task>-….parquet`
{id, content}; the documents of `excluded_ids` ("N/A": none) are taken out of a query's ranking.
"""

from pathlib import Path

from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark, Question
from trainer.suites.reading import by_id, check_documents, parquet_rows
from trainer.suites.suite import Suite

NONE_EXCLUDED = "N/A"


def read_bright(folder: Path) -> list[Benchmark]:
    """A benchmark for each task. Raises BadInput with file and row."""
    benchmarks = []
    for task, files in sorted(_tasks(folder / "examples").items()):
        documents = _tasks(folder / "documents").get(task)
        if not documents:
            raise BadInput(
                f"{folder / 'documents'} has no {task}-….parquet for the task {task}",
                "Get the benchmark's files again",
                code="benchmark_file_missing",
            )
        rows = parquet_rows(documents, ("id", "content"))
        corpus = by_id("document", ((place, row["id"], row["content"]) for place, row in rows))
        questions: dict[str, Question] = {}
        judgments: dict[str, dict[str, int]] = {}
        excluded: dict[str, list[str]] = {}
        for place, row in parquet_rows(files, ("id", "query", "gold_ids", "excluded_ids")):
            query = row["id"]
            questions[query] = Question("", row["query"])
            judgments[query] = dict.fromkeys(row["gold_ids"], 1)
            excluded[query] = [name for name in row["excluded_ids"] if name != NONE_EXCLUDED]
            check_documents(place, judgments[query], corpus)
        benchmarks.append(
            Benchmark(
                name=f"{folder.name}/{task}",
                kind="BRIGHT",
                convention="the whole corpus but a query's excluded_ids is ranked; nDCG@10; ties "
                "by score, then id, both descending",
                questions=questions,
                corpus=corpus,
                judgments=judgments,
                excluded=excluded,
            )
        )
    if not benchmarks:
        raise BadInput(
            f"{folder / 'examples'} holds no <task>-….parquet",
            "name the folder as it was downloaded",
            code="tasks_missing",
        )
    return benchmarks


def _tasks(folder: Path) -> dict[str, list[Path]]:
    """Parquet files by task: `biology-00000-of-00001.parquet` is of the task biology."""
    found: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("*.parquet")):
        found.setdefault(file.stem.split("-")[0], []).append(file)
    return found


SUITE = Suite(
    name="bright",
    label="BRIGHT",
    layout="examples/ and documents/, Parquet files of every task",
    is_layout=lambda folder: (folder / "examples").is_dir() and (folder / "documents").is_dir(),
    read=read_bright,
    repositories={"": "xlangai/BRIGHT"},
)
