"""Folders that hold several benchmarks: FollowIR's three sets, BRIGHT, MAIR, or folders of folders.

BRIGHT as published: `examples/<task>-….parquet` {id, query, gold_ids, excluded_ids} and
`documents/<task>-….parquet` {id, content}; the documents of `excluded_ids` ("N/A": none) are taken
out of a query's ranking. MAIR as published: `MAIR-Queries/<task>/queries.jsonl` {qid, instruction,
query, labels: [{id, score}]} and `MAIR-Docs/<task>/docs.jsonl` {id, doc}; files of tasks with
several parts are `<part>_queries.jsonl` and `<part>_docs.jsonl`.

A suite's number is the plain mean over its sets. FollowIR's `score` is the mean of Robust04
MAP@1000, News21 nDCG@5 and Core17 MAP@1000, each under the original instruction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from db.errors import BadInput, NotFound
from trainer.evaluate.benchmarks import Benchmark, Question, by_id, read_benchmark, read_rows
from trainer.evaluate.mteb_folders import parts_of, read_mteb

FOLLOWIR_SCORES = {"robust04": "map@1000", "news21": "ndcg@5", "core17": "map@1000"}
NONE_EXCLUDED = "N/A"
# The tasks whose mean the paper's tables call MAIR: Dynamic Domain and Fair Ranking.
SUBSETS = {
    "mair-paper": ("DD_2015", "DD_2016", "DD_2017", "FairRanking_2021", "FairRanking_2022"),
}


def take_subset(benchmarks: Sequence[Benchmark], subset: str) -> list[Benchmark]:
    """The tasks of a named subset. Raises BadInput where one of them is missing."""
    if subset not in SUBSETS:
        raise BadInput(f"no subset {subset!r}: there is {', '.join(SUBSETS)}")
    found = {benchmark.name.split("/")[-1]: benchmark for benchmark in benchmarks}
    if missing := [task for task in SUBSETS[subset] if task not in found]:
        raise BadInput(
            f"{subset} needs the task {missing[0]}, and the benchmark has {', '.join(found)}"
        )
    return [found[task] for task in SUBSETS[subset]]


def read_benchmarks(folder: Path) -> list[Benchmark]:
    """The benchmarks of a folder: one, or every set of a suite. Raises NotFound or BadInput."""
    if not folder.is_dir():
        raise NotFound(f"no benchmark folder {folder}")
    if (folder / "examples").is_dir() and (folder / "documents").is_dir():
        return _read_bright(folder)
    if (folder / "MAIR-Queries").is_dir():
        return _read_mair(folder / "MAIR-Queries", folder / "MAIR-Docs")
    if parts := parts_of(folder):
        return [read_mteb(folder, parts)]
    if not any((folder / name).exists() for name in ("queries.jsonl", "corpus.jsonl", "qrels")):
        inner = sorted(path for path in folder.iterdir() if (path / "queries.jsonl").is_file())
        if inner:
            return [
                replace(benchmark, name=f"{folder.name}/{benchmark.name}")
                for benchmark in map(read_benchmark, inner)
            ]
    return [read_benchmark(folder)]


def suite_means(
    benchmarks: Sequence[Benchmark], metrics: Sequence[Mapping[str, float | None]]
) -> dict[str, float | None]:
    """Every measure's mean over the sets, and FollowIR's `score` where its three sets are there.

    A measure that one of the sets does not have, or has undefined, has no mean (None).
    """
    names = list(dict.fromkeys(name for values in metrics for name in values))
    means: dict[str, float | None] = {}
    for name in names:
        values = [found.get(name) for found in metrics]
        known = [value for value in values if value is not None]
        means[name] = fmean(known) if len(known) == len(values) else None
    scores = _followir_scores(benchmarks, metrics)
    if scores is not None:
        means["followir score"] = fmean(scores)
    return means


def _followir_scores(
    benchmarks: Sequence[Benchmark], metrics: Sequence[Mapping[str, float | None]]
) -> list[float] | None:
    """The three scores, in FollowIR's own measures; None unless all three sets have theirs."""
    found: dict[str, float] = {}
    for benchmark, values in zip(benchmarks, metrics, strict=True):
        for collection, measure in FOLLOWIR_SCORES.items():
            value = values.get(measure)
            is_it = benchmark.kind == "FollowIR" and collection in benchmark.name.lower()
            if is_it and value is not None:
                found[collection] = value
    return list(found.values()) if found.keys() == FOLLOWIR_SCORES.keys() else None


def _read_bright(folder: Path) -> list[Benchmark]:
    benchmarks = []
    for task, files in sorted(_tasks(folder / "examples").items()):
        documents = _tasks(folder / "documents").get(task)
        if not documents:
            raise BadInput(f"{folder / 'documents'} has no {task}-….parquet for the task {task}")
        rows = _parquet_rows(documents, ("id", "content"))
        corpus = by_id("document", ((place, row["id"], row["content"]) for place, row in rows))
        questions: dict[str, Question] = {}
        judgments: dict[str, dict[str, int]] = {}
        excluded: dict[str, list[str]] = {}
        for place, row in _parquet_rows(files, ("id", "query", "gold_ids", "excluded_ids")):
            query = row["id"]
            questions[query] = Question("", row["query"])
            judgments[query] = dict.fromkeys(row["gold_ids"], 1)
            excluded[query] = [name for name in row["excluded_ids"] if name != NONE_EXCLUDED]
            _check_documents(place, judgments[query], corpus)
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
        raise BadInput(f"{folder / 'examples'} holds no <task>-….parquet")
    return benchmarks


def _read_mair(queries: Path, documents: Path) -> list[Benchmark]:
    benchmarks = []
    for file in sorted(queries.glob("*/*queries.jsonl")):
        part = file.name.removesuffix("queries.jsonl")
        task = file.parent.name + (f"-{part.rstrip('_')}" if part else "")
        rows = read_rows(documents / file.parent.name / f"{part}docs.jsonl", ("id", "doc"))
        corpus = by_id("document", ((place, row["id"], row["doc"]) for place, row in rows))
        questions: dict[str, Question] = {}
        judgments: dict[str, dict[str, int]] = {}
        for place, row in read_rows(file, ("qid", "query")):
            questions[row["qid"]] = Question(str(row.get("instruction") or ""), row["query"])
            try:
                judged = {str(label["id"]): int(label["score"]) for label in row["labels"]}
            except (KeyError, TypeError, ValueError) as error:
                raise BadInput(
                    f"{place}: `labels` must be a list of {{id, score}}, score a whole number"
                ) from error
            _check_documents(place, judged, corpus)
            judgments[row["qid"]] = judged
        benchmarks.append(
            Benchmark(
                name=f"MAIR/{task}",
                kind="MAIR",
                convention="the task's documents are ranked; nDCG@10; ties by score, then id, both "
                "descending",
                questions=questions,
                corpus=corpus,
                judgments=judgments,
            )
        )
    if not benchmarks:
        raise BadInput(f"{queries} holds no <task>/queries.jsonl")
    return benchmarks


def _check_documents(place: str, judged: Mapping[str, int], corpus: Mapping[str, str]) -> None:
    if missing := [name for name in judged if name not in corpus]:
        raise BadInput(f"{place}: no document {missing[0]!r} among the task's documents")


def _tasks(folder: Path) -> dict[str, list[Path]]:
    """Parquet files by task: `biology-00000-of-00001.parquet` is of the task biology."""
    found: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("*.parquet")):
        found.setdefault(file.stem.split("-")[0], []).append(file)
    return found


def _parquet_rows(files: list[Path], columns: tuple[str, ...]) -> list[tuple[str, dict[str, Any]]]:
    import pyarrow
    import pyarrow.parquet as parquet

    rows: list[tuple[str, dict[str, Any]]] = []
    for file in files:
        try:
            table = parquet.read_table(file, columns=list(columns))
        except (OSError, pyarrow.ArrowException) as error:
            raise BadInput(f"{file} cannot be read as parquet: {error}") from error
        if missing := [name for name in columns if name not in table.column_names]:
            raise BadInput(f"{file} has no column `{missing[0]}`")
        rows += [(f"{file}, row {number}", row) for number, row in enumerate(table.to_pylist(), 1)]
    return rows
