"""Rows of a Parquet file; a row that is not UTF-8 is bad by itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.files.row import BadValue, FileRow, Row, storable_row
from db.errors import BadInput

PARQUET_BATCH = 2000


def read_parquet(path: Path) -> Iterator[FileRow]:
    """The rows; `line` is the number of the row. Raises BadInput where the file is damaged."""
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
