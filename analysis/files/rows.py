"""Reading rows of JSON, CSV, TSV, Excel and Parquet files one at a time.

The extension gives the format; text formats may be compressed (`.gz`, `.bz2`, `.xz`) and in another
encoding than UTF-8 (`analysis.files.opening`). Every format gives the same thing: a dictionary per
row whose strings can be stored (UTF-8, no NUL byte, no half of a surrogate pair) or the reason why
not.

Note: a line is that of the file where the row begins (CSV with its header as line
1), in Parquet the number of the row. A row that cannot be read does not end the reading.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from analysis.files.delimited import read_csv, read_tsv
from analysis.files.jsonl import parse_json_row, read_jsonl
from analysis.files.opening import UNPACKED, require_file
from analysis.files.row import BadValue, FileRow, Row, require_storable, shown, storable_row
from analysis.files.typed import read_parquet, read_workbook
from db.errors import BadInput

__all__ = [
    "COMPRESSED",
    "READERS",
    "BadValue",
    "FileRow",
    "Row",
    "format_of",
    "parse_json_row",
    "read_rows",
    "require_storable",
    "shown",
    "storable_row",
]

READERS: dict[str, Callable[[Path], Iterator[FileRow]]] = {
    ".jsonl": read_jsonl,
    ".json": read_jsonl,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".xlsx": read_workbook,
    ".parquet": read_parquet,
}
COMPRESSED = (".jsonl", ".json", ".csv", ".tsv")


MTEB_TASK = Path(__file__).with_name("mteb_task.py")
"""The task that a release and a checkpoint carry with their held-out groups; runs without us."""


def format_of(path: Path) -> str | None:
    """The extension that gives the format (`.csv` of `rows.csv.xz`); None for no known one."""
    *_, before, last = "", "", *(suffix.lower() for suffix in path.suffixes)
    if last in UNPACKED:
        return before if before in COMPRESSED else None
    return last if last in READERS else None


def read_rows(path: Path) -> Iterator[FileRow]:
    """The rows of a file, in order. Raises BadInput where it is no file of a known format."""
    extension = format_of(path)
    is_folder = path.is_dir()
    if extension is None or is_folder:
        if is_folder or path.is_symlink():  # name the folder or the broken link, not the extension
            require_file(path)
        raise BadInput(
            f"{path.name}: the extension gives the format",
            f"use {', '.join(READERS)}; the text formats also as {', '.join(UNPACKED)}",
            code="format_unknown",
        )
    require_file(path)
    try:
        yield from READERS[extension](path)
    except OSError as error:
        raise BadInput(
            f"{path.name} cannot be read: {error.strerror or error}",
            "Let the account that runs this read it",
            code="file_unreadable",
        ) from error
