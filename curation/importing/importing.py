"""Import: pairs and passages from files into a dataset, and its preview; again adds nothing.

Two passes over the files. The first checks every row and writes nothing; if a row is bad, nothing
is imported unless `skip_bad` skips such rows. The second writes in batches, each in a short
transaction, so that other users need not wait: a killed import leaves a part, and importing again
adds the rest.

Two rows are the same if all their content is the same: text, title and all further columns, which
are kept in `meta`. A passage inline in a pair has only a text. Memory holds, per row, the id and a
digest, never the texts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from curation.importing.checking import (
    BATCH,
    Checked,
    Meter,
    Progress,
    Recorder,
    check_files,
    good_rows,
)
from curation.importing.files import ImportFiles, Reading, opened_files
from curation.importing.imported import ImportPreview
from curation.importing.rows import PairRow, PassageRow
from db.corpus.datasets import (
    add_negatives,
    add_pairs,
    add_passages,
    find_dataset,
    get_or_create_dataset,
    mark_as_seed,
    require_same_origin,
    stored_pairs,
    stored_passages,
)
from db.errors import BadInput, BadRow, BadRows
from db.store.store import Store

MAX_NAME_CHARACTERS = 200
PREVIEW_ROWS = 20
SKIP_REMEDY = "nothing was imported; correct the rows, or skip them with `skip_bad=`"


@dataclass
class ImportReport:
    """The result of an import. `unchanged` counts rows that exist already, or twice in a file.
    `negatives`: how many were given to pairs.

    `skipped_count` may exceed the listed rows: a conversion lists the first of those it left out.
    """

    dataset_id: int
    imported: dict[str, int]
    unchanged: dict[str, int]
    skipped: list[BadRow]
    skipped_count: int = 0
    notices: list[str] = field(default_factory=list)
    negatives: int = 0


def import_dataset(
    store: Store,
    *,
    name: str,
    pairs: Path,
    passages: Path | None = None,
    columns: Mapping[str, str] | None = None,
    layout: str | None = None,
    split: str | None = None,
    usual_columns: bool = False,
    source: str = "",
    licence: str = "",
    skip_bad: bool = False,
    progress: Progress | None = None,
    record: Recorder | None = None,
) -> ImportReport:
    """Import the files into the dataset `name`, which is created if missing.

    `pairs` (and `passages`) are a file, a pattern or a folder, `layout` and `split` how to read it
    (`curation.importing.files`). `columns` maps our names of columns to the files', `usual_columns`
    applies what usual names propose. Raises BadRows if rows are bad and not `skip_bad`, BadInput if
    a file cannot be read or lacks a column; then nothing was imported. Commits in batches.
    """
    name = _checked_name(name)
    with opened_files(
        pairs, passages, columns, layout=layout, split=split, usual_columns=usual_columns
    ) as files:
        return _import(store, name, files, (source, licence), skip_bad, progress, record)


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

    `preview` are the first `PREVIEW_ROWS` good pairs, each with its passage if the files hold it.
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
    return ImportPreview(
        dataset=name,
        preview=tuple(rows),
        pairs=len(checked.pairs),
        passages=len(checked.texts),
        bad_rows=(*files.left_out, *checked.bad),
        notices=tuple(files.notices),
    )


def _import(
    store: Store,
    name: str,
    files: ImportFiles,
    origin: tuple[str, str],
    skip_bad: bool,
    progress: Progress | None,
    record: Recorder | None,
) -> ImportReport:
    source, licence = origin
    meter = Meter([reading.path for reading in files.readings], progress)
    with store.read() as session:
        dataset = find_dataset(session, name)
        if dataset is not None:
            require_same_origin(dataset, source=source, licence=licence)
    if files.left_out and not skip_bad:
        raise BadRows(files.left_out, SKIP_REMEDY, code="rows_invalid")
    checked = check_files(store, dataset.id if dataset else None, files.readings, meter)
    if checked.bad and not skip_bad:
        raise BadRows(checked.bad, SKIP_REMEDY, code="rows_invalid")
    if not checked.pairs and checked.bad:
        raise BadRows(
            checked.bad,
            "nothing was imported: without the bad rows no pair is left",
            code="rows_all_invalid",
        )
    with store.write() as session:
        dataset_id = get_or_create_dataset(session, name, source=source, licence=licence).id
        session.commit()
    report = ImportReport(
        dataset_id=dataset_id,
        imported={"pairs": 0, "passages": 0},
        unchanged={"pairs": 0, "passages": 0},
        skipped=[*files.left_out, *checked.bad],
        skipped_count=files.left_out_count + len(checked.bad),
        notices=files.notices,
    )
    rows = chain.from_iterable(good_rows(each, checked, meter) for each in files.readings)
    _write(store, report, checked, rows, record)
    return report


def _checked_name(name: str) -> str:
    if not name.strip() or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise BadInput(
            f"a dataset cannot be named {name[:40]!r}",
            f"use 1 to {MAX_NAME_CHARACTERS} visible characters",
            code="dataset_name_invalid",
        )
    return name.strip()


def _write(
    store: Store,
    report: ImportReport,
    checked: Checked,
    rows: Iterator[PassageRow | PairRow],
    record: Recorder | None,
) -> None:
    """Write batches, each in a transaction; what records the import is in that of the last one."""
    batch = list(islice(rows, BATCH))
    while True:
        following = list(islice(rows, BATCH))  # read outside of the transaction
        inline = [[row] if isinstance(row, PassageRow) else row.inline for row in batch]
        with store.write() as session:
            _add_passages(session, report, checked, [row for each in inline for row in each])
            _add_pairs(session, report, [row for row in batch if isinstance(row, PairRow)])
            if record is not None and not following:
                record(session, report.imported)
            session.commit()
        if not following:
            return
        batch = following


def _add_passages(
    session: Session, report: ImportReport, checked: Checked, batch: list[PassageRow]
) -> None:
    if not batch:
        return
    unique = {row.external_id: row for row in reversed(batch)}
    known = stored_passages(session, report.dataset_id, list(unique))
    new = [row for row in reversed(unique.values()) if row.external_id not in known]
    add_passages(session, [_passage_values(report.dataset_id, checked, row) for row in new])
    report.imported["passages"] += len(new)
    report.unchanged["passages"] += sum(not row.inline for row in batch) - sum(
        not row.inline for row in new
    )


def _passage_values(dataset_id: int, checked: Checked, row: PassageRow) -> dict[str, Any]:
    return {
        "dataset_id": dataset_id,
        "external_id": row.external_id,
        "title": row.title,
        "text": row.text,
        "sha256": row.sha256,
        "origin": "seed" if row.external_id in checked.referenced else "pool",
        "meta": row.meta,
    }


def _add_pairs(session: Session, report: ImportReport, batch: list[PairRow]) -> None:
    if not batch:
        return
    unique = {row.external_id: row for row in reversed(batch)}
    known = stored_pairs(session, report.dataset_id, list(unique))
    new = [row for row in reversed(unique.values()) if row.external_id not in known]
    ids = stored_passages(session, report.dataset_id, [row.passage_id for row in new])
    add_pairs(
        session,
        [
            {
                "dataset_id": report.dataset_id,
                "external_id": row.external_id,
                "query": row.query,
                "passage_id": ids[row.passage_id].id,
                "meta": row.meta,
            }
            for row in new
        ],
    )
    mark_as_seed(session, [found.id for found in ids.values() if found.origin == "pool"])
    given: dict[str, list[str]] = {}
    for row in batch:  # of all rows about a pair
        given.setdefault(row.external_id, []).extend(row.negative_ids)
    negatives = add_negatives(session, report.dataset_id, given)
    report.negatives += negatives
    report.imported["pairs"] += len(new)
    report.unchanged["pairs"] += len(batch) - len(new)


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
