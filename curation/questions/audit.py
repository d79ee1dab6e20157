"""The audit of a study's records, read from the store: see `analysis.study.audit`."""

from collections.abc import Collection
from typing import Any

from sqlalchemy.orm import Session

from analysis.agreement.answers import PERSON
from analysis.study.audit import AuditAnswer, audit_report
from db.question import about_of
from db.study.judgments import judgments_that_count
from db.tables import Item, Judge, Judgment, Question

NO_PASSAGE = ("query", "instruction")


def study_audit(
    session: Session,
    study_id: int,
    *,
    questions: Collection[str] = (),
    left_out: Collection[int] = (),
    resamples: int,
) -> dict[str, Any]:
    """The audit by people: real ones, or where none has judged, simulated ones.

    `questions`: the keys of those that count, all where it is empty.
    """
    query = (
        judgments_that_count(
            study_id,
            Item.id,
            Item.group_id,
            Item.scenario,
            Item.expected,
            Question.name,
            Question.kind,
            Judge.name,
            Judge.simulated,
            Judgment.choice,
        )
        .join(Item, Item.id == Judgment.item_id)
        .join(Question, Question.id == Item.question_id)
        .where(Judge.kind == PERSON)
        .order_by(Item.group_id, Item.id, Judge.name)
    )
    if questions:
        query = query.where(Question.name.in_(questions))
    rows = [row for row in session.execute(query) if row[0] not in left_out]
    real = [row for row in rows if not row[7]] or rows
    answers = []
    for _, record, place, expected, question, kind, judge, _, answer in real:
        label = about_of(place)
        label = "" if label in NO_PASSAGE else label
        answers.append(AuditAnswer(record, question, kind, label, expected, judge, answer))
    return audit_report(answers, resamples)
