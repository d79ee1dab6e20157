"""BEIR folders: `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv`.

A pair is a query with a document of score 1 or more; every other document is in the pool. A query
with several relevant documents gives a pair for each, `QUERY:DOCUMENT`, so that none of them is
used as a distractor; one with a single relevant document keeps its id.
"""

from collections.abc import Iterator
from pathlib import Path

from analysis.files.rows import read_rows
from curation.sources.rows import Converted, LeftOut, SourcePair, SourcePassage, text_in
from db.errors import BadInput

PARTS = ("corpus", "queries")
ENDINGS = (".jsonl", ".jsonl.gz", ".parquet")
SPLITS = ("test", "dev", "train")


def read_beir(folder: Path, split: str | None = None) -> Iterator[Converted]:
    """Passages, then pairs of one split (default: the first existing of test, dev and train).

    Raises BadInput if a part is missing, with the expected contents of the folder.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; a BEIR folder holds corpus.jsonl and qrels/")
    corpus, queries = (_part(folder, name) for name in PARTS)
    qrels = _qrels(folder, split)
    held: set[str] = set()
    for row in read_rows(corpus):
        ident, text = _ident(row.values, "_id"), text_in(row.values, "text")
        if row.reason or not ident or not text:
            yield LeftOut(corpus.name, row.line, row.reason or "a document without _id or text")
            continue
        held.add(ident)
        yield SourcePassage(ident, text, text_in(row.values, "title"))
    texts: dict[str, str] = {}
    for row in read_rows(queries):
        ident, text = _ident(row.values, "_id"), text_in(row.values, "text")
        if row.reason or not ident or not text:
            yield LeftOut(queries.name, row.line, row.reason or "a query without _id or text")
            continue
        texts[ident] = text
    yield from _pairs(qrels, texts, held)


def _pairs(qrels: Path, texts: dict[str, str], held: set[str]) -> Iterator[Converted]:
    relevant: dict[str, dict[str, float]] = {}
    for row in read_rows(qrels):
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


def _part(folder: Path, name: str) -> Path:
    for ending in ENDINGS:
        if (path := folder / f"{name}{ending}").is_file():
            return path
    raise BadInput(
        f"{folder.name} has no {name}.jsonl: a BEIR folder holds corpus, queries, qrels/"
    )


def _qrels(folder: Path, split: str | None) -> Path:
    for name in SPLITS if split is None else (split,):
        if (path := folder / "qrels" / f"{name}.tsv").is_file():
            return path
    found = sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))
    raise BadInput(
        f"{folder.name}/qrels has no {split or 'test'}.tsv; "
        + (f"it has {', '.join(found)}: choose one with --split" if found else "it has no .tsv")
    )


def _ident(row: dict[str, object], column: str) -> str:
    value = row.get(column)
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _score(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
