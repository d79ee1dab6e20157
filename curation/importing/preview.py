"""Preview of an import: its effect, before anything is stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from curation.importing.checking import (
    Checked,
    Meter,
    Reading,
    check_files,
    good_rows,
    import_files,
)
from curation.importing.rows import PairRow, PassageRow
from db.corpus.datasets import find_dataset
from db.errors import BadRow
from db.store.store import Store

PREVIEW_ROWS = 20


@dataclass(frozen=True)
class ImportPreview:
    """The effect of an import: its first rows, their number, and the rows that would be refused."""

    pairs: int
    passages: int
    rows: list[dict[str, str]]
    bad: list[BadRow]


def preview_import(
    store: Store,
    *,
    name: str,
    pairs: Path,
    passages: Path | None = None,
    columns: Mapping[str, str] | None = None,
) -> ImportPreview:
    """Check every row as an import would, and store nothing.

    `rows` are the first `PREVIEW_ROWS` good pairs, each with its passage if the files hold it.
    Raises BadInput if a file cannot be read or lacks a column.
    """
    files = import_files(pairs, passages, columns)
    with store.read() as session:
        dataset = find_dataset(session, name.strip())
        dataset_id = dataset.id if dataset else None
    readings = files.readings()
    checked = check_files(store, dataset_id, readings, Meter([], None))
    good = good_rows(readings[-1], checked, Meter([], None))
    first = [row for row in islice(good, PREVIEW_ROWS) if isinstance(row, PairRow)]
    wanted = {row.passage_id for row in first if row.passage is None}
    texts = _texts_of(readings[:-1], checked, wanted)
    rows = [
        {
            "query_id": row.external_id,
            "query": row.query,
            "passage_id": row.passage_id,
            "passage": row.passage.text if row.passage else texts.get(row.passage_id, ""),
        }
        for row in first
    ]
    return ImportPreview(len(checked.pairs), len(checked.texts), rows, checked.bad)


def _texts_of(readings: list[Reading], checked: Checked, wanted: set[str]) -> dict[str, str]:
    """The texts of these passages that are in the file of passages."""
    return {
        row.external_id: row.text
        for reading in readings
        for row in (good_rows(reading, checked, Meter([], None)) if wanted else ())
        if isinstance(row, PassageRow) and row.external_id in wanted
    }
