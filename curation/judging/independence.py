"""The validator of a run as a judge of its study, or as the model of its map: no check of it."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.embed.model_hash import is_same_model
from db.outcome.independence import validators_of
from db.run.runs import get_run
from db.study.studies import get_study
from db.tables import Judge


def map_sentence(session: Session, result: Mapping[str, Any]) -> str:
    """Which of a map's runs were validated by the model that embeds it, by the content of weights
    or by name, what follows, and what would be independent; empty for none.

    result: of a stored map.
    """
    model, sha256 = str(result["model"]), result.get("model_sha256")
    found = []
    for run_id in sorted({each["run_id"] for each in result["corpora"] if each.get("run_id")}):
        recorded = (get_run(session, run_id).models.get("validation") or {}).get("sha256")
        judged = any(is_same_model(model, of) for of in validators_of(session, run_id).values())
        if judged or (sha256 is not None and sha256 == recorded):
            found.append(str(run_id))
    if not found:
        return ""
    runs = f"run {found[0]}" if len(found) == 1 else f"runs {', '.join(found)}"
    return (
        f"Circular: {model} embeds this map and is the validator that chose the groups of {runs}, "
        "so the texts lie where that model wants them. Independent is a map by another model "
        "(--model)."
    )


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
