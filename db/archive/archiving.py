"""Archiving a dataset or a run, and bringing it back.

What is archived stays in the store: lists and pages hide it, and nothing new is made from it
(imports, runs, studies, releases, reviews), so that it can be purged later without loss.
"""

from sqlalchemy.orm import Session

from db.archive.dependents import dependents
from db.archive.target import Target, lock_target, require_curate, target_of
from db.errors import Refused
from db.events import record_event
from db.people.rights import Rights
from db.tables import utc_now


def archive(
    session: Session,
    *,
    dataset: str | None = None,
    run_id: int | None = None,
    rights: Rights,
    actor: str,
) -> Target:
    """Archive the dataset of that name, or the run of that id. Does not commit.

    Raises NotFound, and Refused without the right to curate it, if it is archived already, or if
    something depends on it, which the message lists.
    """
    target = target_of(session, dataset=dataset, run_id=run_id)
    require_curate(rights, target)
    lock_target(session, target)
    if target.row.archived_at is not None:
        raise Refused(f"{target.title} is archived already", code="already_archived")
    require_independent(session, target)
    target.row.archived_at = utc_now()
    record_event(session, actor, f"{target.kind}.archive", target.subject)
    session.flush()
    return target


def unarchive(
    session: Session,
    *,
    dataset: str | None = None,
    run_id: int | None = None,
    rights: Rights,
    actor: str,
) -> Target:
    """Bring an archived dataset or run back. Does not commit.

    Raises NotFound, and Refused without the right to curate it, if it is not archived, or, for a
    run, if its dataset is.
    """
    target = target_of(session, dataset=dataset, run_id=run_id)
    require_curate(rights, target)
    lock_target(session, target)
    if target.run is not None and target.dataset.archived_at is not None:
        raise Refused(
            f"run {target.run.id} is of dataset {target.dataset.name!r}, which is archived",
            "bring the dataset back first (`datasets unarchive`)",
            code="run_dataset_archived",
        )
    if target.row.archived_at is None:
        raise Refused(f"{target.title} is not archived", code="not_archived")
    target.row.archived_at = None
    record_event(session, actor, f"{target.kind}.unarchive", target.subject)
    session.flush()
    return target


def require_independent(session: Session, target: Target) -> None:
    """Raise Refused if something depends on it; the message lists what."""
    if found := dependents(session, target):
        listed = "\n".join(f"  {sentence}" for sentence in found)
        raise Refused(
            f"{target.title} cannot be deleted: other things depend on it\n{listed}",
            "remove those first",
            code="deletion_blocked_by_dependents",
        )
