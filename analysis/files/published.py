"""Corpora in the formats they are published in: a file or a folder in, texts by field out.

Each row is known by its columns, so that a folder is read as it was downloaded:

    InF-IR, our releases   query_positive, instruction_positive, …, or the columns of their shape
    Promptriever           only_query, only_instruction, positive_passages, negative_passages
    FollowIR               queries: _id, text, instruction_og, instruction_changed (keywords, …)
    InstructIR, BEIR       queries / corpus: _id, text; instructions: query-id, instruction
    MAIR                   queries: qid, instruction, query; docs: id, doc
    BRIGHT                 examples: query, gold_ids; documents: id, content
    pairs, topics, texts   query, passage; title, description, narrative; text

Files: .jsonl, .json (one object per line), .parquet, .csv. Relevance judgments and rankings hold no
text and are passed over. A text that occurs in many rows (a passage, a document) is listed once;
the queries and instructions of every row are.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.files.rows import READERS, Row, format_of, read_rows
from db.corpus.texts import CorpusText
from db.errors import BadInput
from db.shape import Shape, shape_in

SUFFIXES = tuple(READERS)
MANIFEST = "release.json"
POOL = "pool"  # the role of a document that belongs to no query
CHANGED = "changed"  # the role of FollowIR's changed instruction
NAMES_WITHOUT_TEXT = ("qrels", "top_ranked", MANIFEST, "dataset_infos", "state.json")

FOLLOW_IR = {
    "text": ("query", "positive"),
    "keywords": ("query", "positive"),
    "short_query": ("query", "positive"),
    "instruction_og": ("instruction", "positive"),
    "instruction_changed": ("instruction", CHANGED),
}
MAIR = {"query": ("query", "positive"), "instruction": ("instruction", "positive")}
TOPIC = {
    "title": ("query", "positive"),
    "description": ("query", "positive"),
    "narrative": ("instruction", "positive"),
}
PAIR = {"query": ("query", "positive"), "passage": ("passage", "positive")}


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of a release in a folder, empty where there is none. Raises BadInput."""
    file = folder / MANIFEST
    if not file.exists():
        return {}
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(
            f"{file} is not JSON ({error})", "export the release again", code="json_invalid"
        ) from error
    if not isinstance(manifest, dict):
        raise BadInput(
            f"{file} is not a JSON object", "export the release again", code="json_not_object"
        )
    return manifest


def shape_of_corpus(path: Path) -> Shape:
    """The shape of a release's folder, or of a file in one; InF-IR's of any other corpus.

    Raises BadInput for a manifest that cannot be read.
    """
    folder = path if path.is_dir() else path.parent
    folder = folder.parent if folder.name == "data" else folder
    return shape_in(manifest_of(folder), str(folder / MANIFEST))


def read_published(path: Path) -> list[CorpusText]:
    """The texts of a published corpus, in the order of its files and rows.

    Raises BadInput where there is no file, a file cannot be read, or nothing in it is known.
    """
    shape = shape_of_corpus(path)
    texts: list[CorpusText] = []
    seen: set[tuple[str, str]] = set()
    unknown: dict[str, list[str]] = {}
    for file in _files(path):
        name = str(file.relative_to(path)) if path.is_dir() else file.name
        for row in _rows(file):
            found = texts_of_row(row, name, shape)
            if found is None:
                unknown.setdefault(file.name, sorted(row))
                continue
            for text in found:
                if text.field == "passage":
                    if (text.role, text.text) in seen:
                        continue
                    seen.add((text.role, text.text))
                texts.append(text)
    if not texts:
        found_columns = [f"{name}: {', '.join(columns)}" for name, columns in unknown.items()]
        raise BadInput(
            f"{path}: no columns of a known format ({'; '.join(found_columns) or 'no row'}); known "
            "are InF-IR, Promptriever, FollowIR, InstructIR, MAIR, BRIGHT, pairs (query, passage) "
            "and text",
            code="format_unknown",
        )
    return texts


def texts_of_row(row: Mapping[str, Any], name: str, shape: Shape) -> list[CorpusText] | None:
    """The texts of one row; None where its columns are of no known format.

    `name` is the file's path below the corpus: the rows of BEIR's queries and corpus look alike.
    """
    if not shape.lists and shape.first.query.column in row:
        return _by_column(row, {text.column: (text.field, text.role) for text in shape.all_texts})
    if "only_query" in row or "positive_passages" in row:
        return _promptriever(row)
    if "_id" in row and "text" in row:
        if "instruction_og" in row or "quer" in name:
            return _by_column(row, FOLLOW_IR)
        return _by_column(row, {"text": ("passage", POOL)})
    for column in ("instruction", "text"):
        if "query-id" in row and column in row:
            return _by_column(row, {column: ("instruction", "positive")})
    if "doc" in row:
        return _by_column(row, {"doc": ("passage", POOL)})
    if "content" in row:
        return _by_column(row, {"content": ("passage", POOL)})
    if "instruction" in row and "query" in row:
        return _by_column(row, {**MAIR, "passage": ("passage", "positive")})
    if "query" in row:
        return _by_column(row, PAIR)
    if "narrative" in row:
        return _by_column(row, TOPIC)
    if "passage_id" in row and "text" in row:
        return _by_column(row, {"text": ("passage", POOL)})
    if "text" in row:
        return _by_column(row, {"text": ("text", "text")})
    return None


def _rows(path: Path) -> Iterator[Row]:
    """The rows of a file. Raises BadInput with the line of the first that cannot be read."""
    for row in read_rows(path):
        if row.reason:
            raise BadInput(
                f"{path.name}, line {row.line}: {row.reason}",
                "correct that line",
                code="row_invalid",
            )
        yield row.values


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if format_of(path) is None:
            raise BadInput(
                f"{path}: {path.suffix or 'no suffix'}; known are {', '.join(SUFFIXES)}",
                code="format_unknown",
            )
        return [path]
    if not path.is_dir():
        raise BadInput(
            f"{path}: no such file or folder",
            "Check the path: it is one of the machine that does the work",
            code="file_missing",
        )
    if (path / MANIFEST).is_file():
        path = path / "data"  # the other configurations of our releases hold the same texts again
    files = [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file()
        and format_of(file) is not None
        and not any(
            word in part
            for part in file.relative_to(path).parts
            for word in (*NAMES_WITHOUT_TEXT, ".cache")
        )
    ]
    if not files:
        raise BadInput(
            f"{path}: holds no {', '.join(SUFFIXES)}",
            "name another folder",
            code="folder_without_data_files",
        )
    return files


def _by_column(row: Mapping[str, Any], columns: Mapping[str, tuple[str, str]]) -> list[CorpusText]:
    return [
        CorpusText(field, role, row[column], _group(row))
        for column, (field, role) in columns.items()
        if isinstance(row.get(column), str) and row[column].strip()
    ]


def _group(row: Mapping[str, Any]) -> int | None:
    value = row.get("group_id")
    return value if isinstance(value, int) else None


def _promptriever(row: Mapping[str, Any]) -> list[CorpusText]:
    columns = {"only_query": ("query", "positive"), "only_instruction": ("instruction", "positive")}
    if "only_query" not in row:
        columns = {"query": ("query", "positive")}
    found = _by_column(row, columns)
    for column, role in (("positive_passages", "positive"), ("negative_passages", "negative")):
        for passage in row.get(column) or []:
            found += _by_column(passage, {"text": ("passage", role)})
    return found
