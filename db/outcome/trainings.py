"""Jobs of kind `train`: of a sweep or search, or but for those on some releases."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from db.home import as_stored
from db.tables import Job

RELEASE, SWEEP = Job.config["release"].as_string(), Job.config["sweep"].as_string()


def list_trainings(
    session: Session,
    *,
    without_releases: Collection[str] = (),
    sweep: str | None = None,
    limit: int | None = 100,
    offset: int = 0,
) -> list[Job]:
    """Trainings, newest first: all, or those of a sweep or search.

    without_releases: numbers and folders of releases whose trainings are left out.
    """
    query = select(Job).where(*_conditions(without_releases, sweep)).order_by(Job.id.desc())
    return list(session.scalars(query.limit(limit).offset(offset)))


def count_trainings(session: Session, *, without_releases: Collection[str] = ()) -> int:
    """How many trainings `list_trainings` lists in all."""
    query = select(func.count()).select_from(Job).where(*_conditions(without_releases, None))
    return session.scalar(query) or 0


def list_sweeps(session: Session) -> list[str]:
    """The names of sweeps and searches, the one with the newest training first."""
    query = select(SWEEP).where(*_conditions((), None), SWEEP.is_not(None))
    return list(session.scalars(query.group_by(SWEEP).order_by(func.max(Job.id).desc())))


def _conditions(without: Collection[str], sweep: str | None) -> list[ColumnElement[bool]]:
    found = [Job.kind == "train"]
    if without:
        found.append(or_(RELEASE.is_(None), RELEASE.not_in(as_stored(list(without)))))
    if sweep is not None:
        found.append(sweep == SWEEP)
    return found
