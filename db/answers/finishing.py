"""A study that closes with its last answer, and how a judge then agrees with the validator."""

from dataclasses import dataclass

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session

from db.study.judgments import judgments_that_count
from db.study.rules import rules_of
from db.study.run_items import validator_choices
from db.study.studies import get_study
from db.tables import Assignment, Item, Judgment, Study, StudyItem


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

    The caller holds the study's lock (`lock_study`). Does not commit.
    """
    if study.status != "open" or not rules_of(study).closes_when_done:
        return study.status == "closed"
    free = select(StudyItem.item_id).where(
        StudyItem.study_id == study.id,
        StudyItem.part != "training",
        or_(StudyItem.places.is_(None), StudyItem.taken < StudyItem.places),
    )
    held = select(Assignment.id).where(
        Assignment.study_id == study.id, Assignment.state == "leased"
    )
    if session.scalar(select(or_(exists(free), exists(held)))):
        return False
    study.status = "closed"
    session.flush()
    return True


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
