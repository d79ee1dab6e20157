"""Published datasets as groups or pairs: which columns hold what, by preset or by mapping.

- `groups`: InF-IR's seven columns, or those of the shape that the release's manifest names; rows of
  Promptriever's columns where that has lists.
- `pairs`: `query` with `passage` or `passage_id`.
- `promptriever` (samaya-ai/msmarco-w-instructions): a query with and without its instruction, lists
  of passages. Queries with an instruction get ids of their own, `ID-instructed`.
- `followir` (jhu-clsp/FollowIR-train): a row per (query, instruction, document) with a label; rows
  whose label says relevant become pairs.
- `triplets`: (query, positive, negatives) under any names, as sentence-transformers, Tevatron and
  others publish them; passages are texts or objects with `text`, one or a list.

Negatives come along as passages of the pool and stand at their pair as given negatives; what they
were made to contradict is not known as it is of our own groups. Rows without a usable pair are left
out with the reason, and counted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from analysis.files.rows import read_rows
from curation.importing.columns import COLUMNS as OF_PAIRS
from curation.importing.columns import (
    columns_of,
    did_you_mean,
    files_having,
    proposed_columns,
    renamed,
)
from curation.sources.rows import (
    Converted,
    LeftOut,
    SourcePair,
    SourcePassage,
    passage_id_of,
    text_in,
)
from db.corpus.datasets import text_sha256
from db.errors import BadInput, Refused
from db.shape import INF_IR, Shape

GROUPS, PAIRS = "groups", "pairs"
QUERY = ("query", "anchor", "question")
POSITIVE = ("positive", "pos", "positive_passages", "positives", "answer", "document")
NEGATIVE = ("negatives", "negative", "neg", "negative_passages", "hard_negatives")
RELEVANT = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
PROMPTRIEVER = (
    *("query_id", "only_query", "only_instruction", "has_instruction"),
    *("positive_passages", "new_negatives", "negative_passages"),
)
FOLLOWIR = ("id", "query", "instruction", "document", "label")
OURS = tuple(
    dict.fromkeys(
        [
            *(*INF_IR.columns, "verdict", "drop_reason", "offline"),
            *(*OF_PAIRS["pairs"], *QUERY, *POSITIVE, *NEGATIVE, *PROMPTRIEVER, *FOLLOWIR),
        ]
    )
)
Values = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """How to read a dataset: None for `layout` finds it by the columns.

    `columns` maps our names to the file's. `split`: only files whose name starts with it. `limit`:
    at most so many pairs. `negatives`: whether they come along as passages of the pool.
    """

    layout: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    split: str | None = None
    limit: int | None = None
    negatives: bool = True

    def __post_init__(self) -> None:
        if self.layout not in (None, GROUPS, PAIRS, *PRESETS):
            raise BadInput(
                f"no layout {self.layout!r}", f"one of {', '.join(LAYOUTS)}", code="layout_unknown"
            )


def layout_of(files: Sequence[Path], wanted: Wanted, shape: Shape) -> str:
    """The layout of the files, by their first rows; `shape` is that of groups.

    Raises Refused with the columns there are, and BadInput for a mapping of or to a column that
    there is not.
    """
    _check_mapping(files, wanted.columns, (*OURS, *shape.columns))
    if wanted.layout is not None:
        return wanted.layout
    found = {_layout(_first(file, wanted.columns), shape) for file in files}
    if len(found) == 1 and (only := found.pop()) is not None:
        return only
    columns = ", ".join(dict.fromkeys(name for file in files for name in _first(file, {})))
    usual = proposed_columns(columns_of("pairs", files[0]), wanted.columns, with_passages=False)
    named = " ".join(f"`column={ours}={theirs}`" for ours, theirs in usual.items())
    raise Refused(
        f"the columns {columns} fit no layout ({', '.join(LAYOUTS)})",
        "name yours with `column=`, "
        + (f"as their names propose: {named}" if named else "as `column=query=MINE`"),
        code="layout_not_recognized",
    )


def _check_mapping(files: Sequence[Path], columns: Mapping[str, str], known: Sequence[str]) -> None:
    """Refuse a mapping to a name that no layout has, or of a column that no file has."""
    if not columns:
        return
    there = [columns_of("pairs", file) for file in files]
    for ours, theirs in columns.items():
        plain = ours.removeprefix("pairs.")
        if plain not in known and not plain.startswith(NEGATIVE):
            raise BadInput(
                f"no column `{ours}` to map to{did_you_mean(plain, known)}",
                f"one of {', '.join(dict.fromkeys(known))}",
                code="column_unknown",
            )
        files_having(ours, theirs, there)


def rows_of(files: Iterable[Path], layout: str, wanted: Wanted) -> Iterator[Converted]:
    """The passages, pairs and rows left out of files with the layout of a preset."""
    read = PRESETS[layout]
    for file in files:
        for row in read_rows(file):
            if row.reason is not None:
                yield LeftOut(file.name, row.line, row.reason)
                continue
            try:
                found = list(read(renamed(row.values, wanted.columns)))
            except _Unusable as reason:
                yield LeftOut(file.name, row.line, str(reason))
                continue
            pairs = {one.passage_id for one in found if isinstance(one, SourcePair)}
            for one in found:
                is_pool = isinstance(one, SourcePassage) and one.passage_id not in pairs
                if not wanted.negatives and isinstance(one, SourcePair):
                    yield replace(one, negative_ids=())
                elif wanted.negatives or not is_pool:
                    yield one


class _Unusable(Exception):
    """Why a row gives no pair."""


def _promptriever(row: Values) -> Iterator[Converted]:
    instruction = text_in(row, "only_instruction")
    query = text_in(row, "only_query") or text_in(row, "query")
    number = str(row.get("query_id") or "").strip()
    if not query or not number:
        raise _Unusable("no query" if not query else "no query_id")
    positives = _passages(row.get("positive_passages"))
    meta = {"instruction": instruction} if instruction else {}
    if row.get("has_instruction"):
        number += "-instructed"
    negatives = [*_passages(row.get("new_negatives")), *_passages(row.get("negative_passages"))]
    yield from _pair(number, query, positives, negatives, meta)


def _followir(row: Values) -> Iterator[Converted]:
    query, document = text_in(row, "query"), text_in(row, "document")
    if not query or not document:
        raise _Unusable("no query" if not query else "no document")
    label = RELEVANT.get(str(row.get("label")).strip().lower())
    if label is None:
        raise _Unusable("label is neither true nor false")
    passage = SourcePassage(passage_id_of("followir", document), document)
    yield passage
    if label:
        instruction = text_in(row, "instruction")
        meta = {"instruction": instruction} if instruction else {}
        made = text_sha256(f"{query}\0{instruction}\0{document}")[:12]
        number = f"{row.get('id') or 'row'}-{made}"
        yield SourcePair(number, query, passage.passage_id, meta)


def _triplets(row: Values) -> Iterator[Converted]:
    query = text_in(row, *QUERY)
    if not query:
        raise _Unusable("no query")
    positives = _passages(_first_of(row, POSITIVE))
    negatives = [
        passage
        for name, value in row.items()
        if name.startswith(NEGATIVE)
        for passage in _passages(value)
    ]
    instruction = text_in(row, "instruction")
    made = text_sha256(f"{query}\0{instruction}\0{positives[0].text if positives else ''}")[:16]
    number = str(row.get("query_id") or row.get("id") or f"q-{made}")
    yield from _pair(
        number, query, positives, negatives, {"instruction": instruction} if instruction else {}
    )


def _pair(
    number: str,
    query: str,
    positives: Sequence[SourcePassage],
    negatives: Sequence[SourcePassage],
    meta: dict[str, Any],
) -> Iterator[Converted]:
    """The first positive makes the pair; the others are no negatives, and are left out."""
    if not positives:
        raise _Unusable("no positive passage")
    yield positives[0]
    yield from negatives
    own = positives[0].passage_id
    ids = dict.fromkeys(one.passage_id for one in negatives if one.passage_id != own)
    yield SourcePair(number, query, own, meta, tuple(ids))


def _passages(value: Any) -> list[SourcePassage]:
    """The passages of a text, an object with `text`, or a list of them; empty ones left out."""
    if isinstance(value, list | tuple):
        return [passage for one in value for passage in _passages(one)]
    title = ""
    if isinstance(value, Mapping):
        title, value = str(value.get("title") or "").strip(), value.get("text")
    if not isinstance(value, str) or not value.strip():
        return []
    # by content: the same id may stand for another text in another file
    return [SourcePassage(passage_id_of("p", f"{title}\0{value}"), value.strip(), title)]


def _first_of(row: Values, names: Iterable[str]) -> Any:
    return next((row[name] for name in names if row.get(name)), None)


def _first(file: Path, columns: Mapping[str, str]) -> Values:
    row = next(islice(read_rows(file), 1), None)
    return {} if row is None else renamed(row.values, columns)


def _layout(row: Values, shape: Shape) -> str | None:
    """The layout of a first row; None for none of ours."""
    names = set(row)
    is_of_lists = bool(shape.lists) and names >= {"group_id", "only_query", "positive_passages"}
    if names >= set(shape.columns) or is_of_lists:
        return GROUPS
    if names >= {"only_query", "positive_passages"}:
        return "promptriever"
    if names >= {"query", "instruction", "document", "label"}:
        return "followir"
    if "query" in names and names & {"passage", "passage_id"}:
        return PAIRS
    return "triplets" if names & set(QUERY) and names & set(POSITIVE) else None


PRESETS: Mapping[str, Callable[[Values], Iterator[Converted]]] = {
    "promptriever": _promptriever,
    "followir": _followir,
    "triplets": _triplets,
}
LAYOUTS = (GROUPS, PAIRS, *PRESETS)
