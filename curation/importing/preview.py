"""Preview of an import: its effect, before anything is stored."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from curation.importing.checking import Checked, Meter, check_files, good_rows
from curation.importing.files import Reading, opened_files
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
    notices: list[str] = field(default_factory=list)


def preview_import(
    store: Store,
    *,
    name: str,
    pairs: Path,
    passages: Path | None = None,
    columns: Mapping[str, str] | None = None,
    layout: str | None = None,
    split: str | None = None,
    usual_columns: bool = False,
) -> ImportPreview:
    """Check every row as an import would, and store nothing.

    `rows` are the first `PREVIEW_ROWS` good pairs, each with its passage if the files hold it.
    Raises BadInput if a file cannot be read or lacks a column.
    """
    with store.read() as session:
        dataset = find_dataset(session, name.strip())
        dataset_id = dataset.id if dataset else None
    with opened_files(
        pairs, passages, columns, layout=layout, split=split, usual_columns=usual_columns
    ) as files:
        checked = check_files(store, dataset_id, files.readings, Meter([], None))
        of_pairs = [each for each in files.readings if each.file.kind == "pairs"]
        first = list(islice(_good_pairs(of_pairs, checked), PREVIEW_ROWS))
        wanted = {row.passage_id for row in first if row.passage is None}
        of_passages = [each for each in files.readings if each.file.kind == "passages"]
        texts = _texts_of(of_passages, checked, wanted)
    rows = [
        {
            "query_id": row.external_id,
            "query": row.query,
            "passage_id": row.passage_id,
            "passage": row.passage.text if row.passage else texts.get(row.passage_id, ""),
        }
        for row in first
    ]
    bad = [*files.left_out, *checked.bad]
    return ImportPreview(len(checked.pairs), len(checked.texts), rows, bad, files.notices)


def _good_pairs(readings: list[Reading], checked: Checked) -> Iterator[PairRow]:
    for reading in readings:
        for row in good_rows(reading, checked, Meter([], None)):
            if isinstance(row, PairRow):
                yield row


def _texts_of(readings: list[Reading], checked: Checked, wanted: set[str]) -> dict[str, str]:
    """The texts of these passages that are in the file of passages."""
    return {
        row.external_id: row.text
        for reading in readings
        for row in (good_rows(reading, checked, Meter([], None)) if wanted else ())
        if isinstance(row, PassageRow) and row.external_id in wanted
    }
