"""Which version of a study's guidelines a judge has before them: answers are stored under it.

The version that the page drew beside a judge's first item is recorded as read; a later one when
they acknowledge it, and until then they are given nothing new. The card names with each answer the
version that it showed: one given before, which arrives after, keeps the version it was given under.
"""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.assignment.places import lock_study
from db.assignment.standing import Standing
from db.errors import BadInput
from db.tables import Guideline, GuidelineReading


def has_new_guidelines(here: Standing) -> bool:
    """Whether the judge has to acknowledge the newest version before the next item: one that was
    written since they began; who was recruited, also the first."""
    if here.read_version is None:
        return is_recruit(here)
    return here.read_version < here.newest_version


def is_recruit(here: Standing) -> bool:
    """Whether a platform sent the judge: nobody of the team has met them."""
    return here.member is not None and here.member.worker is not None


def record_shown(session: Session, here: Standing, shown: int | None = None) -> None:
    """Record the version that was shown to a judge who begins, else the newest one, as read.

    A recruit acknowledges it. Raises BadInput for a version that the study does not have. Does not
    commit.
    """
    if here.read_version is None and not is_recruit(here):
        version = here.newest_version if shown is None else shown
        here.read_guideline_id = _record(session, here.study.id, here.judge.id, version)
        here.read_version = version


def acknowledge(session: Session, study_id: int, judge_id: int, version: int) -> None:
    """Record that a judge has read a version; twice is once. Does not commit.

    Raises BadInput for a version that the study does not have.
    """
    lock_study(session, study_id)  # a second tab may send the same
    _record(session, study_id, judge_id, version)


def last_read(session: Session, study_id: int, judge_id: int) -> Guideline | None:
    """The newest version of a study's guidelines that a judge has read; None before the first."""
    return session.scalar(
        select(Guideline)
        .join(GuidelineReading, GuidelineReading.guideline_id == Guideline.id)
        .where(Guideline.study_id == study_id, GuidelineReading.judge_id == judge_id)
        .order_by(Guideline.version.desc())
        .limit(1)
    )


def versions_read(session: Session, study_id: int) -> dict[int, int]:
    """The newest version that each judge of a study has read, by judge."""
    query = (
        select(GuidelineReading.judge_id, func.max(Guideline.version))
        .join(Guideline, Guideline.id == GuidelineReading.guideline_id)
        .where(Guideline.study_id == study_id)
        .group_by(GuidelineReading.judge_id)
    )
    return dict(session.execute(query).all())


def version_shown(session: Session, here: Standing, version: int | None) -> int:
    """The id of the version that an answer was given under; the last one read if it names none.

    Raises BadInput for a version that the judge cannot have been shown.
    """
    read = here.read_version or here.newest_version
    if version is not None and not 1 <= version <= read:
        raise BadInput(
            f"the answer names version {version} of the guidelines, which was not shown",
            code="malformed",
        )
    if version in (None, here.read_version) and here.read_guideline_id is not None:
        return here.read_guideline_id
    return _guideline(session, here.study.id, version or read)


def _record(session: Session, study_id: int, judge_id: int, version: int) -> int:
    guideline_id = _guideline(session, study_id, version)
    if session.get(GuidelineReading, (guideline_id, judge_id)) is None:
        session.add(GuidelineReading(guideline_id=guideline_id, judge_id=judge_id))
        session.flush()
    return guideline_id


def _guideline(session: Session, study_id: int, version: int) -> int:
    found = session.scalar(
        select(Guideline.id).where(Guideline.study_id == study_id, Guideline.version == version)
    )
    if found is None:
        raise BadInput(
            f"study {study_id} has no version {version} of its guidelines", code="malformed"
        )
    return found
