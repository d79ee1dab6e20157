"""What a format of published collections is, and what it yields: passages, pairs, rows left out."""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
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
    """A query of the source and the passage that answers it; `negative_ids`: of passages that were
    given as wrong for it."""

    query_id: str
    query: str
    passage_id: str
    meta: dict[str, Any] = field(default_factory=dict)
    negative_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """A row without a usable pair, and why."""

    file: str
    line: int
    reason: str


Converted = SourcePassage | SourcePair | LeftOut


@dataclass(frozen=True)
class SourceInput:
    """An argument of a source: positional if `help` is empty, else an option.

    `is_file`: given to `read` as a Path, else as text. `multiple`: a list of one or more. One that
    is not `required` is given to `read` only where a user gave it.
    """

    name: str
    help: str = ""
    is_file: bool = True
    multiple: bool = False
    required: bool = True


@dataclass(frozen=True)
class SourceKind:
    """A format of collections; `read` takes the inputs by name and yields passages, pairs and rows
    left out, in any order.

    `recognises`: whether a folder is of this format, for `inf import --pairs FOLDER`.
    """

    help: str
    inputs: tuple[SourceInput, ...]
    read: Callable[..., Iterator[Converted]]
    recognises: Callable[[Path], bool] | None = None

    def convert(self, values: dict[str, Any]) -> Iterator[Converted]:
        """The passages, pairs and rows left out of these inputs."""
        return self.read(**{name: value for name, value in values.items() if value is not None})


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
