"""Rows of files whose cells have types: Excel workbooks and Parquet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.files.row import BadValue, FileRow, Row, storable_row
from db.errors import BadInput, InfError

PARQUET_BATCH = 2000


def read_workbook(path: Path) -> Iterator[FileRow]:
    """The rows of the first sheet, named by its row 1; `line` is the sheet's row.

    Formulas give the value that was last computed; a whole number that Excel keeps as 3.0 is 3.
    Empty rows and columns without a name are left out. Raises BadInput where the file is no
    workbook or two columns have one name.
    """
    import openpyxl

    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises anything for a file that is no workbook
        raise BadInput(
            f"{path.name} is not an Excel workbook (.xlsx): {error}",
            "Save it as .xlsx again, or as CSV",
            code="workbook_invalid",
        ) from error
    line = 1
    try:
        if not book.worksheets:
            raise BadInput(
                f"{path.name}: the workbook has no sheet",
                "save the rows in a sheet",
                code="workbook_empty",
            )
        rows = book.worksheets[0].iter_rows(values_only=True)
        header = _header(path, next(rows, ()))
        size, total = path.stat().st_size, max(1, book.worksheets[0].max_row or 1)
        for line, cells in enumerate(rows, 2):
            values = {
                name: _cell(cell)
                for name, cell in zip(header, cells, strict=False)
                if name and cell is not None
            }
            if values:
                yield _row(line, values, min(size, size * line // total))
    except (InfError, GeneratorExit):
        raise
    except (
        Exception
    ) as error:  # sheets are parsed while they are read, and openpyxl raises anything
        raise BadInput(
            f"{path.name} is damaged after row {line}: {error}",
            "Download or copy it again",
            code="file_damaged",
        ) from error
    finally:
        book.close()


def _header(path: Path, cells: tuple[Any, ...]) -> list[str]:
    names = ["" if cell is None else str(cell).strip() for cell in cells]
    named = [name for name in names if name]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise BadInput(
            f"{path.name}, row 1: two columns are named `{twice[0]}`",
            "rename one",
            code="column_duplicate",
        )
    return names


def _cell(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read_parquet(path: Path) -> Iterator[FileRow]:
    """The rows; `line` is the number of the row, and one that is not UTF-8 is bad by itself.

    Raises BadInput where the file is damaged.
    """
    import pyarrow
    from pyarrow import parquet

    damaged = (pyarrow.ArrowException, OSError, ValueError, OverflowError)
    try:
        file = parquet.ParquetFile(path)
    except damaged as error:
        raise BadInput(
            f"{path.name} is not a Parquet file: {error}",
            "Download or copy it again",
            code="parquet_invalid",
        ) from error
    size, rows = path.stat().st_size, max(1, file.metadata.num_rows)
    line = 0
    batches = file.iter_batches(batch_size=PARQUET_BATCH)
    while True:
        try:
            batch = next(batches, None)
            found = [] if batch is None else list(_batch_rows(batch))
        except damaged as error:
            raise BadInput(
                f"{path.name} is damaged after row {line}: {error}",
                "Download or copy it again",
                code="file_damaged",
            ) from error
        if batch is None:
            return
        for values in found:
            line += 1
            position = size * line // rows
            if isinstance(values, str):
                yield FileRow(line, {}, values, position)
            else:
                yield _row(line, values, position)


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


def _row(line: int, values: Row, position: int) -> FileRow:
    try:
        return FileRow(line, storable_row(values), None, position)
    except BadValue as bad:
        return FileRow(line, {}, str(bad), position)
