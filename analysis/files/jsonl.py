"""Rows of JSON: an object per line, an array of objects, or one object that holds such an array."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.files.opening import CHECKED_BYTES, Source, opened
from analysis.files.row import (
    MAX_LINE_BYTES,
    BadValue,
    FileRow,
    Row,
    not_utf8,
    require_storable,
    shown,
)
from db.errors import BadInput

MAX_ARRAY_BYTES = 1_000_000_000  # an array is read whole: its rows have no lines of their own
WHITE = " \t\r\n"
RECORDS = ("records", "rows", "data", "tasks", "items", "examples")


def read_jsonl(path: Path) -> Iterator[FileRow]:
    """The rows, one at a time; `line` is where a row begins.

    A `.json` file that begins with `[` is an array and is held in memory; one that is a single
    object is a row, or where a member of RECORDS is an array, its elements (`line` is then the
    number of the element). Raises BadInput where an array is broken or too large: where the element
    after a broken one begins is unknown.
    """
    is_json = ".json" in (suffix.lower() for suffix in path.suffixes[-2:])
    if is_json and (rows := _of_one_object(path)) is not None:
        for number, values in enumerate(rows, 1):
            try:
                yield FileRow(number, _object(values, "the element", may_escape=True), None, 0)
            except BadValue as bad:
                yield FileRow(number, {}, str(bad), 0)
        return
    with opened(path) as source:
        if is_json and source.plain.peek().lstrip()[:1] == b"[":
            yield from _read_array(source)
        else:
            yield from _read_lines(source)


def _of_one_object(path: Path) -> list[Any] | None:
    """The rows of a file that is one object; None where it is anything else, as JSON lines."""
    with opened(path) as source:
        if source.plain.peek().lstrip()[:1] != b"{":
            return None
        raw = source.plain.readline(MAX_LINE_BYTES)
        try:
            parse_json_row(raw)
        except BadValue:
            is_line = False
        else:
            is_line = bool(raw.strip())
        rest = source.plain.read(CHECKED_BYTES if is_line else MAX_ARRAY_BYTES)
    if is_line and rest.strip():
        return None
    try:
        whole = parse_json_row(raw + rest)
    except BadValue:
        return None
    for name in RECORDS:
        if isinstance(whole.get(name), list) and len(whole) == 1 + sum(
            not isinstance(value, list) for value in whole.values()
        ):
            found: list[Any] = whole[name]
            return found
    return [whole]


def _read_lines(source: Source) -> Iterator[FileRow]:
    line = 0
    while raw := source.plain.readline(MAX_LINE_BYTES):
        line += 1
        if len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n"):
            while (rest := source.plain.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            reason = f"line longer than {MAX_LINE_BYTES:,} bytes"
            yield FileRow(line, {}, reason, source.position())
        elif raw.strip():
            yield _row(line, raw, source.position())


def _row(line: int, raw: bytes, position: int) -> FileRow:
    try:
        return FileRow(line, parse_json_row(raw), None, position)
    except BadValue as bad:
        return FileRow(line, {}, str(bad), position)


def parse_json_row(raw: bytes) -> Row:
    """One line of JSONL as a dictionary. Raises BadValue with the reason."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        reason = not_utf8("not UTF-8", raw[error.start], error.start + 1)
        raise BadValue(reason) from error
    try:
        values = DECODER.decode(text)
    except BadValue:
        raise
    except RecursionError as error:
        raise BadValue("invalid JSON: nested too deep") from error
    except ValueError as error:
        if "\x00" in text:
            raise BadValue("NUL byte in the line: take it out") from error
        raise BadValue(f"invalid JSON: {error}: {shown(text.strip())}") from error
    return _object(values, "the line", may_escape=b"\\u" in raw)


def _object(values: Any, what: str, *, may_escape: bool) -> Row:
    if not isinstance(values, dict):
        raise BadValue(f"invalid JSON: {what} is not an object {{…}}: {shown(values)}")
    if may_escape:  # only an escape can hide a NUL or half a surrogate pair
        for name, value in values.items():
            require_storable(name, name)
            require_storable(value, name)
    return values


def _read_array(source: Source) -> Iterator[FileRow]:
    name, raw = source.path.name, source.plain.read(MAX_ARRAY_BYTES + 1)
    if len(raw) > MAX_ARRAY_BYTES:
        raise BadInput(
            f"{name}: a JSON array of more than {MAX_ARRAY_BYTES:,} bytes",
            "save it as JSONL, an object per line",
            code="json_array_too_large",
        )
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{name}, line {line}: not UTF-8", "save the file as UTF-8", code="text_not_utf8"
        ) from error
    at, line, size = text.index("[") + 1, 1 + text.count("\n", 0, text.index("[")), len(text)
    before = at
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "]" and _only_white(text, at + 1):
            return
        line, before = line + text.count("\n", before, at), at
        values, at = _element(name, text, at, line)
        position = len(raw) * at // size
        try:
            yield FileRow(line, _object(values, "the element", may_escape=True), None, position)
        except BadValue as bad:
            yield FileRow(line, {}, str(bad), position)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "]":
            raise BadInput(
                f"{name}, line {line}: invalid JSON: no `,` or `]` after this element",
                "correct that line",
                code="json_invalid",
            )


def _element(name: str, text: str, at: int, line: int) -> tuple[Any, int]:
    """The element that begins at `at`, and where it ends."""
    try:
        return DECODER.raw_decode(text, at)
    except BadValue as bad:
        raise BadInput(
            f"{name}, line {line}: {bad}", "correct that line", code="json_invalid"
        ) from bad
    except RecursionError as error:
        raise BadInput(
            f"{name}, line {line}: invalid JSON: nested too deep",
            "leave out what is nested",
            code="json_nested_too_deep",
        ) from error
    except ValueError as error:
        raise BadInput(
            f"{name}, line {line}: invalid JSON: {error}", "correct that line", code="json_invalid"
        ) from error


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in WHITE:
        at += 1
    return at


def _only_white(text: str, at: int) -> bool:
    return not text[at:].strip()


def _no_constant(name: str) -> None:
    raise BadValue(f"invalid JSON: {name} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise BadValue(f"invalid JSON: the number {digits} is too large")
    return value


def _keys_once(pairs: list[tuple[str, Any]]) -> Row:
    """Refuse an object with a key that is there twice: json keeps the last one silently."""
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadValue(f"invalid JSON: the key `{twice}` stands twice in one object")
    return values


DECODER = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_keys_once
)
