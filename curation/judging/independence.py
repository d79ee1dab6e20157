"""Judges of a study who are the validator of its run: their agreement checks nothing."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.embed.model_hash import is_same_model
from db.outcome.independence import validators_of
from db.study.studies import get_study
from db.tables import Judge


def validator_sentence(session: Session, study_id: int, judges: Iterable[str]) -> str:
    """Which of these judges are the run's validator, by name or by the content of their weights,
    what follows, and who would be independent; empty for none. Raises NotFound."""
    study = get_study(session, study_id)
    validators = {} if study.run_id is None else validators_of(session, study.run_id)
    names = list(judges)
    rows = session.execute(
        select(Judge.name, Judge.model).where(Judge.name.in_(names), Judge.kind == "model")
    )
    found = sorted(
        name
        for name, model in rows
        if name in validators or any(is_same_model(model, each) for each in validators.values())
    )
    if not found:
        return ""
    are = "is" if len(found) == 1 else "are"
    return (
        f"{', '.join(found)} {are} the validator that chose this run's groups: agreement with "
        "people describes the filter and is no independent check of it. Independent are people's "
        "own agreement and another judge (inf study judge)."
    )
