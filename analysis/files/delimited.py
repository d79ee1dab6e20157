"""Rows of CSV and TSV: commas, semicolons (as spreadsheets in much of Europe write) or tabs."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from analysis.files.csv_writer import is_guarded, with_formulas
from analysis.files.opening import Source, opened
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

DELIMITERS = ",;\t"
_ESCAPED = re.compile("[\udc80-\udcff]")  # a byte that is not UTF-8, as surrogateescape keeps it


def read_csv(path: Path) -> Iterator[FileRow]:
    """The rows; `line` is where a row begins, with the header as line 1.

    The delimiter is the one of `,`, `;` and tab that the header line has most of (a comma where
    none stands there). The apostrophes of a release of ours are taken off
    (`analysis.files.csv_writer`). Raises BadInput where the header cannot be used.
    """
    csv.field_size_limit(MAX_LINE_BYTES)
    with opened(path) as source:
        yield from _read(source, None)


def read_tsv(path: Path) -> Iterator[FileRow]:
    """The rows of a file with tabs; as `read_csv`."""
    csv.field_size_limit(MAX_LINE_BYTES)
    with opened(path) as source:
        yield from _read(source, "\t")


def read_headless(path: Path, names: Sequence[str]) -> Iterator[FileRow]:
    """The rows of a file without a header, as MS MARCO and TREC publish: a name for each field.

    Fields are separated by tabs, or by any white space where a line has no tab; quotes are text.
    """
    with opened(path) as source:
        for line, raw in enumerate(iter(lambda: source.plain.readline(MAX_LINE_BYTES), b""), 1):
            position = source.position()
            try:
                text = raw.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                reason = not_utf8("not UTF-8", raw[error.start], error.start + 1)
                yield FileRow(line, {}, reason, position)
                continue
            if not text.strip():
                continue
            fields = text.split("\t") if "\t" in text else text.split()
            if len(fields) != len(names):
                reason = f"{len(fields)} fields, not {len(names)}: {', '.join(names)}"
                yield FileRow(line, {}, reason, position)
            elif "\x00" in text:
                yield FileRow(line, {}, f"NUL byte in the line: {shown(text)}", position)
            else:
                yield FileRow(line, dict(zip(names, fields, strict=True)), None, position)


def _read(source: Source, delimiter: str | None) -> Iterator[FileRow]:
    if delimiter is None:
        delimiter = _delimiter(source)
    # surrogateescape keeps bytes that are not UTF-8 visible in the field where they stand
    text = io.TextIOWrapper(
        source.plain,
        encoding="utf-8",
        errors="surrogateescape",
        newline="",
    )
    try:
        reader = csv.reader(text, strict=True, delimiter=delimiter)
        header, guarded = _header(source.path, reader), is_guarded(source.path)
        while True:
            line, position = reader.line_num + 1, source.position()
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield FileRow(line, {}, f"invalid CSV: {error}", position)
                continue
            if not fields:
                continue
            try:
                values = _values(header, fields)
                if guarded:
                    values = {name: with_formulas(field) for name, field in values.items()}
                yield FileRow(line, values, None, position)
            except BadValue as bad:
                yield FileRow(line, {}, str(bad), position)
    finally:
        text.detach()  # the file is closed by who opened it


def _delimiter(source: Source) -> str:
    first = source.plain.peek().partition(b"\n")[0].decode("utf-8", "replace")
    return max(DELIMITERS, key=first.count)  # the first of equals: a comma


def _header(path: Path, reader: Any) -> list[str]:
    try:
        header: list[str] = next(reader, [])
    except csv.Error as error:
        raise BadInput(
            f"{path.name}, line 1: invalid CSV: {error}", "correct that line", code="csv_invalid"
        ) from error
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise BadInput(
            f"{path.name}, line 1: two columns are named `{twice[0]}`",
            "rename one",
            code="column_duplicate",
        )
    return header


def _values(header: list[str], fields: list[str]) -> Row:
    if len(fields) != len(header):
        raise BadValue(f"{len(fields)} fields where the header has {len(header)}")
    values = dict(zip(header, fields, strict=True))
    for name, field in values.items():
        if wrong := _ESCAPED.search(field):
            byte, place = ord(wrong.group()) & 0xFF, wrong.start() + 1
            raise BadValue(not_utf8(f"not UTF-8 in `{name}`", byte, place))
        require_storable(field, name)
    return values
