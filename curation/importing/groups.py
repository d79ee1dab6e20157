"""Import of finished groups: files with InF-IR's seven columns become a run of a dataset.

Files of a release whose manifest names another shape have the columns of that one; where it has
lists, the rows of a group are put together again (`analysis.files.ragged`). Published InF-IR, or a
release of another store, can thus be reviewed, judged, analysed and used for training. The run has
no recipe of ours: its provider is `import`, its recipe names the origin.

Note: the items made for studies hold the passages of the group and no random ones, since the
candidates shown to the validator elsewhere are unknown. Importing the same files again adds
nothing; a killed import continues with the missing groups.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from analysis.files.opening import encoding_notice
from analysis.files.ragged import LISTED, rows_of_groups
from analysis.files.row import BadValue, FileRow
from analysis.files.rows import read_rows
from curation.importing.checking import Progress, Recorder
from curation.importing.rows import MAX_TEXT_BYTES
from db.corpus.datasets import (
    add_negatives,
    add_pairs,
    add_passages,
    content_sha256,
    get_or_create_dataset,
    stored_pairs,
    stored_passages,
    text_sha256,
)
from db.corpus.texts import text_row
from db.errors import BadInput, BadRow, BadRows
from db.review.carrying import carry_reviews
from db.run.new_items import insert_items
from db.run.runs import keep_count, require_active_run, set_run_status
from db.shape import INF_IR, Shape
from db.store.bulk import insert_rows
from db.store.store import Store
from db.tables import Group, Pair, Recipe, Run, SlotText, utc_now

BATCH = 500
PROVIDER = "import"


@dataclass(frozen=True)
class GroupRow:
    """A row with the texts by column, those of lists by name, and its other columns."""

    texts: dict[str, str]
    listed: dict[str, str]
    query_id: str
    passage_id: str
    meta: dict[str, Any]
    verdict: str
    drop_reason: str | None
    offline: bool


@dataclass
class GroupImport:
    """The result of an import of groups."""

    dataset_id: int
    run_id: int
    imported: int = 0
    unchanged: int = 0
    skipped: list[BadRow] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def import_groups(
    store: Store,
    *,
    name: str,
    files: Sequence[Path],
    origin: str,
    source: str = "",
    licence: str = "",
    skip_bad: bool = False,
    imported_by: str = "",
    progress: Progress | None = None,
    shape: Shape,
    record: Recorder | None = None,
) -> GroupImport:
    """Import the groups of the files, of one shape, into the dataset `name`, as one run of it.

    Raises BadRows if rows are bad and `skip_bad` is not set, BadInput; then nothing was
    imported. Commits in batches.
    """
    total = 2 * sum(path.stat().st_size for path in files if path.is_file())
    meter = _Meter(total, progress)
    bad, offline = _check(files, meter, shape)
    if bad and not skip_bad:
        raise BadRows(
            bad,
            "nothing was imported; correct the rows, or skip them with `skip_bad=`",
            code="rows_invalid",
        )
    with store.write() as session:
        dataset_id = get_or_create_dataset(session, name, source=source, licence=licence).id
        run_id = run_of_files(
            session, dataset_id, files, origin, imported_by, offline=offline, shape=shape
        )
        session.commit()
    notices = [notice for path in files if (notice := encoding_notice(path))]
    report = GroupImport(dataset_id, run_id, skipped=bad, notices=notices)
    for path in files:
        rows = _good(path, meter, shape)
        while batch := list(islice(rows, BATCH)):
            with store.write() as session:
                new = _add(session, report, batch, shape)
                session.commit()
            report.imported += new
            report.unchanged += len(batch) - new
    with store.write() as session:
        set_run_status(session, run_id, "done")
        keep_count(session, run_id)
        if record is not None:
            record(session, {"groups": report.imported})
        session.commit()
    return report


def parse_group(values: dict[str, Any], default_id: str, shape: Shape) -> GroupRow:
    """A row as a group. Raises BadValue with the reason."""
    texts: dict[str, str] = {}
    listed: dict[str, str] = values.pop(LISTED, {})
    for name in shape.columns:
        value = values.get(name)
        if not isinstance(value, str) or not value.strip():
            of = "InF-IR" if shape == INF_IR else "its release's shape"
            raise BadValue(f"no `{name}`: every group needs the {len(shape.columns)} texts of {of}")
        texts[name] = value
    for name, value in (*texts.items(), *listed.items()):
        if len(value) * 4 > MAX_TEXT_BYTES and len(value.encode()) > MAX_TEXT_BYTES:
            raise BadValue(f"text too long: `{name}` has more than {MAX_TEXT_BYTES:,} bytes")
    known = {
        *shape.columns,
        "group_id",
        "query_id",
        "passage_id",
        "verdict",
        "drop_reason",
        "review",
    }
    dropped = values.get("verdict") == "dropped"
    passage = text_sha256(texts[shape.first.passage.column])[:16]
    return GroupRow(
        texts=texts,
        listed=listed,
        query_id=str(values.get("query_id") or default_id),
        passage_id=str(values.get("passage_id") or f"p-{passage}"),
        meta={key: value for key, value in values.items() if key not in known},
        verdict="dropped" if dropped else "kept",
        drop_reason=str(values.get("drop_reason") or "imported as dropped") if dropped else None,
        offline=values.get("offline") in (True, "True", "true"),
    )


def _rows(path: Path, shape: Shape) -> Iterator[FileRow]:
    """The rows of a file, each with a group; of a shape with lists put together from several."""
    ids = _query_ids(path) if shape.lists else {}
    for row in rows_of_groups(read_rows(path), shape):
        if shape.lists:
            row.values["query_id"] = ids.get(str(row.values.get("group_id")))
        yield row


def _query_ids(path: Path) -> dict[str, str]:
    """The ids of the pairs by group, from the configuration `provenance` of the file's release: the
    default configuration of a shape with lists has those of its rows. Empty for a file alone."""
    folder = path.parent.parent / "provenance" if path.parent.name == "data" else path.parent
    if folder == path.parent or not folder.is_dir():
        return {}
    return {
        str(row.values["group_id"]): str(row.values["query_id"])
        for file in sorted(folder.iterdir())
        for row in read_rows(file)
        if row.reason is None and row.values.get("query_id")
    }


def _check(files: Sequence[Path], meter: "_Meter", shape: Shape) -> tuple[list[BadRow], bool]:
    """The bad rows of all files, and whether any text was made offline."""
    positive = shape.first.passage.column
    bad: list[BadRow] = []
    seen: dict[str, bytes] = {}
    passages: dict[str, bytes] = {}
    offline, rows = False, 0
    for path in files:
        for row in _rows(path, shape):
            meter.at(path, row.position)
            try:
                if row.reason is not None:
                    raise BadValue(row.reason)
                group = parse_group(row.values, _default_id(path, row.line), shape)
                content = bytes.fromhex(content_sha256(group.texts | group.listed))
                if seen.setdefault(group.query_id, content) != content:
                    raise BadValue(f"duplicate query_id {group.query_id!r} with other texts")
                text = bytes.fromhex(text_sha256(group.texts[positive]))
                if passages.setdefault(group.passage_id, text) != text:
                    raise BadValue(f"duplicate passage_id {group.passage_id!r} with another text")
                offline, rows = offline or group.offline, rows + 1
            except BadValue as reason:
                bad.append(BadRow(path.name, row.line, str(reason)))
        meter.done(path)
    if not rows and not bad:
        raise BadInput(
            f"{', '.join(path.name for path in files) or 'the files'}: no rows",
            "name files with rows",
            code="rows_missing",
        )
    return bad, offline


def _good(path: Path, meter: "_Meter", shape: Shape) -> Iterator[GroupRow]:
    seen: set[str] = set()
    passages: dict[str, str] = {}
    for row in _rows(path, shape):
        meter.at(path, row.position)
        if row.reason is not None:
            continue
        try:
            group = parse_group(row.values, _default_id(path, row.line), shape)
        except BadValue:
            continue  # reported by the check before
        text = text_sha256(group.texts[shape.first.passage.column])
        if group.query_id not in seen and passages.setdefault(group.passage_id, text) == text:
            seen.add(group.query_id)
            yield group
    meter.done(path)


def _default_id(path: Path, line: int) -> str:
    return f"{path.stem}-{line}"


def run_of_files(
    session: Session,
    dataset_id: int,
    files: Sequence[Path],
    origin: str,
    imported_by: str,
    *,
    shape: Shape,
    offline: bool = False,
) -> int:
    """The run of these files: the existing one, or a new one. Does not commit."""
    body = {
        "name": "import",
        "description": f"Groups imported from {origin}",
        "origin": origin,
        "files": [path.name for path in files],
        "stages": {},
        "validation": {},
        "filters": {},
        **shape.entry,
    }
    sha256 = content_sha256(body)
    recipe = session.scalars(select(Recipe).where(Recipe.sha256 == sha256)).first()
    if recipe is None:
        recipe = Recipe(name="import", sha256=sha256, body=body)
        session.add(recipe)
        session.flush()
    run = session.scalars(
        select(Run).where(Run.dataset_id == dataset_id, Run.recipe_id == recipe.id)
    ).first()
    if run is None:
        run = Run(
            dataset_id=dataset_id,
            recipe_id=recipe.id,
            provider=PROVIDER,
            offline=offline,
            created_by=imported_by,
        )
        session.add(run)
        session.flush()
    require_active_run(session, run)
    run.status, run.counted = "running", None
    session.flush()
    return run.id


def _add(session: Session, report: GroupImport, batch: list[GroupRow], shape: Shape) -> int:
    """Add those groups of the batch whose pair has none in the run yet. Returns how many."""
    ids = [group.query_id for group in batch]
    stored = set(
        session.scalars(
            select(Pair.external_id)
            .join(Group, Group.pair_id == Pair.id)
            .where(Group.run_id == report.run_id, Pair.external_id.in_(ids))
        )
    )
    new = [group for group in batch if group.query_id not in stored]
    if not new:
        return 0
    passages = _add_passages(session, report, new, shape)
    pairs = _add_pairs(session, report, new, passages, shape)
    now = utc_now()
    session.execute(
        insert(Group),
        [
            {
                "run_id": report.run_id,
                "pair_id": pairs[group.query_id],
                "state": "done",
                "stage": "validation",
                "verdict": group.verdict,
                "drop_reason": group.drop_reason,
                "attempt": 0,
                "finished_at": now,
            }
            for group in new
        ],
    )
    groups: dict[int, int] = {
        row[0]: row[1]
        for row in session.execute(
            select(Group.pair_id, Group.id).where(
                Group.run_id == report.run_id, Group.pair_id.in_(pairs.values())
            )
        )
    }
    texts, items = [], []
    for group in new:
        group_id = groups[pairs[group.query_id]]
        passage_of = _passage_ids(group, passages, report.run_id, shape)
        for text in shape.all_texts:
            passage_id = passage_of[text.introduced_by] if text.is_passage else None
            texts.append(text_row(group_id, text.sign, group.texts[text.column], passage_id))
        for text in shape.lists:
            for number, name in enumerate(text.names):
                if name in group.listed:
                    row = text_row(group_id, text.sign, group.listed[name], passage_of[name])
                    texts.append(row | {"ordinal": number})
        candidates = [
            {"passage_id": passage_of[label], "label": label}
            for label in (*shape.roles, *group.listed)
        ]
        for role, scenario in shape.scenarios.items():
            instruction, query, _ = scenario.columns
            items.append(
                {
                    "group_id": group_id,
                    "instruction": group.texts[instruction],
                    "query": group.texts[query],
                    "scenario": role,
                    "expected": role,
                    "revision": 1,
                    "candidates": candidates,
                }
                | {"created_at": now}
            )
    insert_rows(session, SlotText, texts)
    insert_items(session, items)
    carry_reviews(session, list(groups.values()))
    return len(new)


def _passage_ids(
    group: GroupRow, passages: dict[str, int], run_id: int, shape: Shape
) -> dict[str, int]:
    """The passages of the scenarios by role, those of lists by name."""
    return {
        role: passages[_generated_id(run_id, group, number) if number else group.passage_id]
        for number, role in enumerate(shape.roles)
    } | {name: passages[_generated_id(run_id, group, name)] for name in group.listed}


def _generated_id(run_id: int, group: GroupRow, number: int | str) -> str:
    return f"import-{run_id}-{group.query_id}-{number}"


def _add_passages(
    session: Session, report: GroupImport, new: list[GroupRow], shape: Shape
) -> dict[str, int]:
    wanted: dict[str, tuple[str, str]] = {}
    for group in new:
        wanted[group.passage_id] = (group.texts[shape.first.passage.column], "seed")
        for number, scenario in enumerate(shape.all_scenarios):
            if number:
                text = group.texts[scenario.columns[2]]
                wanted[_generated_id(report.run_id, group, number)] = (text, "generated")
        given = shape.given_list.names if shape.given_list else ()
        for name, text in group.listed.items():
            origin = "pool" if name in given else "generated"
            wanted[_generated_id(report.run_id, group, name)] = (text, origin)
    known = stored_passages(session, report.dataset_id, list(wanted))
    for external_id, found in known.items():
        if found.sha256 != text_sha256(wanted[external_id][0]):
            raise BadInput(
                f"passage_id {external_id!r} has another text in the dataset",
                "import the groups into a dataset of their own",
                code="passage_text_differs",
            )
    add_passages(
        session,
        [
            {
                "dataset_id": report.dataset_id,
                "external_id": external_id,
                "title": "",
                "text": text,
                "sha256": text_sha256(text),
                "origin": origin,
                "meta": {},
            }
            for external_id, (text, origin) in wanted.items()
            if external_id not in known
        ],
    )
    found_ids = stored_passages(session, report.dataset_id, list(wanted))
    return {external_id: found.id for external_id, found in found_ids.items()}


def _add_pairs(
    session: Session,
    report: GroupImport,
    new: list[GroupRow],
    passages: dict[str, int],
    shape: Shape,
) -> dict[str, int]:
    known = stored_pairs(session, report.dataset_id, [group.query_id for group in new])
    add_pairs(
        session,
        [
            {
                "dataset_id": report.dataset_id,
                "external_id": group.query_id,
                "query": group.texts[shape.first.query.column],
                "passage_id": passages[group.passage_id],
                "meta": group.meta,
            }
            for group in new
            if group.query_id not in known
        ],
    )
    if shape.given_list:
        negatives = {
            group.query_id: [
                _generated_id(report.run_id, group, name)
                for name in shape.given_list.names
                if name in group.listed
            ]
            for group in new
        }
        add_negatives(session, report.dataset_id, negatives)
    rows = session.execute(
        select(Pair.external_id, Pair.id).where(
            Pair.dataset_id == report.dataset_id,
            Pair.external_id.in_([group.query_id for group in new]),
        )
    )
    return {row[0]: row[1] for row in rows}


class _Meter:
    """Progress in bytes over all files, each read twice."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total, self._progress, self._before = total, progress, 0

    def at(self, path: Path, position: int) -> None:
        if self._progress is not None:
            self._progress(self._before + position, self._total)

    def done(self, path: Path) -> None:
        self._before += path.stat().st_size
