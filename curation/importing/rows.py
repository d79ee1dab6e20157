"""One row of an import: the required content of passages and pairs, and bad rows. Pure."""

import hashlib
import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from analysis.files.rows import BadValue
from db.corpus.datasets import pair_content, passage_content, text_sha256

MAX_TEXT_BYTES = 4_000_000
MAX_ID_BYTES = 512
# Names of a column of given negatives; one with numbers is a column as any other.
NEGATIVES = ("negatives", "negative", "negative_passages")
_PASSAGES = (str, list, tuple, dict, type(None))
ID_DIGITS = 16  # 64 bits of sha256: no two of a billion texts meet by chance (p < 0.03)


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A passage of a row. `inline`: it was part of a pair, without title and meta."""

    external_id: str
    text: str
    title: str
    meta: dict[str, Any]
    sha256: str
    inline: bool = False

    @property
    def content(self) -> str:
        return passage_content(sha256=self.sha256, title=self.title, meta=self.meta)


@dataclass(frozen=True, slots=True)
class PairRow:
    """A pair of a row, with its passage if that is inline, and the negatives of the row.

    `negative_ids`: of all of them; the negatives of a pair are those of every row about it.
    """

    external_id: str
    query: str
    passage_id: str
    passage: PassageRow | None
    meta: dict[str, Any]
    negatives: tuple[PassageRow, ...] = ()
    negative_ids: tuple[str, ...] = ()

    @property
    def inline(self) -> tuple[PassageRow, ...]:
        """The passages that the row holds itself."""
        return (*([] if self.passage is None else [self.passage]), *self.negatives)

    @property
    def content(self) -> str:
        return pair_content(query=self.query, passage_external_id=self.passage_id, meta=self.meta)


def parse_passage(values: dict[str, Any]) -> PassageRow:
    """A row of a file of passages. Raises BadValue with the reason."""
    external_id = _identifier(values, "passage_id")
    text = _text(values, "text", "empty text")
    title = values.get("title") or ""
    if not isinstance(title, str):
        raise BadValue(f"`title` is {_kind(title)}, not text")
    _require_short(title, "title")
    meta = _meta(values, {"passage_id", "text", "title"})
    return PassageRow(external_id, text, title, meta, text_sha256(text))


def parse_pair(values: dict[str, Any], *, made: Collection[str] = ()) -> PairRow:
    """A row of a file of pairs. Raises BadValue with the reason.

    Ids whose columns are in `made` (the file lacks them) are derived from the content: the same
    texts get the same ids in every file.
    """
    external_id = "" if "query_id" in made else _identifier(values, "query_id")
    query = _text(values, "query", "no query")
    text = None if values.get("passage") is None else _text(values, "passage", "empty text")
    if "passage_id" not in made or text is None:
        passage_id = _identifier(values, "passage_id")
    else:
        passage_id = f"p-{text_sha256(text)[:ID_DIGITS]}"
    if not external_id:
        both = hashlib.sha256(f"{text_sha256(query)} {passage_id}".encode()).hexdigest()
        external_id = f"q-{both[:ID_DIGITS]}"
    inline = None
    if text is not None:
        inline = PassageRow(passage_id, text, "", {}, text_sha256(text), inline=True)
    negatives = {row.external_id: row for name in NEGATIVES for row in _passages(values, name)}
    named = values.get("negative_ids") or ()
    if isinstance(named, str) or not all(isinstance(one, str) for one in named):
        raise BadValue("`negative_ids` is not a list of ids")
    ids = dict.fromkeys((*negatives, *named))
    if passage_id in ids or any(
        text_sha256(text or "") == row.sha256 for row in negatives.values()
    ):
        raise BadValue("one of the negatives is the passage itself")
    known = {"query_id", "query", "passage_id", "passage", "negative_ids"}
    known |= {name for name in NEGATIVES if isinstance(values.get(name), _PASSAGES)}
    meta = _meta(values, known)
    return PairRow(
        external_id, query, passage_id, inline, meta, tuple(negatives.values()), tuple(ids)
    )


def _passages(values: dict[str, Any], column: str) -> list[PassageRow]:
    """The passages of a column: a text, an object with `text`, or a list of them (in a file without
    lists, as JSON); empty ones are left out."""
    value = values.get(column)
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError):  # a text may begin with a bracket
            value = json.loads(value)
    found = []
    for one in value if isinstance(value, list | tuple) else [value]:
        title = ""
        if isinstance(one, Mapping):
            title, one = str(one.get("title") or "").strip(), one.get("text")
        if isinstance(one, str) and one.strip():
            _require_short(one, column)
            key = text_sha256(f"{title}\0{one}" if title else one)[:ID_DIGITS]
            found.append(PassageRow(f"p-{key}", one, title, {}, text_sha256(one), inline=True))
        elif one is not None and not isinstance(one, str) and isinstance(value, list | tuple):
            raise BadValue(f"`{column}` holds {_kind(one)}, not text")
    return found


def _identifier(values: dict[str, Any], column: str) -> str:
    value = values.get(column)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise BadValue(f"no {column}")
    if not isinstance(value, str):
        raise BadValue(f"`{column}` is {_kind(value)}, not text or a whole number")
    if len(value.encode()) > MAX_ID_BYTES:
        raise BadValue(f"`{column}` is longer than {MAX_ID_BYTES} bytes")
    return value


def _text(values: dict[str, Any], column: str, missing: str) -> str:
    value = values.get(column)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise BadValue(f"{missing} (`{column}` is {'missing' if value is None else 'empty'})")
    if not isinstance(value, str):
        raise BadValue(f"`{column}` is {_kind(value)}, not text")
    _require_short(value, column)
    return value


def _require_short(text: str, column: str) -> None:
    # a character takes at most four bytes: most texts are known to be short without encoding them
    if len(text) * 4 > MAX_TEXT_BYTES and len(text.encode()) > MAX_TEXT_BYTES:
        raise BadValue(
            f"text too long: `{column}` has {len(text.encode()):,} bytes, the maximum is "
            f"{MAX_TEXT_BYTES:,}"
        )


def _meta(values: dict[str, Any], known: set[str]) -> dict[str, Any]:
    meta = {key: value for key, value in values.items() if key not in known}
    for key, value in meta.items():
        if isinstance(value, str):
            _require_short(value, key)
    return meta


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", dict: "an object"}
    return names.get(type(value), "a list")
