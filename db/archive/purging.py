"""Purging: deleting a dataset or a run from the store, after a backup of the whole store.

Three steps, each whole or not at all: it is archived, so that nothing new is made from it; the
backup is written; everything of it is deleted in one transaction, together with the row of the
audit log. Killed in between, it is archived and nothing is deleted; the same call continues.

Deleted: runs with their groups, texts, items and the validator's judgments; passages that they
wrote; calls to language models that served no other group; closed studies without judgments;
analyses of it; of a dataset also pairs, passages and the rights of members on it. Kept: recipes,
prompts, rows of jobs, vectors of the cache (which hold no text), files outside the store.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, CursorResult, Delete, Select, delete, exists, func, select
from sqlalchemy.orm import Session

from db.archive.archiving import archive, require_independent
from db.archive.dependents import studies_of
from db.archive.target import Target, lock_target, require_curate, target_of
from db.errors import Refused
from db.events import record_event
from db.people.rights import Rights
from db.store.backup import Progress, write_backup
from db.store.store import Store
from db.tables import (
    Analysis,
    Base,
    Call,
    Dataset,
    Group,
    GroupCall,
    GroupVerdict,
    Item,
    Judgment,
    Pair,
    PairNegative,
    Passage,
    Review,
    Run,
    SlotText,
    Study,
    StudyItem,
    TextVerdict,
    VerdictVersion,
)

CHUNK = 1000


def purge(
    store: Store,
    *,
    dataset: str | None = None,
    run_id: int | None = None,
    rights: Rights,
    actor: str,
    backup: Path,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Delete a dataset or a run for good, after writing the store to `backup`, a new file.

    Returns how many rows of each table were deleted, and the backup's content hash.

    Raises NotFound, BadInput for a backup that cannot be written, and Refused for anyone but an
    admin, for a file that exists, if something depends on it, or if it changed while the backup was
    written.
    """
    if not rights.is_admin:
        raise Refused(
            "purging is for admins",
            "archive it instead",
            code="admin_only",
        )
    if backup.exists():
        raise Refused(
            f"{backup} exists: a backup never overwrites",
            "give another name",
            code="backup_exists",
        )
    with store.write() as session:
        target = target_of(session, dataset=dataset, run_id=run_id)
        if target.row.archived_at is None:
            archive(session, dataset=dataset, run_id=run_id, rights=rights, actor=actor)
        require_independent(session, target)
        before = _census(session, target)
        session.commit()
    manifest = write_backup(store, backup, progress=progress)
    with store.write() as session:
        target = target_of(session, dataset=dataset, run_id=run_id)
        require_curate(rights, target)
        _lock_everything(session, target)
        if target.row.archived_at is None or _census(session, target) != before:
            raise Refused(
                f"{target.title} changed while the backup was written: nothing was deleted",
                "purge it again with another file",
                code="changed_during_backup",
            )
        require_independent(session, target)
        subject = target.subject
        rows = _delete(session, target)
        record_event(
            session,
            actor,
            f"{target.kind}.purge",
            subject,
            rows=rows,
            backup=str(backup),
            content_sha256=manifest["content_sha256"],
        )
        session.commit()
    return {"rows": rows, "backup": str(backup), "content_sha256": manifest["content_sha256"]}


def _lock_everything(session: Session, target: Target) -> None:
    """Lock all to which a review, a judgment, a release or a study could be added meanwhile."""
    lock_target(session, target)
    if session.get_bind().dialect.name == "sqlite":
        return
    for query in (target.run_ids, target.group_ids, target.item_ids):
        session.execute(query.with_for_update()).all()


def _census(session: Session, target: Target) -> dict[str, tuple[int, int]]:
    """How many rows of each table are the target's, and the greatest id."""
    found: dict[str, tuple[int, int]] = {}
    for table, condition in _parts(target):
        column = getattr(table, "id", None)
        last = func.coalesce(func.max(column), 0) if column is not None else func.count()
        number, greatest = session.execute(select(func.count(), last).where(condition)).one()
        found[table.__tablename__] = (int(number), int(greatest))
    return found


def _parts(target: Target) -> Iterator[tuple[Any, ColumnElement[bool]]]:
    """The tables that are the target's by a column, in the order in which they are deleted."""
    yield Judgment, Judgment.item_id.in_(target.item_ids)
    yield StudyItem, StudyItem.item_id.in_(target.item_ids)
    yield Item, Item.group_id.in_(target.group_ids)
    yield GroupCall, GroupCall.group_id.in_(target.group_ids)
    yield SlotText, SlotText.group_id.in_(target.group_ids)
    yield Review, Review.group_id.in_(target.group_ids)
    yield TextVerdict, TextVerdict.group_id.in_(target.group_ids)
    yield GroupVerdict, GroupVerdict.group_id.in_(target.group_ids)
    yield VerdictVersion, VerdictVersion.run_id.in_(target.run_ids)
    yield Group, Group.run_id.in_(target.run_ids)
    yield Run, Run.id.in_(target.run_ids)
    if target.run is None:
        of_dataset = select(Pair.id).where(Pair.dataset_id == target.dataset.id)
        yield PairNegative, PairNegative.pair_id.in_(of_dataset)
        yield Pair, Pair.dataset_id == target.dataset.id
        yield Passage, Passage.dataset_id == target.dataset.id
        yield Dataset, Dataset.id == target.dataset.id


def _delete(session: Session, target: Target) -> dict[str, int]:
    """Delete all of it; returns the rows of each table. Does not commit."""
    rows: dict[str, int] = {}

    def count(table: type[Base], number: int) -> None:
        if number:
            rows[table.__tablename__] = rows.get(table.__tablename__, 0) + number

    calls = _ids(session, select(GroupCall.call_id).where(GroupCall.group_id.in_(target.group_ids)))
    run_ids = {str(one) for one in session.scalars(target.run_ids)}
    # these are empty: nobody judged in them (`db.archive.dependents`)
    studies = _ids(session, select(Study.id).where(studies_of(target)))
    count(Study, _delete_ids(session, Study, studies))
    analyses = [
        analysis.id
        for analysis in session.execute(select(Analysis.id, Analysis.config, Analysis.dataset_id))
        if _is_about(analysis.config, analysis.dataset_id, target, run_ids)
    ]
    count(Analysis, _delete_ids(session, Analysis, analyses))
    for table, condition in _parts(target):
        count(table, _deleted(session, delete(table).where(condition)))
    if target.run is not None:
        count(Passage, _delete_free_passages(session, target.dataset.id))
    unused = ~exists().where(GroupCall.call_id == Call.id)
    count(Call, _delete_ids(session, Call, calls, unused))
    session.expire_all()
    return rows


def _is_about(
    config: dict[str, Any], dataset_id: int | None, target: Target, run_ids: set[str]
) -> bool:
    if target.run is not None:
        return str(config.get("run")) in run_ids
    return dataset_id == target.dataset.id or target.dataset.name in (config.get("datasets") or ())


def _ids(session: Session, query: Select[int]) -> list[int]:
    return sorted(set(session.scalars(query)))


def _delete_free_passages(session: Session, dataset_id: int) -> int:
    """Delete generated passages that nothing left of a dataset uses: those of its groups, and those
    that an edit or a backup replaced there, which stood in their items alone."""
    used = (SlotText.passage_id, Pair.passage_id, PairNegative.passage_id)
    free = select(Passage.id).where(
        Passage.dataset_id == dataset_id,
        Passage.origin == "generated",
        *(~exists().where(column == Passage.id) for column in used),
    )
    ids = set(session.scalars(free))
    of_items = select(Item.candidates).join(Group).join(Run).where(Run.dataset_id == dataset_id)
    for candidates in session.scalars(of_items.execution_options(yield_per=CHUNK)) if ids else ():
        ids.difference_update(each.get("passage_id") for each in candidates)
    return _delete_ids(session, Passage, sorted(ids))


def _delete_ids(
    session: Session, table: Any, ids: Sequence[int], *conditions: ColumnElement[bool]
) -> int:
    number = 0
    for start in range(0, len(ids), CHUNK):
        part = table.id.in_(ids[start : start + CHUNK])
        number += _deleted(session, delete(table).where(part, *conditions))
    return number


def _deleted(session: Session, statement: Delete) -> int:
    """How many rows the statement deletes."""
    done = session.execute(statement, execution_options={"synchronize_session": False})
    assert isinstance(done, CursorResult)
    return done.rowcount
