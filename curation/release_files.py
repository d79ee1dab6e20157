"""Writing the files of a release: one per split, a batch in memory at a time, hashed on the way."""

import hashlib
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from curation.release_rows import KINDS, TYPES, canonical_line

FORMATS = ("parquet", "jsonl")
BATCH = 5000
Row = dict[str, Any]


class TextCounts:
    """What Table 1 counts of one kind of text: how many, how many different, words on average."""

    def __init__(self) -> None:
        self.number = 0
        self.words = 0
        self._digests = array("Q")

    def add(self, text: str) -> None:
        self.number += 1
        self.words += len(text.split())
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        self._digests.append(int.from_bytes(digest, "big"))

    def summary(self) -> dict[str, Any]:
        """`mean_words` is None where there is no text."""
        import numpy as np

        return {
            "number": self.number,
            "different": int(np.unique(np.frombuffer(self._digests, dtype=np.uint64)).size)
            if self.number
            else 0,
            "mean_words": self.words / self.number if self.number else None,
        }


class SplitWriter:
    """One split's file in `folder`/data. `close` gives what the manifest says of it."""

    def __init__(self, folder: Path, split: str, format: str) -> None:
        self.split, self.format = split, format
        self.path = folder / "data" / f"{split}-00000-of-00001.{format}"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.rows = 0
        self._content = hashlib.sha256()
        self._batch: list[Row] = []
        self._write, self._close = (_parquet if format == "parquet" else _jsonl)(self.path)

    def add(self, row: Row) -> None:
        """Take one row."""
        self._content.update(canonical_line(row))
        self._batch.append(row)
        self.rows += 1
        if len(self._batch) >= BATCH:
            self._flush()

    def close(self) -> None:
        """Write what is left and close the file."""
        self._flush()
        self._close()

    @property
    def content_sha256(self) -> str:
        """The sha256 of the split's rows as JSONL, in their order."""
        return self._content.hexdigest()

    def _flush(self) -> None:
        if self._batch:
            self._write(self._batch)
            self._batch = []


def content_sha256(splits: dict[str, str]) -> str:
    """The identity of a release: over its splits, by name, each with the hash of its rows."""
    told = "".join(f"{name}\t{splits[name]}\n" for name in sorted(splits))
    return hashlib.sha256(told.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def count_texts(counts: dict[str, TextCounts], row: Row) -> None:
    """Count the row's instructions, queries and passages."""
    for kind, columns in KINDS.items():
        for column in columns:
            counts[kind].add(row[column])


Writer = tuple[Callable[[list[Row]], None], Callable[[], None]]


def _parquet(path: Path) -> Writer:
    import pyarrow as pa
    from pyarrow import parquet

    types = {"string": pa.string(), "int64": pa.int64(), "bool": pa.bool_()}
    schema = pa.schema([(name, types[kind]) for name, kind in TYPES.items()])
    writer = parquet.ParquetWriter(path, schema)

    def write(rows: list[Row]) -> None:
        columns = {name: [row[name] for row in rows] for name in TYPES}
        writer.write_table(pa.Table.from_pydict(columns, schema=schema))

    return write, writer.close


def _jsonl(path: Path) -> Writer:
    file = path.open("wb")

    def write(rows: list[Row]) -> None:
        file.writelines(canonical_line(row) for row in rows)

    return write, file.close
