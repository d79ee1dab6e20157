"""What an answer and a lease need to know of a judge, a study and an item: each read at once.

All judges of a study wait for its lock, so what is read under it takes as few statements as
possible (`tests/app/test_submit_cost.py`). It is read after the lock was taken: only then does it
hold until the commit.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from sqlalchemy import (
    Integer,
    Select,
    String,
    and_,
    bindparam,
    exists,
    func,
    select,
)
from sqlalchemy.orm import Session, aliased

from db.assignment.hidden import STUDIED, knows_pair
from db.assignment.places import lock_studies
from db.study.studies import get_study
from db.tables import (
    Assignment,
    Guideline,
    GuidelineReading,
    Item,
    Judge,
    Judgment,
    Study,
    StudyItem,
    StudyJudge,
    utc_now,
)

STUDY, JUDGE = bindparam("study_id", type_=Integer), bindparam("judge_id", type_=Integer)


@dataclass
class Standing:
    """A judge in a study that is locked; `last_ended_at`: their last answer or skip in it.

    `member` is None before the first lease. `has_expired`: a lease of another judge has run out.
    `newest_version` of the guidelines, and the last one that the judge has read, if any.
    """

    study: Study
    judge: Judge
    member: StudyJudge | None
    newest_version: int
    read_version: int | None
    read_guideline_id: int | None
    has_examples: bool
    has_expired: bool
    last_ended_at: datetime | None

    @property
    def is_qualified(self) -> bool:
        """Whether the judge passed the qualification, or the study has none."""
        has_passed = self.member is not None and self.member.passed_at is not None
        return has_passed or not self.has_examples


@dataclass(frozen=True)
class GivenItem:
    """An item as it was given to a judge, with their current judgment on it (`earlier`).

    `known`: the judgment stored for the event, whosever it is. `was_opened`: the judge has opened a
    group of its pair, or seen others' choices on an item of it.
    """

    assignment: Assignment
    item: Item
    earlier: Judgment | None
    known: Judgment | None
    was_opened: bool


def standing(
    session: Session, study_id: int, judge_id: int, *, now: datetime | None = None
) -> Standing:
    """Lock the study and read the judge's standing in it. Raises NotFound, naming the studies."""
    judge = session.get_one(Judge, judge_id)
    return standings(session, judge, study_id, now=now)[study_id]


def standings(
    session: Session,
    judge: Judge,
    study_id: int,
    others: Collection[int] = (),
    *,
    now: datetime | None = None,
) -> dict[int, Standing]:
    """Lock a study, and those of the others that the judge is a member of; the standings by study.

    Raises NotFound if the first one is not there, naming the studies.
    """
    studies = lock_studies(session, study_id, others, judge_id=judge.id)
    if study_id not in studies:
        get_study(session, study_id)  # which names the existing ones
    values = {"study_ids": list(studies), "judge_id": judge.id, "now": now or utc_now()}
    rows = session.execute(_standings(), values)
    return {row[0]: Standing(studies[row[0]], judge, *row[1:]) for row in rows}


@cache  # built once, as every answer of every judge needs it
def _standings() -> Select[int, StudyJudge, int, int, int, bool, bool, datetime]:
    newest = select(func.max(Guideline.version)).where(Guideline.study_id == Study.id)
    read = (
        select(Guideline.version)
        .join(GuidelineReading, GuidelineReading.guideline_id == Guideline.id)
        .where(Guideline.study_id == Study.id, GuidelineReading.judge_id == JUDGE)
        .order_by(Guideline.version.desc())
        .limit(1)
    )
    examples = select(StudyItem.item_id).where(
        StudyItem.study_id == Study.id, StudyItem.part == "training"
    )
    expired = select(Assignment.id).where(
        Assignment.study_id == Study.id,
        Assignment.state == "leased",
        Assignment.lease_until < bindparam("now"),
        Assignment.judge_id != JUDGE,
    )
    ended = select(func.max(Assignment.ended_at)).where(
        Assignment.study_id == Study.id, Assignment.judge_id == JUDGE
    )
    mine = and_(StudyJudge.study_id == Study.id, StudyJudge.judge_id == JUDGE)
    return (
        select(
            Study.id,
            StudyJudge,
            newest.scalar_subquery(),
            read.scalar_subquery(),
            read.with_only_columns(Guideline.id).scalar_subquery(),
            exists(examples),
            exists(expired),
            ended.scalar_subquery(),
        )
        .outerjoin(StudyJudge, mine)
        .where(Study.id.in_(bindparam("study_ids", expanding=True)))
        # the judge may have been paused while this waited for the lock
        .execution_options(populate_existing=True)
    )


def given_item(
    session: Session,
    here: Standing,
    event_id: str,
    *,
    token: str | None = None,
    item_id: int | None = None,
) -> GivenItem | None:
    """The item of a token, or the one named, as it was given to the judge; None if it never was."""
    values = {
        "study_id": here.study.id,
        "judge_id": here.judge.id,
        "name": here.judge.name,
        "event_id": event_id,
        "token": token,
        "item_id": item_id,
    }
    found = session.execute(_given(token is not None), values).one_or_none()
    return None if found is None else GivenItem(*found)


@cache
def _given(by_token: bool) -> Select[Assignment, Item, Judgment, Judgment, bool]:
    earlier, known = aliased(Judgment), aliased(Judgment)
    named = (
        Assignment.token == bindparam("token")
        if by_token
        else Assignment.item_id == bindparam("item_id")
    )
    return (
        select(
            Assignment,
            Item,
            earlier,
            known,
            knows_pair(STUDIED.pair_id, bindparam("name", type_=String)),
        )
        .join(Item, Item.id == Assignment.item_id)
        .join(STUDIED, STUDIED.id == Item.group_id)
        .outerjoin(
            earlier,
            and_(
                earlier.judge_id == Assignment.judge_id,
                earlier.item_id == Assignment.item_id,
                earlier.is_current,
            ),
        )
        .outerjoin(known, known.event_id == bindparam("event_id", type_=String))
        .where(Assignment.study_id == STUDY, Assignment.judge_id == JUDGE, named)
        # what was read before the lock may have changed
        .execution_options(populate_existing=True)
    )
