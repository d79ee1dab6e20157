"""Import: pairs and passages from files into a data set; importing again adds nothing.

Two passes over the files. The first checks every row and writes nothing; where a row is bad,
nothing is imported unless `skip_bad` says to leave such rows out. The second writes in batches,
each in a short transaction, so that people at work are not kept waiting: an import that is
killed leaves a part, and importing again adds the rest.

A row is the same when everything it says is the same: text, title and all further columns, which
are kept in `meta`. A passage inline in a pair says only its text. Memory holds, per row, the id
and a digest, never the texts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from analysis.files.rows import BadValue, read_rows
from curation.importing.rows import (
    PAIR_COLUMNS,
    PASSAGE_COLUMNS,
    PairRow,
    PassageRow,
    parse_pair,
    parse_passage,
)
from db.corpus.datasets import (
    StoredPassage,
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
BATCH = 2000
SKIP_REMEDY = "nothing was imported; correct the rows, or leave them out with --skip-bad"
Progress = Callable[[int, int], None]
Row = TypeVar("Row")


@dataclass
class ImportReport:
    """What an import did. `unchanged` counts rows that were there already, or twice in a file."""

    dataset_id: int
    imported: dict[str, int]
    unchanged: dict[str, int]
    skipped: list[BadRow]


@dataclass
class _Checked:
    """What the first pass found: bad lines, and per passage its digest and who refers to it."""

    bad: list[BadRow] = field(default_factory=list)
    bad_lines: set[tuple[str, int]] = field(default_factory=set)
    texts: dict[str, bytes] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    pairs: dict[str, bytes] = field(default_factory=dict)
    referenced: set[str] = field(default_factory=set)

    def refuse(self, path: Path, line: int, reason: str) -> None:
        self.bad.append(BadRow(path.name, line, reason))
        self.bad_lines.add((str(path), line))


def import_dataset(
    store: Store,
    *,
    name: str,
    pairs: Path,
    passages: Path | None = None,
    source: str = "",
    licence: str = "",
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Import the files into the data set `name`, which is made where it is missing.

    Raises BadRows where rows are bad and `skip_bad` is not said, BadInput where a file cannot be
    read or lacks a column; then nothing was imported. Commits in batches.
    """
    name = _checked_name(name)
    files = [path for path in (passages, pairs) if path is not None]
    if passages is not None and passages == pairs:
        raise BadInput(f"{pairs.name} was given for the pairs and for the passages")
    meter = _Meter(files, progress)
    with store.read() as session:
        dataset = find_dataset(session, name)
        if dataset is not None:
            require_same_origin(dataset, source=source, licence=licence)
    checked = _check(store, dataset.id if dataset else None, pairs, passages, meter)
    if checked.bad and not skip_bad:
        raise BadRows(checked.bad, SKIP_REMEDY)
    if not checked.pairs and checked.bad:
        raise BadRows(checked.bad, "nothing was imported: no pair is left without the bad rows")
    with store.write() as session:
        dataset_id = get_or_create_dataset(session, name, source=source, licence=licence).id
        session.commit()
    report = ImportReport(
        dataset_id=dataset_id,
        imported={"pairs": 0, "passages": 0},
        unchanged={"pairs": 0, "passages": 0},
        skipped=checked.bad,
    )
    _write(store, report, checked, pairs, passages, meter)
    return report


def _checked_name(name: str) -> str:
    if not name.strip() or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise BadInput(
            f"a data set cannot be named {name[:40]!r}: use 1 to {MAX_NAME_CHARACTERS} visible "
            "characters"
        )
    return name.strip()


def _check(
    store: Store, dataset_id: int | None, pairs: Path, passages: Path | None, meter: "_Meter"
) -> _Checked:
    checked = _Checked()
    if passages is not None:
        rows = _parsed(passages, PASSAGE_COLUMNS, parse_passage, checked, meter)
        for batch in _batches(rows):
            known = _stored_passages(store, dataset_id, [row.external_id for _, row in batch])
            for line, passage in batch:
                _check_passage(checked, passages, line, passage, known)
    for pair_batch in _batches(_parsed(pairs, PAIR_COLUMNS, parse_pair, checked, meter)):
        known = _stored_passages(store, dataset_id, [row.passage_id for _, row in pair_batch])
        known_pairs = _stored_pairs(store, dataset_id, [row.external_id for _, row in pair_batch])
        for line, pair in pair_batch:
            _check_pair(checked, pairs, line, pair, known, known_pairs)
    checked.bad.sort(key=lambda row: (row.file == pairs.name, row.line))
    return checked


def _check_passage(
    checked: _Checked,
    path: Path,
    line: int,
    passage: PassageRow,
    known: dict[str, StoredPassage],
) -> bool:
    """Note a passage, or refuse its row; returns whether it is good."""
    external_id, text = passage.external_id, bytes.fromhex(passage.sha256)
    stored = known.get(external_id)
    if stored is not None and stored.origin == "generated":
        checked.refuse(path, line, f"passage_id {external_id!r} is that of a generated passage")
        return False
    seen = checked.texts.get(external_id)
    there = "in the data set" if seen is None else "above"
    before = bytes.fromhex(stored.sha256) if seen is None and stored is not None else seen
    if before is not None and before != text:
        checked.refuse(
            path, line, f"duplicate passage_id {external_id!r}: {there} it has another text"
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
                f"duplicate passage_id {external_id!r}: {there} it has another title or columns",
            )
            return False
        checked.contents[external_id] = content
    checked.texts[external_id] = text
    return True


def _check_pair(
    checked: _Checked,
    path: Path,
    line: int,
    pair: PairRow,
    known: dict[str, StoredPassage],
    known_pairs: dict[str, str],
) -> None:
    external_id, content = pair.external_id, bytes.fromhex(pair.content)
    seen = checked.pairs.get(external_id)
    there = "in the data set" if seen is None else "above"
    if seen is None and external_id in known_pairs:
        seen = bytes.fromhex(known_pairs[external_id])
    if seen is not None and seen != content:
        reason = f"duplicate query_id {external_id!r}: {there} it has another query or passage"
        checked.refuse(path, line, reason)
        return
    if pair.passage is not None:
        if not _check_passage(checked, path, line, pair.passage, known):
            return
    elif pair.passage_id not in checked.texts:
        stored = known.get(pair.passage_id)
        if stored is None or stored.origin == "generated":
            checked.refuse(path, line, f"unknown passage_id {pair.passage_id!r}")
            return
    checked.pairs[external_id] = content
    checked.referenced.add(pair.passage_id)


def _write(
    store: Store,
    report: ImportReport,
    checked: _Checked,
    pairs: Path,
    passages: Path | None,
    meter: "_Meter",
) -> None:
    for path, parse in ((passages, parse_passage), (pairs, parse_pair)):
        if path is None:
            continue
        good = _good_rows(path, parse, checked, meter)
        while batch := list(islice(good, BATCH)):
            inline = [row if isinstance(row, PassageRow) else row.passage for row in batch]
            _write_passages(store, report, checked, [row for row in inline if row is not None])
            _write_pairs(store, report, [row for row in batch if isinstance(row, PairRow)])


def _good_rows(
    path: Path,
    parse: Callable[[dict[str, Any]], PassageRow | PairRow],
    checked: _Checked,
    meter: "_Meter",
) -> Iterator[PassageRow | PairRow]:
    meter.next_file()
    for row in read_rows(path):
        meter.at(row.position)
        if (str(path), row.line) not in checked.bad_lines:
            yield parse(row.values)


def _write_passages(
    store: Store, report: ImportReport, checked: _Checked, batch: list[PassageRow]
) -> None:
    if not batch:
        return
    unique = {row.external_id: row for row in reversed(batch)}
    with store.write() as session:
        known = stored_passages(session, report.dataset_id, list(unique))
        new = [row for row in reversed(unique.values()) if row.external_id not in known]
        add_passages(session, [_passage_values(report.dataset_id, checked, row) for row in new])
        session.commit()
    report.imported["passages"] += len(new)
    report.unchanged["passages"] += sum(not row.inline for row in batch) - sum(
        not row.inline for row in new
    )


def _passage_values(dataset_id: int, checked: _Checked, row: PassageRow) -> dict[str, Any]:
    return {
        "dataset_id": dataset_id,
        "external_id": row.external_id,
        "title": row.title,
        "text": row.text,
        "sha256": row.sha256,
        "origin": "seed" if row.external_id in checked.referenced else "pool",
        "meta": row.meta,
    }


def _write_pairs(store: Store, report: ImportReport, batch: list[PairRow]) -> None:
    if not batch:
        return
    unique = {row.external_id: row for row in reversed(batch)}
    with store.write() as session:
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
        session.commit()
    report.imported["pairs"] += len(new)
    report.unchanged["pairs"] += len(batch) - len(new)


def _parsed(
    path: Path,
    needed: tuple[str, ...],
    parse: Callable[[dict[str, Any]], Row],
    checked: _Checked,
    meter: "_Meter",
) -> Iterator[tuple[int, Row]]:
    """The rows that parse, with their lines; the others are noted as bad.

    A column that no row has is one error of the whole file, not one per row.
    """
    meter.next_file()
    columns: dict[str, None] = {}
    readable, before = 0, len(checked.bad)
    for row in read_rows(path):
        meter.at(row.position)
        if row.reason is not None:
            checked.refuse(path, row.line, row.reason)
            continue
        readable += 1
        columns.update(dict.fromkeys(row.values))
        try:
            parsed = parse(row.values)
        except BadValue as bad:
            checked.refuse(path, row.line, str(bad))
            continue
        yield row.line, parsed
    missing = [name for name in needed if name not in columns]
    if readable and missing:
        raise BadInput(
            f"{path.name} has no column {' and no column '.join(f'`{name}`' for name in missing)}; "
            f"it has {', '.join(f'`{name}`' for name in list(columns)[:12]) or 'none'}"
        )
    if not readable and len(checked.bad) == before:
        raise BadInput(f"{path.name} holds no rows")


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


class _Meter:
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
