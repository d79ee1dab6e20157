"""Folders of a corpus, queries and judgments of relevance: BEIR's, and MS MARCO's passage ranking.

A pair is a query with a document of score 1 or more; every other document is in the pool. A query
with several relevant documents gives a pair for each, `QUERY:DOCUMENT`, so that none of them is
used as a distractor; one with a single relevant document keeps its id.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from analysis.files.delimited import read_headless
from analysis.files.opening import UNPACKED
from analysis.files.rows import FileRow, read_rows
from curation.sources.rows import (
    Converted,
    LeftOut,
    SourceInput,
    SourceKind,
    SourcePair,
    SourcePassage,
    text_in,
)
from db.errors import BadInput

SPLITS = ("", "test", "dev", "train")
TEXT_COLUMNS = ("_id", "text")
QRELS_COLUMNS = ("query-id", "iteration", "corpus-id", "score")
_PACKED = "|".join(map(re.escape, UNPACKED))
_ROWS = re.compile(rf"(?:\.jsonl(?:{_PACKED})?|\.parquet)", re.IGNORECASE)
_HEADLESS = re.compile(rf"(?:\.(?:tsv|txt))?(?:{_PACKED})?", re.IGNORECASE)


@dataclass(frozen=True)
class Part:
    """A part of a collection: the names of its files, for messages, and its rows."""

    name: str
    rows: Iterable[FileRow]


def read_beir(folder: Path, split: str | None = None) -> Iterator[Converted]:
    """Passages, then pairs of one split (default: the first existing of test, dev and train).

    `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv` with a header. Raises BadInput if a part
    is missing, with the expected contents of the folder.
    """
    expected = "a BEIR folder holds corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv"
    corpus, queries = (_only(folder, name, _ROWS, expected) for name in ("corpus", "queries"))
    judged = _splits(folder / "qrels", "", re.compile(r"\.tsv"))
    _, qrels = _of_split(folder, "qrels/", judged, split, expected)
    yield from _joined(
        Part(corpus.name, read_rows(corpus)),
        Part(queries.name, read_rows(queries)),
        Part(qrels.name, read_rows(qrels)),
    )


def read_msmarco_passages(folder: Path, split: str | None = None) -> Iterator[Converted]:
    """Passages, then pairs of one split (default: the first of none, test, dev and train).

    `collection.tsv` (id, text), `queries.tsv` or `queries.SPLIT.tsv` (id, text), and `qrels` or
    `qrels.SPLIT.tsv` (query, 0, passage, grade), none of them with a header. Raises BadInput.
    """
    expected = "MS MARCO's folder holds collection.tsv, queries.SPLIT.tsv and qrels.SPLIT.tsv"
    corpus = _only(folder, "collection", _HEADLESS, expected)
    name, qrels = _of_split(folder, "qrels.", _splits(folder, "qrels", _HEADLESS), split, expected)
    texts = _splits(folder, "queries", _HEADLESS)
    found = texts.get(name) or texts.get("") or (next(iter(texts.values())) if texts else None)
    if found is None:
        raise BadInput(f"{folder} has no queries.tsv", expected, code="file_missing")
    yield from _joined(
        Part(corpus.name, read_headless(corpus, TEXT_COLUMNS)),
        Part(found.name, read_headless(found, TEXT_COLUMNS)),
        Part(qrels.name, read_headless(qrels, QRELS_COLUMNS)),
    )


def is_beir(folder: Path) -> bool:
    """Whether the folder has a corpus, and judgments in `qrels/`."""
    return bool(_splits(folder, "corpus", _ROWS)) and (folder / "qrels").is_dir()


def is_msmarco_passages(folder: Path) -> bool:
    """Whether the folder has a collection and judgments as MS MARCO names them."""
    return all(_splits(folder, name, _HEADLESS) for name in ("collection", "qrels"))


def _joined(corpus: Part, queries: Part, qrels: Part) -> Iterator[Converted]:
    held: set[str] = set()
    for row in corpus.rows:
        ident, text = _ident(row.values, "_id"), text_in(row.values, "text")
        if row.reason or not ident or not text:
            yield LeftOut(corpus.name, row.line, row.reason or "a document without _id or text")
            continue
        held.add(ident)
        yield SourcePassage(ident, text, text_in(row.values, "title"))
    texts: dict[str, str] = {}
    for row in queries.rows:
        ident, text = _ident(row.values, "_id"), text_in(row.values, "text")
        if row.reason or not ident or not text:
            yield LeftOut(queries.name, row.line, row.reason or "a query without _id or text")
            continue
        texts[ident] = text
    relevant: dict[str, dict[str, float]] = {}
    for row in qrels.rows:
        query, document = _ident(row.values, "query-id"), _ident(row.values, "corpus-id")
        score = _score(row.values.get("score"))
        if row.reason or not query or not document or score is None:
            reason = row.reason or "not query-id, corpus-id and a number as score"
            yield LeftOut(qrels.name, row.line, reason)
        elif score > 0 and query not in texts:
            yield LeftOut(qrels.name, row.line, "the query is not in queries")
        elif score > 0 and document not in held:
            yield LeftOut(qrels.name, row.line, "the document is not in corpus")
        elif score > 0:
            relevant.setdefault(query, {})[document] = score
    for query, documents in relevant.items():
        for document, score in sorted(documents.items(), key=lambda one: (-one[1], one[0])):
            ident = query if len(documents) == 1 else f"{query}:{document}"
            yield SourcePair(ident, texts[query], document, {"score": score})


def _splits(folder: Path, name: str, ending: re.Pattern[str]) -> dict[str, Path]:
    """The files `NAME`, `NAME.SPLIT` of a folder by split, with one of the endings."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        rest = path.name.removeprefix(name)
        if (name and rest == path.name) or not path.is_file():
            continue
        match = re.fullmatch(rf"(?:\.?(?P<split>[\w.-]+?))??{ending.pattern}", rest, ending.flags)
        if match is not None:
            found.setdefault(match["split"] or "", path)
    return found


def _only(folder: Path, name: str, ending: re.Pattern[str], expected: str) -> Path:
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder", expected, code="folder_missing")
    if (path := _splits(folder, name, ending).get("")) is None:
        raise BadInput(f"{folder.name} has no {name}", expected, code="file_missing")
    return path


def _of_split(
    folder: Path, name: str, files: dict[str, Path], split: str | None, expected: str
) -> tuple[str, Path]:
    for wanted in (*SPLITS, *files) if split is None else (split,):
        if wanted in files:
            return wanted, files[wanted]
    found = ", ".join(filter(None, files))
    raise BadInput(
        f"{folder.name} has no {name}{split or 'test'}.tsv",
        f"there are {found}: choose one with `split=`" if found else expected,
        code="split_unknown",
    )


def _ident(row: dict[str, object], column: str) -> str:
    value = row.get(column)
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _score(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


_SPLIT = SourceInput("split", "The judgments of this split.", is_file=False, required=False)
FORMATS = {
    "beir": SourceKind(
        "A BEIR folder: corpus.jsonl, queries.jsonl and qrels/test.tsv (else dev, train).",
        (SourceInput("folder"), _SPLIT),
        read_beir,
        recognises=is_beir,
    ),
    "msmarco-passages": SourceKind(
        "MS MARCO's passage ranking: collection.tsv, queries.SPLIT.tsv and qrels.SPLIT.tsv.",
        (SourceInput("folder"), _SPLIT),
        read_msmarco_passages,
        recognises=is_msmarco_passages,
    ),
}
