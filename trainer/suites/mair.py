"""MAIR as published: tasks with queries that have instructions, and documents of their own.

`MAIR-Queries/<task>/queries.jsonl` {qid, instruction, query, labels: [{id, score}]} and
`MAIR-Docs/<task>/docs.jsonl` {id, doc}; files of tasks with several parts are
`<part>_queries.jsonl` and `<part>_docs.jsonl`.
"""

from pathlib import Path

from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark, Question
from trainer.suites.reading import by_id, check_documents, read_rows
from trainer.suites.suite import Suite

QUERIES, DOCUMENTS = "MAIR-Queries", "MAIR-Docs"


def read_mair(queries: Path, documents: Path) -> list[Benchmark]:
    """A benchmark for each task, or part of one. Raises BadInput with file and line."""
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
                    f"{place}: `labels` must be a list of {{id, score}}, score a whole number",
                    "take the file as it was published",
                    code="labels_invalid",
                ) from error
            check_documents(place, judged, corpus)
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
        raise BadInput(
            f"{queries} holds no <task>/queries.jsonl",
            "name the folder as it was downloaded",
            code="tasks_missing",
        )
    return benchmarks


SUITE = Suite(
    name="mair",
    label="MAIR",
    layout="MAIR-Queries/ and MAIR-Docs/",
    is_layout=lambda folder: (folder / QUERIES).is_dir(),
    read=lambda folder: read_mair(folder / QUERIES, folder / DOCUMENTS),
    repositories={QUERIES: "MAIR-Bench/MAIR-Queries", DOCUMENTS: "MAIR-Bench/MAIR-Docs"},
    # The tasks whose mean the paper's tables call MAIR: Dynamic Domain and Fair Ranking.
    subsets={
        "mair-paper": ("DD_2015", "DD_2016", "DD_2017", "FairRanking_2021", "FairRanking_2022")
    },
    subset_help="mair-paper: the five MAIR tasks averaged in the paper's tables",
)
