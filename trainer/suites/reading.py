"""Reading the files of published benchmarks: JSON lines, TSV judgments, Parquet; ids once each."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from analysis.files.rows import read_rows as read_file_rows
from db.errors import BadInput

Value = TypeVar("Value")


def queries_of(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """(place, row) of queries.jsonl, every id once."""
    rows = read_rows(folder / "queries.jsonl", ("_id", "text"))
    return list(by_id("query", ((place, row["_id"], (place, row)) for place, row in rows)).values())


def corpus_of(folder: Path) -> dict[str, str]:
    """{id: text with its title} of corpus.jsonl. Raises BadInput where it is empty."""
    rows = read_rows(folder / "corpus.jsonl", ("_id", "text"))
    corpus = by_id("document", ((place, row["_id"], titled_text(row)) for place, row in rows))
    if not corpus:
        raise BadInput(
            f"{folder / 'corpus.jsonl'} holds no document",
            "Get the benchmark's files again",
            code="corpus_empty",
        )
    return corpus


def by_id(what: str, rows: Iterable[tuple[str, str, Value]]) -> dict[str, Value]:
    """{id: value} of (place, id, value). Raises BadInput where an id is there twice."""
    found: dict[str, Value] = {}
    for place, name, value in rows:
        if name in found:
            raise BadInput(
                f"{place}: {what} {name!r} is there twice", "keep one of them", code="id_duplicate"
            )
        found[name] = value
    return found


def titled_text(row: Mapping[str, Any]) -> str:
    """A document with its title in front, where it has one."""
    return f"{row.get('title') or ''} {row['text']}".strip()


def judgments_of(file: Path, corpus: dict[str, str]) -> dict[str, dict[str, int]]:
    """{query: {document: grade}} of a TSV file. Raises BadInput with file and line."""
    if not file.is_file():
        raise BadInput(
            f"{file} is missing: a benchmark needs its relevance judgments there",
            "add the file",
            code="benchmark_without_judgments",
        )
    judgments: dict[str, dict[str, int]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines, delimiter="\t"), start=2):
            try:
                query, document, grade = row["query-id"], row["corpus-id"], int(row["score"])
            except (KeyError, TypeError, ValueError) as error:
                raise BadInput(
                    f"{file}, line {number}: the columns query-id, corpus-id and score (a whole "
                    "number), separated by tabs, are needed",
                    "correct that line",
                    code="judgment_line_invalid",
                ) from error
            if document not in corpus:
                raise BadInput(
                    f"{file}, line {number}: no document {document!r} in corpus.jsonl",
                    "Get the benchmark's files again",
                    code="document_unknown",
                )
            judgments.setdefault(query, {})[document] = grade
    if not judgments:
        raise BadInput(
            f"{file} holds no judgment", "Get the benchmark's files again", code="judgments_empty"
        )
    return judgments


def read_rows(file: Path, needed: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, row) of a JSON-lines file; the needed fields are text. Raises BadInput with line."""
    if not file.is_file():
        raise BadInput(
            f"{file} is missing",
            "see `evaluations create` for the folder's layout",
            code="file_missing",
        )
    for found in read_file_rows(file):
        place, row = f"{file}, line {found.line}", found.values
        if found.reason is not None:
            raise BadInput(f"{place}: {found.reason}", "correct that line", code="row_invalid")
        for key in needed:
            value = row.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                row[key] = str(value)
            elif not isinstance(value, str):
                raise BadInput(f"{place} has no `{key}`", "add it", code="field_missing")
        yield place, row


def check_documents(place: str, judged: Mapping[str, int], corpus: Mapping[str, str]) -> None:
    """Raise BadInput where a judged document is not in the corpus."""
    if missing := [name for name in judged if name not in corpus]:
        raise BadInput(
            f"{place}: no document {missing[0]!r} among the task's documents",
            "Get the benchmark's files again",
            code="document_unknown",
        )


def parquet_rows(files: list[Path], columns: tuple[str, ...]) -> list[tuple[str, dict[str, Any]]]:
    """(place, row) of Parquet files. Raises BadInput for a file or a column that is missing."""
    import pyarrow
    import pyarrow.parquet as parquet

    rows: list[tuple[str, dict[str, Any]]] = []
    for file in files:
        try:
            table = parquet.read_table(file, columns=list(columns))
        except (OSError, pyarrow.ArrowException) as error:
            raise BadInput(
                f"{file} cannot be read as parquet: {error}",
                "Download or copy it again",
                code="parquet_invalid",
            ) from error
        if missing := [name for name in columns if name not in table.column_names]:
            raise BadInput(f"{file} has no column `{missing[0]}`", "add it", code="column_missing")
        rows += [(f"{file}, row {number}", row) for number, row in enumerate(table.to_pylist(), 1)]
    return rows
