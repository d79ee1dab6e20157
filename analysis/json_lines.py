"""JSONL as analysis reads it: every line that is not blank, as an object or as what is wrong."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SHOWN = 60


class BadLine(Exception):
    """What is wrong with a line or a value, with the value and what to write instead."""


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | BadLine]]:
    """Number (from 1) and object of each line; a BadLine in the place of one that is none."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if raw.strip():
                try:
                    yield number, _object(raw, first=number == 1)
                except BadLine as bad:
                    yield number, bad


def text_in(row: dict[str, Any], name: str) -> str:
    """A text that is there, not empty, and can be stored. Raises BadLine."""
    if name not in row:
        told = ", ".join(f"`{each}`" for each in row) or "nothing"
        raise BadLine(f"no `{name}`: the row has {told}")
    value = row[name]
    if not isinstance(value, str):
        raise BadLine(f"`{name}` is {shown(value)}, not a text: write it in quotes")
    return require_text(value, name)


def require_text(value: str, name: str) -> str:
    """The text. Raises BadLine for an empty one, a NUL byte or half a surrogate pair."""
    if not value.strip():
        raise BadLine(f"empty `{name}`: {shown(value)}")
    if "\x00" in value:
        raise BadLine(f"NUL byte in `{name}`: {shown(value)}; take it out")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(value[error.start]):04X}"
        raise BadLine(f"half a character ({half}) in `{name}`: save the file as UTF-8") from error
    return value


def shown(value: Any) -> str:
    """A value as a message shows it."""
    words = repr(value)
    return words if len(words) <= SHOWN else f"{words[:SHOWN]}…"


def _object(raw: bytes, *, first: bool) -> dict[str, Any]:
    try:
        words = raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{raw[error.start]:02x} at {error.start + 1}"
        raise BadLine(f"not UTF-8 ({byte}): save the file as UTF-8") from error
    try:
        row = json.loads(words)
    except (ValueError, RecursionError) as error:
        if "\x00" in words:
            raise BadLine("NUL byte in the line: take it out") from error
        raise BadLine(f"no JSON: {error}: {shown(words.strip())}") from error
    if not isinstance(row, dict):
        raise BadLine(f"no JSON object {{…}}: {shown(row)}")
    return row
