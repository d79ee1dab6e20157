"""MS MARCO v2.1 question answering rows: P+ is the passage with `is_selected` = 1.

A row is `query`, `query_id`, `query_type`, `answers`, and `passages` as the hub has them (columns
of equal length: `is_selected`, `passage_text`, `url`) or as the original JSON does (a list of such
records). The first selected passage makes the pair; all others are the pool. Read from local JSONL
or Parquet, or from the hub with `hub:NAME[:CONFIG[:SPLIT]]`, row by row.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.files.rows import read_rows
from curation.sources.rows import (
    Converted,
    LeftOut,
    SourceInput,
    SourceKind,
    SourcePair,
    SourcePassage,
    passage_id_of,
    text_in,
)
from db.errors import BadInput

NO_ANSWER = "No Answer Present."


def read_msmarco(place: str) -> Iterator[Converted]:
    """Passages and pairs of a file or of the hub."""
    for line, row in _rows(place):
        if isinstance(row, str):
            yield LeftOut(place, line, row)
        else:
            yield from convert_row(row, place, line)


def convert_row(row: dict[str, Any], file: str, line: int) -> Iterator[Converted]:
    """One row: its passages, and its pair or the reason why there is none."""
    query, key = text_in(row, "query"), row.get("query_id")
    if not query or key in (None, ""):
        yield LeftOut(file, line, "no query" if not query else "no query_id")
        return
    passages = _passages(row.get("passages"))
    if passages is None:
        yield LeftOut(file, line, "no passages, or columns of different length")
        return
    chosen: str | None = None
    for text, selected, url in passages:
        if not text.strip():
            continue
        passage_id = passage_id_of("msmarco", text.strip())
        yield SourcePassage(passage_id, text.strip(), meta={"url": url} if url else {})
        if selected and chosen is None:
            chosen = passage_id
    if chosen is None:
        yield LeftOut(file, line, "no passage is selected")
        return
    answers = [one for one in row.get("answers") or () if one and one != NO_ANSWER]
    meta = {"query_type": row.get("query_type") or "", "answers": answers}
    yield SourcePair(f"msmarco-{key}", query, chosen, meta)


def _passages(found: Any) -> list[tuple[str, bool, str]] | None:
    if isinstance(found, dict):
        texts, flags = found.get("passage_text"), found.get("is_selected")
        if texts is None or flags is None or len(texts) != len(flags):
            return None
        urls = found.get("url")
        urls = urls if urls is not None and len(urls) == len(texts) else [""] * len(texts)
        rows = zip(texts, flags, urls, strict=True)
        return [(str(text or ""), int(flag or 0) == 1, str(url or "")) for text, flag, url in rows]
    if isinstance(found, list) and all(isinstance(one, dict) for one in found):
        return [
            (
                str(one.get("passage_text") or ""),
                one.get("is_selected") == 1,
                str(one.get("url") or ""),
            )
            for one in found
        ]
    return None


def _rows(place: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    if not place.startswith("hub:"):
        for row in read_rows(Path(place)):
            yield row.line, row.values if row.reason is None else row.reason
        return
    import datasets

    name, config, split = [*place.removeprefix("hub:").split(":"), "", ""][:3]
    try:
        found = datasets.load_dataset(name, config or None, split=split or "train", streaming=True)
    except Exception as error:  # the library raises anything: for the name, the network, a token
        raise BadInput(
            f"the hub gives no dataset {name!r}: {error}",
            "Check its name and the network",
            code="hub_dataset_unavailable",
        ) from error
    yield from enumerate(found, 1)


FORMATS = {
    "msmarco": SourceKind(
        "MS MARCO v2.1 rows: a JSONL or Parquet file, or hub:NAME[:CONFIG[:SPLIT]].",
        (SourceInput("place", is_file=False),),
        read_msmarco,
    )
}
