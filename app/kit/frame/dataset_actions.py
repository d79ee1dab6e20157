"""What the frame reads: the datasets that a page may be about, and whose row an address names."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.access.identity import SessionUser
from app.access.scope import scope_kept, work_under
from db.release.releases import datasets_of_release
from db.store.store import open_store
from db.tables import Analysis, Dataset, Group, Release, Run, Study

MAX_DIGITS: Final = 9  # of a row's number in an address: a larger one is no PostgreSQL integer


class PageDataset(NamedTuple):
    """The dataset that a page is about."""

    id: int
    name: str


def read_datasets(
    user: SessionUser, permission: str, parameters: Mapping[str, str]
) -> tuple[list[PageDataset], set[int]]:
    """The datasets on which the user has the permission, the one worked on last first, and the ids
    of those that the row named by an address's parameters is of."""
    worked_at = func.coalesce(func.max(Run.created_at), Dataset.created_at)
    query = (
        select(Dataset.id, Dataset.name)
        .outerjoin(Run, Run.dataset_id == Dataset.id)
        .where(Dataset.archived_at.is_(None))
        .group_by(Dataset.id)
        .order_by(worked_at.desc(), Dataset.id.desc())
    )
    with scope_kept():
        work_under(user, permission)
        with open_store().read() as session:
            found = [PageDataset(*row) for row in session.execute(query)]
            return found, _datasets_of_row(session, parameters)


def _datasets_of_row(session: Session, parameters: Mapping[str, str]) -> set[int]:
    """Empty where no row is named, or none that may be seen."""
    for name, read in ROWS.items():
        named = parameters.get(name, "")
        if named.isdecimal() and len(named) <= MAX_DIGITS and (found := read(session, int(named))):
            return found
    return set()


def _of_group(session: Session, group_id: int) -> set[int]:
    group = session.get(Group, group_id)
    return set() if group is None else _of_run(session, group.run_id)


def _of_run(session: Session, run_id: int) -> set[int]:
    run = session.get(Run, run_id)
    return set() if run is None else {run.dataset_id}


def _of_study(session: Session, study_id: int) -> set[int]:
    study = session.get(Study, study_id)
    return set() if study is None else {study.dataset_id}


def _of_release(session: Session, release_id: int) -> set[int]:
    release = session.get(Release, release_id)
    return set() if release is None else datasets_of_release(session, release)


def _of_analysis(session: Session, analysis_id: int) -> set[int]:
    """Of one over several corpora none: any dataset may have been compared there."""
    query = select(Analysis.dataset_id).where(Analysis.id == analysis_id)
    return {one for one in session.scalars(query) if one is not None}


ROWS: Final[Mapping[str, Callable[[Session, int], set[int]]]] = {
    "group": _of_group,
    "run": _of_run,
    "study": _of_study,
    "release": _of_release,
    "analysis": _of_analysis,
}
