"""TREC run and qrels files, as trec_eval reads them.

A run line is `query Q0 document rank score tag`, a qrels line `query 0 document grade`, fields
separated by spaces or tabs. Note: the rank column counts for nothing, scores order a
run and ties are broken by document id, descending; written files have their ranks by that rule.
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from db.corpus.datasets import text_sha256
from db.errors import BadInput

MAX_TAG = 60
FOLDERS = re.compile(r"(?<![^:+,])/(?:[^/+,]+/)*")  # of an absolute path, alone or in a name


@dataclass(frozen=True)
class RunFile:
    """{query: {document: score}} of a file, its tag, and the sha256 of the bytes that were read."""

    scores: dict[str, dict[str, float]]
    tag: str
    sha256: str


def read_run(file: Path) -> RunFile:
    """The run of a file. Raises BadInput with file and line."""
    scores: dict[str, dict[str, float]] = {}
    tag, whole = "", hashlib.sha256()
    for place, fields in _lines(file, 6, "query Q0 document rank score tag", whole.update):
        query, _, document, _, value, tag = fields
        try:
            score = float(value)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise BadInput(
                f"{place}: the score {value!r} is no finite number",
                "correct that line",
                code="score_invalid",
            )
        of = scores.setdefault(query, {})
        if document in of:
            raise BadInput(
                f"{place}: document {document!r} is there twice for query {query!r}",
                "keep one of them",
                code="document_duplicate",
            )
        of[document] = score
    if not scores:
        raise BadInput(
            f"{file} holds no line of a run", "write the run again", code="run_file_empty"
        )
    return RunFile(scores, tag, whole.hexdigest())


def read_qrels(file: Path) -> dict[str, dict[str, int]]:
    """{query: {document: grade}} of a file. Raises BadInput with file and line."""
    judgments: dict[str, dict[str, int]] = {}
    for place, (query, _, document, value) in _lines(file, 4, "query 0 document grade"):
        try:
            grade = int(value)
        except ValueError as error:
            raise BadInput(
                f"{place}: the grade {value!r} is no whole number",
                "correct that line",
                code="grade_invalid",
            ) from error
        of = judgments.setdefault(query, {})
        if document in of:
            raise BadInput(
                f"{place}: document {document!r} is there twice for query {query!r}",
                "keep one of them",
                code="document_duplicate",
            )
        of[document] = grade
    if not judgments:
        raise BadInput(
            f"{file} holds no judgment",
            "name a file with a line per judgment",
            code="judgments_empty",
        )
    return judgments


def write_run(file: Path, scores: Mapping[str, Mapping[str, float]], tag: str) -> None:
    """Write a run, best first, scores unrounded. Raises BadInput where an id has a space.

    Of a checkpoint that the tag names by its path, the file gets the folder's name alone.
    """
    name = "-".join(FOLDERS.sub("", tag).split())[-MAX_TAG:] or "run"
    with file.open("x", encoding="utf-8") as out:
        for query, of in scores.items():
            ranked = sorted(((score, document) for document, score in of.items()), reverse=True)
            for rank, (score, document) in enumerate(ranked, start=1):
                out.write(f"{_id(query)} Q0 {_id(document)} {rank} {score!r} {name}\n")


def write_qrels(file: Path, judgments: Mapping[str, Mapping[str, int]]) -> None:
    """Write relevance judgments. Raises BadInput where an id has a space."""
    with file.open("x", encoding="utf-8") as out:
        for query, of in judgments.items():
            for document, grade in of.items():
                out.write(f"{_id(query)} 0 {_id(document)} {grade}\n")


def require_ids(names: Iterable[str]) -> None:
    """Raise BadInput where a TREC file cannot hold an id."""
    for name in names:
        _id(name)


def trec_files(folder: str, benchmark: str, model: str) -> tuple[Path, Path]:
    """Where the run of a model on a benchmark and the benchmark's qrels are written."""
    inside = Path(folder) / re.sub(r"[^\w.-]+", "_", benchmark)
    name = re.sub(r"[^\w.-]+", "_", model).strip("_")[-60:]  # two names may become one
    return inside / f"{name}-{text_sha256(model)[:8]}.run", inside / "qrels"


def _lines(
    file: Path, count: int, layout: str, seen: Callable[[bytes], None] = lambda line: None
) -> Iterator[tuple[str, list[str]]]:
    """(place, fields) of every line; `seen` gets each line's bytes."""
    if not file.is_file():
        raise BadInput(
            f"no file {file}",
            "Check the path: it is one of the machine that does the work",
            code="file_missing",
        )
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                seen(line)
                fields = line.decode("utf-8-sig" if number == 1 else "utf-8").split()
                if fields and len(fields) != count:
                    raise BadInput(
                        f"{file}, line {number} has {len(fields)} fields, and a line is: {layout}",
                        "correct that line",
                        code="trec_line_invalid",
                    )
                if fields:
                    yield f"{file}, line {number}", fields
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{file} is not UTF-8 text ({error.reason})", "save it as UTF-8", code="text_not_utf8"
        ) from error


def _id(name: str) -> str:
    if not name or name.split() != [name]:
        raise BadInput(
            f"the id {name!r} is empty or has a space: a TREC file cannot hold it",
            "rename it in the benchmark",
            code="id_invalid_in_trec",
        )
    return name
