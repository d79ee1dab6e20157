"""The output of an adapter: passages, pairs, and rows it leaves out with the reason."""

import html
import re
from dataclasses import dataclass, field
from typing import Any

from db.corpus.datasets import text_sha256

_BREAK = re.compile(r"<\s*(?:br|/p|/div|/li|/tr|/h\d|/pre)\b[^>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[/!]?[a-zA-Z][^<>]*>|<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class SourcePassage:
    """A passage of the source."""

    passage_id: str
    text: str
    title: str = ""
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SourcePair:
    """A query of the source and the passage that answers it."""

    query_id: str
    query: str
    passage_id: str
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LeftOut:
    """A row without a usable pair, and why."""

    file: str
    line: int
    reason: str


Converted = SourcePassage | SourcePair | LeftOut


def passage_id_of(prefix: str, text: str) -> str:
    """An id for a text that has none: the same text, the same id."""
    return f"{prefix}-{text_sha256(text)[:16]}"


def without_tags(text: str) -> str:
    """HTML or SGML as plain text: tags gone, entities read, line breaks where blocks ended."""
    plain = html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))
    lines = (re.sub(r"[ \t\xa0]+", " ", line).strip() for line in plain.splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def text_in(row: dict[str, Any], *names: str) -> str:
    """The first of these columns that holds text, stripped; "" if none does."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""
