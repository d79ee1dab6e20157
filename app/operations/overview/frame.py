"""What stands around every page: the dataset it is about, and the tour."""

import logging
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.access.identity import Actor
from app.operations.acting import reading, writing
from db.people import tours
from db.release.releases import datasets_of_release
from db.tables import Analysis, Dataset, Group, Release, Run, Study

log = logging.getLogger("inf.app")
ON_TOUR: Final = "jobs"  # the right of who sees the tour
MAX_DIGITS: Final = 9  # of a row's number in an address: a larger one is no PostgreSQL integer


class PageDataset(NamedTuple):
    """The dataset that a page is about."""

    id: int
    name: str


def datasets_of_page(
    actor: Actor, permission: str, parameters: Mapping[str, str]
) -> tuple[list[PageDataset], set[int]]:
    """The datasets on which the actor has the permission, the one worked on last first, and the ids
    of those that the row named by an address's parameters is of."""
    worked_at = func.coalesce(func.max(Run.created_at), Dataset.created_at)
    query = (
        select(Dataset.id, Dataset.name)
        .outerjoin(Run, Run.dataset_id == Dataset.id)
        .where(Dataset.archived_at.is_(None))
        .group_by(Dataset.id)
        .order_by(worked_at.desc(), Dataset.id.desc())
    )
    with reading(actor, permission) as session:
        found = [PageDataset(*row) for row in session.execute(query)]
        return found, _datasets_of_row(session, parameters)


def is_on_tour(actor: Actor) -> bool:
    """Whether the person is to see the tour; the first time, it is recorded that they do."""
    with reading(actor, ON_TOUR) as session:
        state = tours.tour_of(session, actor.name)
    if state == "new":
        try:
            with writing(actor, ON_TOUR) as session:
                tours.begin_tour(session, actor.name)
        except OperationalError as error:  # a locked store must not refuse who only reads
            log.warning("the first showing of a tour was not recorded: %s", error)
    return state != "over"


def end_tour(actor: Actor) -> None:
    """Finish or skip the tour."""
    with writing(actor, ON_TOUR) as session:
        tours.end_tour(session, actor.name)


def restart_tour(actor: Actor) -> None:
    """Take the tour again."""
    with writing(actor, ON_TOUR) as session:
        tours.restart_tour(session, actor.name)


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
