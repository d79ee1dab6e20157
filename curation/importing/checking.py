"""The first pass of an import: every row is checked and nothing is written.

Memory holds, per row, the id and a digest, never the texts.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

from sqlalchemy.orm import Session

from analysis.files.rows import BadValue, read_rows
from curation.importing.columns import (
    Lacking,
    MissingColumns,
    guessed_columns,
    missing_columns,
    renamed,
)
from curation.importing.files import Reading
from curation.importing.rows import PairRow, PassageRow
from db.corpus.datasets import StoredPassage, stored_pairs, stored_passages
from db.errors import BadInput, BadRow
from db.store.store import Store

BATCH = 2000
Progress = Callable[[int, int], None]
# Records an import, of these counts, in the transaction of its last batch.
Recorder = Callable[[Session, Mapping[str, int]], None]
Row = TypeVar("Row")


@dataclass
class Checked:
    """The result of the first pass: bad lines, and per passage its digest and who refers to it."""

    bad: list[BadRow] = field(default_factory=list)
    bad_lines: set[tuple[str, int]] = field(default_factory=set)
    texts: dict[str, bytes] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    pairs: dict[str, bytes] = field(default_factory=dict)
    referenced: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)  # of files that hold a row

    def refuse(self, path: Path, line: int, reason: str) -> None:
        self.bad.append(BadRow(path.name, line, reason))
        self.bad_lines.add((str(path), line))


class Meter:
    """Progress in bytes: every file is read twice."""

    def __init__(self, files: list[Path], progress: Progress | None) -> None:
        self._sizes = [path.stat().st_size if path.is_file() else 0 for path in files] * 2
        self._progress = progress
        self._file = -1

    def next_file(self) -> None:
        self._file += 1

    def at(self, position: int) -> None:
        if self._progress is not None:
            self._progress(sum(self._sizes[: self._file]) + position, sum(self._sizes))


def check_files(
    store: Store, dataset_id: int | None, readings: list[Reading], meter: Meter
) -> Checked:
    """The bad lines with their reasons. Raises BadInput if a file cannot be used at all."""
    checked = Checked()
    lacking: dict[str, Lacking] = {}
    for reading in readings:
        for batch in _batches(_parsed(reading, checked, meter, lacking)):
            _check_batch(store, dataset_id, reading, batch, checked)
    kinds = {reading.file.kind for reading in readings}
    if lacking:
        raise MissingColumns(list(lacking.values()), several_files=len(kinds) > 1)
    for kind in kinds - checked.kinds:
        files = dict.fromkeys(each.path.name for each in readings if each.file.kind == kind)
        raise BadInput(
            f"{', '.join(files)} holds no rows", "name files with rows", code="rows_missing"
        )
    order = {reading.path.name: place for place, reading in enumerate(readings)}
    checked.bad.sort(key=lambda row: (order[row.file], row.line))
    return checked


def _check_batch(
    store: Store,
    dataset_id: int | None,
    reading: Reading,
    batch: list[tuple[int, PassageRow | PairRow]],
    checked: Checked,
) -> None:
    passages = [
        external_id
        for _, row in batch
        for external_id in (
            [row.external_id]
            if isinstance(row, PassageRow)
            else [row.passage_id, *row.negative_ids]
        )
    ]
    pairs = [row.external_id for _, row in batch if isinstance(row, PairRow)]
    known = _stored_passages(store, dataset_id, passages)
    known_pairs = _stored_pairs(store, dataset_id, pairs) if pairs else {}
    for line, row in batch:
        if isinstance(row, PassageRow):
            _check_passage(checked, reading.path, line, row, known)
        else:
            _check_pair(checked, reading.path, line, row, known, known_pairs)


def _check_passage(
    checked: Checked,
    path: Path,
    line: int,
    passage: PassageRow,
    known: dict[str, StoredPassage],
) -> bool:
    """Record a passage, or refuse its row; returns whether it is good."""
    external_id, text = passage.external_id, bytes.fromhex(passage.sha256)
    stored = known.get(external_id)
    if stored is not None and stored.origin == "generated":
        checked.refuse(path, line, f"passage_id {external_id!r} is that of a generated passage")
        return False
    seen = checked.texts.get(external_id)
    place = "in the dataset" if seen is None else "above"
    before = bytes.fromhex(stored.sha256) if seen is None and stored is not None else seen
    if before is not None and before != text:
        checked.refuse(
            path, line, f"duplicate passage_id {external_id!r}: {place} it has another text"
        )
        return False
    if not passage.inline:
        content = bytes.fromhex(passage.content)
        known_content = checked.contents.get(external_id)
        if known_content is None and stored is not None:
            known_content = bytes.fromhex(stored.content)
        if known_content is not None and known_content != content:
            checked.refuse(
                path,
                line,
                f"duplicate passage_id {external_id!r}: {place} it has another title or columns",
            )
            return False
        checked.contents[external_id] = content
    checked.texts[external_id] = text
    return True


def _check_pair(
    checked: Checked,
    path: Path,
    line: int,
    pair: PairRow,
    known: dict[str, StoredPassage],
    known_pairs: dict[str, str],
) -> None:
    external_id, content = pair.external_id, bytes.fromhex(pair.content)
    seen = checked.pairs.get(external_id)
    place = "in the dataset" if seen is None else "above"
    if seen is None and external_id in known_pairs:
        seen = bytes.fromhex(known_pairs[external_id])
    if seen is not None and seen != content:
        reason = f"duplicate query_id {external_id!r}: {place} it has another query or passage"
        checked.refuse(path, line, reason)
        return
    if not all(_check_passage(checked, path, line, each, known) for each in pair.inline):
        return
    for passage_id in (pair.passage_id, *pair.negative_ids):
        stored = known.get(passage_id)
        if passage_id not in checked.texts and (stored is None or stored.origin == "generated"):
            checked.refuse(path, line, f"unknown passage_id {passage_id!r}")
            return
    checked.pairs[external_id] = content
    checked.referenced.add(pair.passage_id)


def good_rows(reading: Reading, checked: Checked, meter: Meter) -> Iterator[PassageRow | PairRow]:
    """The rows of a file that the first pass did not refuse."""
    meter.next_file()
    for row in read_rows(reading.path):
        meter.at(row.position)
        if (str(reading.path), row.line) not in checked.bad_lines:
            yield reading.parse(row.values)


def _parsed(
    reading: Reading, checked: Checked, meter: Meter, lacking: dict[str, Lacking]
) -> Iterator[tuple[int, PassageRow | PairRow]]:
    """The rows that parse, with their lines; the others are recorded as bad.

    A column that no row has is one error of the whole file (in `lacking`), not one per row.
    """
    meter.next_file()
    path, kind = reading.path, reading.file.kind
    columns: dict[str, None] = {}
    for row in read_rows(path):
        meter.at(row.position)
        checked.kinds.add(kind)
        if row.reason is not None:
            checked.refuse(path, row.line, row.reason)
            continue
        columns.update(dict.fromkeys(row.values))
        try:
            parsed = reading.parse(row.values)
        except BadValue as bad:
            checked.refuse(path, row.line, str(bad))
            continue
        yield row.line, parsed
    missing = missing_columns(renamed(columns, reading.columns), kind)
    if columns and missing and kind not in lacking:
        proposed = reading.proposed()
        guessed = guessed_columns(reading.file, proposed)
        lacking[kind] = Lacking(kind, path.name, missing, list(columns), proposed, guessed)


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(islice(rows, BATCH)):
        yield batch


def _stored_passages(
    store: Store, dataset_id: int | None, external_ids: list[str]
) -> dict[str, StoredPassage]:
    if dataset_id is None:
        return {}
    with store.read() as session:
        return stored_passages(session, dataset_id, external_ids)


def _stored_pairs(store: Store, dataset_id: int | None, external_ids: list[str]) -> dict[str, str]:
    if dataset_id is None:
        return {}
    with store.read() as session:
        return stored_pairs(session, dataset_id, external_ids)
