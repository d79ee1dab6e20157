"""A study that closes with its last answer, and how a judge then agrees with the validator."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session

from db.assignment.eligibility import eligible_items
from db.events import record_event
from db.study.judgments import judgments_that_count
from db.study.rules import rules_of
from db.study.run_items import validator_choices
from db.study.studies import get_study
from db.tables import Assignment, Item, Judgment, Study, StudyItem, StudyJudge


@dataclass(frozen=True)
class OwnChoice:
    """One answer next to the validator's on the same item; choices are roles or `none`."""

    item_id: int
    instruction: str
    query: str
    scenario: str
    own: str
    validator: str

    @property
    def is_same(self) -> bool:
        return self.own == self.validator


def close_when_done(session: Session, study: Study) -> bool:
    """Close the study if its rules say so and no place is free or held; whether it is closed.

    A free place of hidden gold counts while a member may be given it: who approved its group never
    is. The caller holds the study's lock (`lock_study`). Does not commit.
    """
    if study.status != "open" or not rules_of(study).closes_when_done:
        return study.status == "closed"
    free = select(StudyItem.item_id).where(
        StudyItem.study_id == study.id,
        or_(StudyItem.places.is_(None), StudyItem.taken < StudyItem.places),
    )
    main, gold = (free.where(StudyItem.part == part) for part in ("main", "gold"))
    held = select(Assignment.id).where(
        Assignment.study_id == study.id, Assignment.state == "leased"
    )
    if session.scalar(select(or_(exists(main), exists(held)))):
        return False
    if _some_member_may_get(session, study.id, session.scalars(gold).all()):
        return False
    study.status = "closed"
    session.flush()
    record_event(session, study.created_by, "study.finished", study.id)
    return True


def _some_member_may_get(session: Session, study_id: int, item_ids: Sequence[int]) -> bool:
    """Whether a member who is given items now, neither paused nor in the qualification, may be
    given one of these."""
    if not item_ids:
        return False
    examples = select(StudyItem.item_id).where(
        StudyItem.study_id == study_id, StudyItem.part == "training"
    )
    members = select(StudyJudge.judge_id).where(
        StudyJudge.study_id == study_id,
        StudyJudge.state == "active",
        or_(StudyJudge.passed_at.is_not(None), ~exists(examples)),
    )
    judge_ids = session.scalars(members).all()
    return any(eligible_items(session, study_id, each, item_ids) for each in judge_ids)


def own_choices(session: Session, study_id: int, judge_id: int) -> list[OwnChoice]:
    """The judge's answers of part main that the run's validator gave too, in their order.

    Empty while the study is not closed: an answer that may still change must not see another.
    """
    study = get_study(session, study_id)
    if study.status != "closed" or study.run_id is None:
        return []
    validator = validator_choices(session, study.run_id)
    rows = session.execute(
        judgments_that_count(
            study_id,
            Judgment.item_id,
            Item.instruction,
            Item.query,
            Item.scenario,
            Judgment.choice,
        )
        .join(Item, Item.id == Judgment.item_id)
        .where(Judgment.judge_id == judge_id)
        .order_by(Judgment.id)
    )
    return [
        OwnChoice(item_id, instruction, query, scenario, own, validator[item_id])
        for item_id, instruction, query, scenario, own in rows
        if item_id in validator
    ]
