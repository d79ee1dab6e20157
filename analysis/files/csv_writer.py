"""The one writer of CSV: whatever a spreadsheet would run as a formula is text.

A text that begins with a sign of a formula gets an apostrophe in front, and so does one that begins
with apostrophes before such a sign: the apostrophe can be taken off again exactly
(`with_formulas`). Numbers stay numbers. `inf import` takes it off where a file lies in a release
whose manifest says `formula_guard`; other CSV files are read as they are.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

# A spreadsheet takes the full-width forms for signs, and leaves tabs and line breaks out.
GUARDED = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
MANIFEST = "release.json"


def without_formulas(text: str) -> str:
    """A text that a spreadsheet does not run: an apostrophe before the start of a formula."""
    return f"'{text}" if GUARDED.match(text) else text


def with_formulas(text: str) -> str:
    """The text that `without_formulas` made this one of."""
    return text[1:] if text.startswith("'") and GUARDED.match(text) else text


def is_guarded(path: Path) -> bool:
    """Whether a CSV file is part of a release in which texts are guarded, by its manifest."""
    for folder in list(path.absolute().parents)[:3]:
        manifest = folder / MANIFEST
        if manifest.is_file():
            try:
                found = json.loads(manifest.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return False  # not a manifest of ours
            return isinstance(found, dict) and found.get("formula_guard") is True
    return False


class CsvWriter:
    """Writes a header and rows to an open text file."""

    def __init__(self, file: TextIO, columns: Sequence[str], *, line_end: str = "\n") -> None:
        self._columns = columns
        self._writer = csv.writer(file, lineterminator=line_end)
        self._writer.writerow(map(without_formulas, columns))

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows; a column that a row lacks is an empty cell."""
        self._writer.writerows([_cell(row.get(name)) for name in self._columns] for row in rows)


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """The rows as CSV, by default with the union of their columns in the order of appearance."""
    if columns is None:
        columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    CsvWriter(text, columns).write(rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """A cell: texts guarded, a list as its parts with spaces, None and NaN empty."""
    if isinstance(value, list | tuple):
        value = " ".join(str(part) for part in value)
    if isinstance(value, str):
        return without_formulas(value)
    return "" if value is None or value != value else value
