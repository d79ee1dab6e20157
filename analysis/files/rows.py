"""Reading rows of JSONL, CSV and Parquet one at a time, each with its line or why it is bad.

The format is told by the extension (.json holds an object per line too). Every format gives the
same thing: a dictionary per row whose strings can be stored (UTF-8, no NUL byte, no half of a
surrogate pair) or the reason why not.

What would surprise: a line is that of the file where the row begins (JSONL, CSV with its header as
line 1), in Parquet the number of the row. A row that cannot be read does not end the reading.
"""

import csv
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

from db.errors import BadInput

MAX_LINE_BYTES = 64_000_000
PARQUET_BATCH = 2000
SHOWN = 60
Row = dict[str, Any]


class BadValue(ValueError):
    """Why one row cannot be used."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row of a file: its line, its values or the reason why there are none, bytes read so far."""

    line: int
    values: Row
    reason: str | None
    position: int


def read_rows(path: Path) -> Iterator[FileRow]:
    """The rows of a file, in order. Raises BadInput where it is no file of a known format."""
    if path.suffix.lower() not in READERS:
        raise BadInput(
            f"{path.name}: the format is told by the extension: use .jsonl, .csv or .parquet"
        )
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    try:
        yield from READERS[path.suffix.lower()](path)
    except OSError as error:
        raise BadInput(f"{path.name} cannot be read: {error.strerror or error}") from error


def _read_jsonl(path: Path) -> Iterator[FileRow]:
    with path.open("rb") as file:
        refuse_utf16(path, file)
        line = 0
        while raw := file.readline(MAX_LINE_BYTES):
            line += 1
            if len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n"):
                while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                    pass
                yield FileRow(line, {}, f"line longer than {MAX_LINE_BYTES:,} bytes", file.tell())
            elif raw.strip():
                yield _row(line, raw, file.tell())


def _row(line: int, raw: bytes, position: int) -> FileRow:
    try:
        return FileRow(line, parse_json_row(raw), None, position)
    except BadValue as bad:
        return FileRow(line, {}, str(bad), position)


def parse_json_row(raw: bytes) -> Row:
    """One line of JSONL as a dictionary. Raises BadValue with the reason."""
    try:
        words = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{raw[error.start]:02x} at {error.start + 1}"
        raise BadValue(f"not UTF-8 ({byte}): save the file as UTF-8") from error
    try:
        values = json.loads(words, parse_constant=_no_constant, parse_float=_finite)
    except BadValue:
        raise
    except RecursionError as error:
        raise BadValue("invalid JSON: nested too deep") from error
    except ValueError as error:
        if "\x00" in words:
            raise BadValue("NUL byte in the line: take it out") from error
        raise BadValue(f"invalid JSON: {error}: {shown(words.strip())}") from error
    if not isinstance(values, dict):
        raise BadValue(f"invalid JSON: the line is not an object {{…}}: {shown(values)}")
    if b"\\u" in raw:  # only an escape can hide a NUL or half a surrogate pair
        for name, value in values.items():
            require_storable(name, name)
            require_storable(value, name)
    return values


def _no_constant(name: str) -> None:
    raise BadValue(f"invalid JSON: {name} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise BadValue(f"invalid JSON: the number {digits} is too large")
    return value


def _read_csv(path: Path) -> Iterator[FileRow]:
    csv.field_size_limit(MAX_LINE_BYTES)
    with path.open("rb") as binary:
        refuse_utf16(path, binary)
        # surrogateescape keeps bytes that are not UTF-8 visible in the field where they stand
        text = path.open("r", encoding="utf-8-sig", errors="surrogateescape", newline="")
        with text as file:
            reader = csv.reader(file, strict=True)
            header = _csv_header(path, reader)
            size = path.stat().st_size
            while True:
                line, read = reader.line_num + 1, min(size, _bytes_read(file))
                try:
                    fields = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    yield FileRow(line, {}, f"invalid CSV: {error}", read)
                    continue
                if not fields:
                    continue
                try:
                    yield FileRow(line, _csv_values(header, fields), None, read)
                except BadValue as bad:
                    yield FileRow(line, {}, str(bad), read)


def _bytes_read(file: IO[str]) -> int:
    buffer: Any = file.buffer  # type: ignore[attr-defined]
    return int(buffer.tell())


def _csv_header(path: Path, reader: Any) -> list[str]:
    try:
        header: list[str] = next(reader, [])
    except csv.Error as error:
        raise BadInput(f"{path.name}, line 1: invalid CSV: {error}") from error
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise BadInput(f"{path.name}, line 1: two columns are named `{twice[0]}`: rename one")
    return header


def _csv_values(header: list[str], fields: list[str]) -> Row:
    if len(fields) != len(header):
        raise BadValue(f"{len(fields)} fields where the header has {len(header)}")
    values = dict(zip(header, fields, strict=True))
    for name, field in values.items():
        if any("\udc80" <= character <= "\udcff" for character in field):
            raise BadValue(f"not UTF-8 in `{name}`")
        require_storable(field, name)
    return values


def _read_parquet(path: Path) -> Iterator[FileRow]:
    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
    except pyarrow.ArrowException as error:
        raise BadInput(f"{path.name} is not a Parquet file: {error}") from error
    size, rows = path.stat().st_size, max(1, file.metadata.num_rows)
    line = 0
    try:
        for batch in file.iter_batches(batch_size=PARQUET_BATCH):
            for values in _batch_rows(batch):
                line += 1
                position = size * line // rows
                if isinstance(values, str):
                    yield FileRow(line, {}, values, position)
                    continue
                try:
                    yield FileRow(line, storable_row(values), None, position)
                except BadValue as bad:
                    yield FileRow(line, {}, str(bad), position)
    except pyarrow.ArrowException as error:
        raise BadInput(f"{path.name} is damaged after row {line}: {error}") from error


def _batch_rows(batch: Any) -> Iterator[Row | str]:
    """The rows of an Arrow batch; in place of a row that is not UTF-8, the reason."""
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for number in range(batch.num_rows):
            values: Row = {}
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                try:
                    values[name] = column[number].as_py()
                except UnicodeDecodeError:
                    yield f"not UTF-8 in `{name}`"
                    break
            else:
                yield values


def storable_row(values: Row) -> Row:
    """The row with every value as JSON has it. Raises BadValue for text that cannot be stored."""
    return {name: _as_json(value, name) for name, value in values.items()}


def _as_json(value: Any, name: str) -> Any:
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadValue(f"not UTF-8 in `{name}`") from error
    if isinstance(value, str):
        require_storable(value, name)
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _as_json(inner, name) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(inner, name) for inner in value]
    if value is None or isinstance(value, bool | int):
        return value
    return str(value) if isinstance(value, Decimal) else repr(value)


def require_storable(value: Any, name: str) -> None:
    """Raise BadValue where a string in the value holds a NUL or half a surrogate pair."""
    if isinstance(value, str):
        if "\x00" in value:
            raise BadValue(f"NUL byte in `{name}`: {shown(value)}; take it out")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise BadValue(f"lone surrogate U+{ord(value[error.start]):04X} in `{name}`") from error
    elif isinstance(value, dict):
        for key, inner in value.items():
            require_storable(key, name)
            require_storable(inner, name)
    elif isinstance(value, list):
        for inner in value:
            require_storable(inner, name)


def shown(value: Any) -> str:
    """A value as a message shows it."""
    words = repr(value)
    return words if len(words) <= SHOWN else f"{words[:SHOWN]}…"


def refuse_utf16(path: Path, file: IO[bytes]) -> None:
    """Say at once that a whole file is UTF-16; leave the file after a UTF-8 byte order mark."""
    start = file.read(3)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadInput(f"{path.name} is UTF-16, not UTF-8: save it as UTF-8")
    file.seek(3 if start == b"\xef\xbb\xbf" else 0)


READERS = {
    ".jsonl": _read_jsonl,
    ".json": _read_jsonl,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
