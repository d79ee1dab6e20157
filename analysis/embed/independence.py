"""The validator of a run as a judge of its study, or as the model of its map: no check of it."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.embed.model_hash import NamedModel, named_model, same_model
from analysis.found.texts import CoverageFound
from db.outcome.independence import validators_of
from db.run.runs import get_run
from db.study.studies import get_study
from db.tables import Judge


def validator_models(session: Session, run_id: int) -> dict[str, NamedModel]:
    """The models that validated a run, or will, by the judge's name, else by the model's own.

    The hash is the one that the run's first worker recorded, which holds also where the model was
    moved, deleted or trained anew since; else that of the weights on this machine.
    """
    validators = validators_of(session, run_id)
    recorded = get_run(session, run_id).models.get("validation") or {}
    name, sha256 = recorded.get("model"), recorded.get("sha256")
    if name and not validators:
        validators = {name: name}
    is_only = len(validators) == 1
    return {
        judge: named_model(model, sha256 if is_only or model == name else None)
        for judge, model in validators.items()
    }


def map_sentence(session: Session, result: CoverageFound) -> str:
    """Which of a map's runs were validated by the model that embeds it, by the content of weights
    or by name, what follows, and what would be independent; empty for none.

    result: of a stored map.
    """
    model = named_model(result.model, result.model_sha256)
    found = []
    for run_id in sorted({each.run_id for each in result.corpora if each.run_id}):
        if any(same_model(model, of) for of in validator_models(session, run_id).values()):
            found.append(str(run_id))
    if not found:
        return ""
    runs = f"run {found[0]}" if len(found) == 1 else f"runs {', '.join(found)}"
    return (
        f"Circular: {model.name} embeds this map and is the validator that chose the groups of "
        f"{runs}, so the texts lie where that model wants them. Independent is a map by another "
        "model."
    )


def validator_sentence(session: Session, study_id: int, judges: Iterable[str]) -> str:
    """Which of these judges are the run's validator, by name or by the content of their weights,
    what follows, and who would be independent; empty for none. Raises NotFound."""
    study = get_study(session, study_id)
    validators = {} if study.run_id is None else validator_models(session, study.run_id)
    names = list(judges)
    rows = session.execute(
        select(Judge.name, Judge.model).where(Judge.name.in_(names), Judge.kind == "model")
    )
    found = sorted(
        name
        for name, model in rows
        if name in validators
        or any(same_model(named_model(model or ""), each) for each in validators.values())
    )
    if not found:
        return ""
    are = "is" if len(found) == 1 else "are"
    return (
        f"{', '.join(found)} {are} the validator that chose this run's groups: agreement with "
        "people describes the filter and is no independent check of it. To check it, compare "
        "people with each other or with another model."
    )
