"""Benchmarks in mteb's layout: a dataset whose card names its parts as configurations.

`corpus` {_id or id, title, text}, `queries` {_id or id, text, maybe instruction}, the judgments as
`default` or `qrels` {query-id, corpus-id, score}, and where there are some `instruction` {query-id,
instruction} and `top_ranked` {query-id, corpus-ids}: the documents a query is ranked over. The card
(README.md) lists the files of each split of a part: JSON lines, CSV, TSV or Parquet; of several
splits `test` counts, as in mteb. InstructIR is published so, and mteb's retrieval tasks of one
language.
"""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.files.rows import read_rows
from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark, Question
from trainer.suites.beir import retrieval_benchmark
from trainer.suites.reading import by_id, titled_text
from trainer.suites.suite import Suite

CARD = "README.md"
PARTS = ("corpus", "queries", "default", "qrels", "instruction", "top_ranked")
JUDGMENTS = ("default", "qrels")  # the first one that is there, as in mteb
SPLIT = "test"
Parts = dict[str, dict[str, list[str]]]


def parts_of(folder: Path) -> Parts:
    """{part: {split: paths or patterns}} as the card says; empty for a folder in another layout."""
    found: Parts = {}
    for config in configurations_of(folder / CARD):
        name = config.get("config_name") if isinstance(config, dict) else None
        splits = splits_of(config.get("data_files")) if name in PARTS else {}
        if splits:
            found[str(name)] = splits
    has_judgments = any(name in found for name in JUDGMENTS)
    return found if has_judgments and {"corpus", "queries"} <= found.keys() else {}


def read_mteb(folder: Path, parts: Parts) -> Benchmark:
    """The benchmark of a folder with these `parts_of` it. Raises BadInput with file and line."""
    documents = rows_of_part(folder, parts["corpus"], ("text",))
    corpus = by_id(
        "document", ((place, id_of(place, row), titled_text(row)) for place, row in documents)
    )
    instructions = {
        str(row["query-id"]): str(row.get("instruction") or "")
        for _, row in rows_of_part(folder, parts.get("instruction", {}), ("query-id",))
    }
    queries = rows_of_part(folder, parts["queries"], ("text",))
    rows_by_id = by_id("query", ((place, id_of(place, row), row) for place, row in queries))
    questions = {
        query: Question(
            str(instructions.get(query) or row.get("instruction") or ""), str(row["text"])
        )
        for query, row in rows_by_id.items()
    }
    part = next(name for name in JUDGMENTS if name in parts)
    judgments: dict[str, dict[str, int]] = {}
    for place, row in rows_of_part(folder, parts[part], ("query-id", "corpus-id", "score")):
        query, document = str(row["query-id"]), str(row["corpus-id"])
        if query not in questions:
            raise BadInput(
                f"{place}: no query {query!r} among the queries",
                "Get the benchmark's files again",
                code="query_unknown",
            )
        check_document(place, document, corpus)
        judgments.setdefault(query, {})[document] = grade_of(place, row["score"])
    if not judgments:
        raise BadInput(
            f"{folder}: its part {part} holds no judgment",
            "Get the benchmark's files again",
            code="judgments_empty",
        )
    candidates: dict[str, list[str]] = {}
    for place, row in rows_of_part(folder, parts.get("top_ranked", {}), ("query-id", "corpus-ids")):
        listed = [str(document) for document in row["corpus-ids"]]
        for document in listed:
            check_document(place, document, corpus)
        candidates[str(row["query-id"])] = listed
    if candidates and (missing := sorted(judgments.keys() - candidates.keys())):
        raise BadInput(
            f"{folder}: its part top_ranked has nothing for the query {missing[0]!r}",
            "Get the benchmark's files again",
            code="benchmark_part_incomplete",
        )
    judged = f"the judgments' split {_split(folder, parts[part])}".rstrip()
    return retrieval_benchmark(folder.name, questions, corpus, judgments, judged, candidates)


def configurations_of(card: Path) -> list[Any]:
    """The `configs` of a dataset's card; none where there is no card or it lists none."""
    import yaml
    from huggingface_hub import DatasetCard

    if not card.is_file():
        return []
    try:
        configs = DatasetCard.load(card).data.to_dict().get("configs")
    except (ValueError, TypeError, OSError, yaml.YAMLError):
        return []  # some README: the folder may be in another layout
    return configs if isinstance(configs, list) else []


def splits_of(data_files: Any) -> dict[str, list[str]]:
    """Of a card's data_files: a path, a list of paths, or splits with one path or several each."""
    if isinstance(data_files, str):
        return {"": [data_files]}
    if isinstance(data_files, dict):
        given: list[tuple[Any, Any]] = list(data_files.items())
    elif isinstance(data_files, list):
        given = [
            (each.get("split"), each.get("path")) if isinstance(each, dict) else ("", each)
            for each in data_files
        ]
    else:
        given = []
    found: dict[str, list[str]] = {}
    for split, paths in given:
        found.setdefault(str(split), []).extend([paths] if isinstance(paths, str) else paths or [])
    return found


def _split(folder: Path, splits: dict[str, list[str]]) -> str:
    """The split that counts: `test`, or the only one."""
    if SPLIT not in splits and len(splits) != 1:
        raise BadInput(
            f"{folder / CARD}: no split {SPLIT!r} among {', '.join(splits)}",
            "name a dataset with that split",
            code="split_unknown",
        )
    return SPLIT if SPLIT in splits else next(iter(splits))


def rows_of_part(
    folder: Path, splits: dict[str, list[str]], needed: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, row) of the split that counts, its files in order; none for a part without splits."""
    for pattern in splits[_split(folder, splits)] if splits else ():
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts or "://" in pattern:
            raise BadInput(
                f"{folder / CARD}: {pattern!r} is no file of the dataset itself",
                "name files of the folder",
                code="benchmark_file_outside",
            )
        files = sorted(folder.glob(pattern))
        if not files:
            raise BadInput(
                f"{folder / CARD} names {pattern}, and there is no such file",
                "Get the benchmark's files again",
                code="benchmark_file_missing",
            )
        for file in files:
            for place, row in _rows_of(file):
                if missing := [name for name in needed if row.get(name) is None]:
                    raise BadInput(f"{place} has no `{missing[0]}`", "add it", code="field_missing")
                yield place, row


def _rows_of(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if file.suffix == ".tsv":
        with file.open(encoding="utf-8", newline="") as lines:
            for line, cells in enumerate(csv.DictReader(lines, delimiter="\t"), start=2):
                yield f"{file}, line {line}", cells
        return
    for found in read_rows(file):
        place = f"{file}, line {found.line}"
        if found.reason is not None:
            raise BadInput(f"{place}: {found.reason}", "correct that line", code="row_invalid")
        yield place, found.values


def id_of(place: str, row: dict[str, Any]) -> str:
    """A row's `_id` or `id`. Raises BadInput where it has neither."""
    found = row.get("_id", row.get("id"))
    if found is None:
        raise BadInput(f"{place} has no `_id` (or `id`)", "add it", code="id_missing")
    return str(found)


def grade_of(place: str, value: Any) -> int:
    """A whole number, also as `1.0`. Raises BadInput for any other value."""
    try:
        grade = float(value)
    except (TypeError, ValueError):
        grade = math.nan
    if not grade.is_integer():
        raise BadInput(
            f"{place}: `score` must be a whole number, not {value!r}",
            "correct it",
            code="score_invalid",
        )
    return int(grade)


def check_document(place: str, document: str, corpus: dict[str, str]) -> None:
    """Raise BadInput where the corpus lacks the document."""
    if document not in corpus:
        raise BadInput(
            f"{place}: no document {document!r} in the corpus",
            "Get the benchmark's files again",
            code="document_unknown",
        )


SUITE = Suite(
    name="instructir",
    label="InstructIR",
    layout="mteb's: a card whose configurations name corpus, queries and judgments",
    is_layout=lambda folder: bool(parts_of(folder)),
    read=lambda folder: [read_mteb(folder, parts_of(folder))],
    repositories={"": "mteb/InstructIR-mteb"},
)
