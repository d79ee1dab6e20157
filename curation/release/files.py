"""Writing the files of a release: one per configuration, split and part, a batch at a time.

A thread writes while the next groups are read: compressing and writing release the interpreter
lock. In CSV a text that a spreadsheet would run as a formula gets an apostrophe in front (recorded
in the manifest); the hash is over the original texts.
"""

import hashlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from analysis.files.csv_writer import CsvWriter
from curation.release.rows import LISTS, canonical_line

BATCH = 2000
WAITING = 4
Row = dict[str, Any]


class Pen:
    """One thread that writes, with a few batches waiting for it and no more."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pen")
        self._waiting: deque[Future[None]] = deque()

    def write(self, work: Callable[..., None], *given: Any) -> None:
        """Queue `work` after the earlier calls. Raises what earlier work raised."""
        self._waiting.append(self._thread.submit(work, *given))
        while len(self._waiting) > WAITING:
            self._waiting.popleft().result()

    def finish(self) -> None:
        """Wait until everything is written. Raises what the work raised."""
        while self._waiting:
            self._waiting.popleft().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)


class SplitWriter:
    """The file of one configuration's split in one part; created with the first row."""

    def __init__(
        self,
        folder: Path,
        config: str,
        columns: dict[str, str],
        split: str,
        format: str,
        part: int,
    ) -> None:
        self.config, self.split = config, split
        self._format, self._columns = format, columns
        self.path = file_path(config, split, format)
        self._to = folder / temporary_path(self.path, part)
        self.rows = 0
        self._content = hashlib.sha256()
        self._batch: list[Row] = []
        self._open: Writer | None = None

    def add(self, row: Row, line: bytes = b"") -> None:
        """Add a row, and its canonical line if it counts for the release's identity."""
        self._content.update(line)
        self._batch.append(row)
        self.rows += 1

    def add_all(self, rows: list[Row]) -> None:
        """Add rows that do not count for the release's identity."""
        self._batch += rows
        self.rows += len(rows)

    def flush(self, pen: Pen, *, whole: bool = False) -> None:
        """Hand over the rows if they fill a batch, or all with `whole`."""
        if self._batch and (whole or len(self._batch) >= BATCH):
            pen.write(self._write, self._batch)
            self._batch = []

    def close(self, pen: Pen) -> None:
        """Close the file after all rows handed over."""
        self.flush(pen, whole=True)
        pen.write(self._close)

    @property
    def content_sha256(self) -> str:
        """The sha256 of the given lines, in their order."""
        return self._content.hexdigest()

    def _write(self, rows: list[Row]) -> None:
        if self._open is None:
            self._to.parent.mkdir(parents=True, exist_ok=True)
            self._open = OPENERS[self._format](self._to, self._columns)
        self._open[0](rows)

    def _close(self) -> None:
        if self._open is not None:
            self._open[1]()


def file_path(config: str, split: str, format: str) -> str:
    """The path of a split in a release, with a place for the part's number; `default` in `data`."""
    folder = "data" if config == "default" else config
    return f"{folder}/{split}-{{place:05d}}-of-{{of:05d}}.{format}"


def temporary_path(path: str, part: int) -> str:
    """The path of a part's file until the number of parts is known."""
    return path.replace("-{place:05d}-of-{of:05d}", f".part-{part:05d}")


def content_sha256(parts: list[tuple[str, str, int, str]]) -> str:
    """The identity of a release: over (configuration, split, part, its rows' hash)."""
    listed = "".join("\t".join(map(str, part)) + "\n" for part in sorted(parts))
    return hashlib.sha256(listed.encode()).hexdigest()


Writer = tuple[Callable[[list[Row]], None], Callable[[], None]]


def _parquet(path: Path, columns: dict[str, str]) -> Writer:
    import pyarrow as pa
    from pyarrow import parquet

    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
        **{
            kind: pa.list_(pa.struct([(name, pa.string()) for name in parts]))
            for kind, parts in LISTS.items()
        },
    }
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
    return CsvWriter(file, list(columns), line_end="\r\n").write, file.close


OPENERS = {"parquet": _parquet, "jsonl": _jsonl, "csv": _csv}
