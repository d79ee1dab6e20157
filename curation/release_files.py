"""Writing the files of a release: one per configuration and split, a batch in memory at a time.

In CSV a text that a spreadsheet would run as a formula gets an apostrophe in front (the manifest
says so); the hash is over the texts as they are.
"""

import csv
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from curation.release_rows import CONFIGS, canonical_line, without_formulas

FORMATS = ("parquet", "jsonl", "csv")
BATCH = 2000
Row = dict[str, Any]


class SplitWriter:
    """The file of one configuration's split below `folder`; made with the first row."""

    def __init__(self, folder: Path, config: str, split: str, format: str) -> None:
        self.config, self.split, self.format = config, split, format
        self.path = folder / file_path(config, split, format)
        self.rows = 0
        self._content = hashlib.sha256()
        self._batch: list[Row] = []
        self._open: Writer | None = None

    def add(self, row: Row, line: bytes = b"") -> None:
        """Take one row, and its canonical line where it counts for the release's identity."""
        self._content.update(line)
        self._batch.append(row)
        self.rows += 1
        if len(self._batch) >= BATCH:
            self._flush()

    def add_all(self, rows: list[Row]) -> None:
        """Take rows that do not count for the release's identity."""
        self._batch += rows
        self.rows += len(rows)
        if len(self._batch) >= BATCH:
            self._flush()

    def close(self) -> None:
        """Write what is left and close the file."""
        self._flush()
        if self._open is not None:
            self._open[1]()

    @property
    def content_sha256(self) -> str:
        """The sha256 of the lines that were given, in their order."""
        return self._content.hexdigest()

    def _flush(self) -> None:
        if not self._batch:
            return
        if self._open is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open = OPENERS[self.format](self.path, CONFIGS[self.config])
        self._open[0](self._batch)
        self._batch = []


def file_path(config: str, split: str, format: str) -> str:
    """Where a split lies in a release: the default configuration under `data`."""
    folder = "data" if config == "default" else config
    return f"{folder}/{split}-00000-of-00001.{format}"


def content_sha256(parts: dict[tuple[str, str], str]) -> str:
    """The identity of a release: over its configurations and splits, each with its rows' hash."""
    told = "".join(
        f"{config}\t{split}\t{parts[config, split]}\n" for config, split in sorted(parts)
    )
    return hashlib.sha256(told.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


Writer = tuple[Callable[[list[Row]], None], Callable[[], None]]


def _parquet(path: Path, columns: dict[str, str]) -> Writer:
    import pyarrow as pa
    from pyarrow import parquet

    types = {"string": pa.string(), "int64": pa.int64(), "bool": pa.bool_()}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    writer = parquet.ParquetWriter(path, schema)

    def write(rows: list[Row]) -> None:
        lists = {name: [row[name] for row in rows] for name in columns}
        writer.write_table(pa.Table.from_pydict(lists, schema=schema))

    return write, writer.close


def _jsonl(path: Path, columns: dict[str, str]) -> Writer:
    file = path.open("wb")

    def write(rows: list[Row]) -> None:
        file.writelines(map(canonical_line, rows))

    return write, file.close


def _csv(path: Path, columns: dict[str, str]) -> Writer:
    file = path.open("w", encoding="utf-8", newline="")
    writer = csv.writer(file)
    writer.writerow(columns)

    def write(rows: list[Row]) -> None:
        writer.writerows(
            [without_formulas(row[name]) if kind == "string" else row[name] for name, kind in names]
            for row in rows
        )

    names = list(columns.items())
    return write, file.close


OPENERS = {"parquet": _parquet, "jsonl": _jsonl, "csv": _csv}
