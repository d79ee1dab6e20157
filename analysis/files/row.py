"""One row of a file: its values, where it stands, and why it cannot be used. Pure."""

from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

SHOWN = 60
MAX_LINE_BYTES = 64_000_000
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


def not_utf8(what: str, byte: int, place: int) -> str:
    """The reason of a row that is not UTF-8: the first wrong byte, its place, and the remedy."""
    return f"{what} (byte 0x{byte:02x} at {place}): save the file as UTF-8"


def shown(value: Any) -> str:
    """A value as a message shows it."""
    words = repr(value)
    return words if len(words) <= SHOWN else f"{words[:SHOWN]}…"


def text_in(row: dict[str, Any], name: str) -> str:
    """A text that is there and not empty. Raises BadValue."""
    if name not in row:
        present = ", ".join(f"`{each}`" for each in row) or "nothing"
        raise BadValue(f"no `{name}`: the row has {present}")
    value = row[name]
    if not isinstance(value, str):
        raise BadValue(f"`{name}` is {shown(value)}, not a text: write it in quotes")
    return require_text(value, name)


def require_text(value: str, name: str) -> str:
    """The text. Raises BadValue for an empty one."""
    if not value.strip():
        raise BadValue(f"empty `{name}`: {shown(value)}")
    return value
