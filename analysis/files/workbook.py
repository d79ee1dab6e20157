"""Rows of an Excel workbook: its first sheet, with the names of the columns in row 1."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.files.row import BadValue, FileRow, storable_row
from db.errors import BadInput


def read_workbook(path: Path) -> Iterator[FileRow]:
    """The rows; `line` is the sheet's row. Formulas give the value that was last computed.

    A whole number that Excel keeps as 3.0 is 3. Empty rows and columns without a name are left out.
    Raises BadInput where the file is no workbook or two columns have one name.
    """
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise BadInput(f"{path.name} is not an Excel workbook (.xlsx): {error}") from error
    try:
        rows = book.worksheets[0].iter_rows(values_only=True)
        header = _header(path, next(rows, ()))
        size, total = path.stat().st_size, max(1, book.worksheets[0].max_row or 1)
        for line, cells in enumerate(rows, 2):
            values = {
                name: _cell(cell)
                for name, cell in zip(header, cells, strict=False)
                if name and cell is not None
            }
            if not values:
                continue
            position = min(size, size * line // total)
            try:
                yield FileRow(line, storable_row(values), None, position)
            except BadValue as bad:
                yield FileRow(line, {}, str(bad), position)
    finally:
        book.close()


def _header(path: Path, cells: tuple[Any, ...]) -> list[str]:
    names = ["" if cell is None else str(cell).strip() for cell in cells]
    named = [name for name in names if name]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise BadInput(f"{path.name}, row 1: two columns are named `{twice[0]}`: rename one")
    return names


def _cell(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
