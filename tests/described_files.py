"""What a file of a release is, whatever version of a library wrote it: read by the code of an
earlier commit, too (`tests/data/release_before/formats.py`), so it imports nothing of ours.

Parquet is its schema (names, types, nullability, what the Hub's viewer reads of the columns) and of
every row group the compression and the rows: the bytes also hold the version of the library. CSV
and JSON lines are their bytes. The models of a row of provenance are read as an object: PostgreSQL
gives the keys of JSON in an order of its own.
"""

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import yaml

# What the card and the two files that describe a release say is of the version that writes it.
OF_THE_VERSION = {"README.md", "release.json", "croissant.json"}


def files_of(folder: Path) -> dict[str, Any]:
    """By path below the folder what each file is; those of the version by their name alone."""
    return {
        path.relative_to(folder).as_posix(): described(
            path.relative_to(folder).as_posix(), path.read_bytes()
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def of_repository(files: dict[str, bytes]) -> dict[str, Any]:
    """The same of a repository; of its card, which the Hub reads the layout from, the configs."""
    found = {name: described(name, data) for name, data in sorted(files.items())}
    found["README.md"] = yaml.safe_load(files["README.md"].decode().split("---\n")[1])["configs"]
    return found


def described(name: str, data: bytes) -> Any:
    if name in OF_THE_VERSION:
        return None
    is_provenance = name.startswith("provenance/")
    if name.endswith(".parquet"):
        return _of_parquet(data)
    if not is_provenance:
        return hashlib.sha256(data).hexdigest()
    text = data.decode("utf-8")
    rows = (
        list(csv.DictReader(io.StringIO(text)))
        if name.endswith(".csv")
        else [json.loads(line) for line in text.splitlines()]
    )
    return [list(rows[0]), _sha256(rows)]


def _of_parquet(data: bytes) -> dict[str, Any]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(data))
    kept = {
        key.decode(): value.decode()
        for key, value in (file.metadata.metadata or {}).items()
        if key != b"ARROW:schema"  # the schema again, as bytes of the library
    }
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    return {
        "schema": [[field.name, str(field.type), field.nullable] for field in file.schema_arrow],
        "metadata": kept,
        "row_groups": [
            {
                "rows": group.num_rows,
                "compression": sorted(
                    {group.column(place).compression for place in range(group.num_columns)}
                ),
                "sha256": _sha256(file.read_row_group(number).to_pylist()),
            }
            for number, group in enumerate(groups)
        ],
    }


def _sha256(rows: list[dict[str, Any]]) -> str:
    for row in rows:
        if "models" in row:
            row["models"] = json.dumps(json.loads(row["models"]), sort_keys=True)
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()
