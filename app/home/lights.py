"""The lights of Home's quality line, from what was measured."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from app.access.identity import SessionUser
from app.home.path import Judged
from app.home.quality import (
    HIDDEN,
    TOO_MANY,
    Light,
    Quality,
    agreement_light,
    flip_light,
    kept_light,
    leakage_light,
    precision_light,
)
from app.models.verdict import shared_with_control
from app.operations.overview.frame import PageDataset
from app.operations.overview.home import SeenStudies
from app.operations.overview.quality import Figures, OfModel, OfRun, OfStudy, figures
from curation.judging.about_run import NO_RUN
from trainer.evaluate.following import INSTRUCTION_CONTROL, INSTRUCTION_FLIP
from trainer.report.compared.measures import index_stays

NO_STUDY = "No study has judgments yet."
NO_FLIP = "No trained model is evaluated on held-out groups yet."
PEOPLE, MODEL = "Agreement, people–people", "Agreement, people–model"


class Found(NamedTuple):
    """The quality line, how far the study is that it is of, and the figures behind both."""

    quality: Quality
    judged: Judged | None
    figures: Figures


def read_quality(
    user: SessionUser, dataset: PageDataset | None = None, seen: SeenStudies | None = None
) -> Found:
    """The figures of the newest run with finished groups, its study, and the newest model; None
    for each that the user has no right to see. Of the dataset, or without one of all."""
    found = figures(user, dataset, seen or SeenStudies(user))
    kept, leakage, precision, people, model, judged = None, None, None, None, None, None
    if found.of_run is not None:
        kept, leakage = _run_lights(found.of_run)
    if found.of_study is not None:
        precision, people, model = _agreement_lights(found.of_study)
        judged = _judged(found.of_study)
    flip = None if found.of_model is None else _flip(found.of_model)
    return Found(Quality(kept, leakage, precision, people, model, flip), judged, found)


def _run_lights(found: OfRun) -> tuple[Light, Light]:
    run = found.run
    if run is None:
        return kept_light(None, 0, 0, 0), leakage_light(None, None)
    is_done = run.status == "done"
    return (
        kept_light(run.id, run.pairs, run.kept, run.dropped, is_done=is_done),
        leakage_light(run.id, found.leakage, found.outdated),
    )


def _judged(found: OfStudy) -> Judged | None:
    study = found.study
    if study is None:
        return None
    return Judged(
        study.id,
        study.done,
        study.places,
        is_own=found.is_own,
        is_closed=study.status == "closed",
        other_id=found.other_id,
    )


def _agreement_lights(found: OfStudy) -> tuple[Light, Light, Light]:
    study, report = found.study, found.report
    if study is None:
        return _unknown(None, NO_STUDY)
    if found.is_hidden:
        return _unknown(study.id, HIDDEN)
    if report is None:
        return _unknown(study.id, TOO_MANY)
    why_not = NO_RUN.capitalize() + "." if study.run_id is None else TOO_MANY
    of_models = report["human_model"]
    shared = {
        name: int(each["items"]) for name, each in of_models.items() if each["value"] is not None
    }
    chosen, whose = model_to_show(shared, found.validators)
    simulated = bool(report["simulated"])
    return (
        precision_light(study.id, found.about, why_not),
        agreement_light(PEOPLE, study.id, report["human_human"], why_not="", simulated=simulated),
        agreement_light(
            MODEL if chosen is None else f"{MODEL} ({chosen})",
            study.id,
            of_models[chosen] if chosen else next(iter(of_models.values()), None),
            why_not="",
            simulated=simulated,
            whose=whose,
        ),
    )


def model_to_show(shared: Mapping[str, int], validators: Collection[str]) -> tuple[str | None, str]:
    """The model whose agreement with people is shown, and what it is; None where there is none.

    The run's validator, as it chose the data; else the model that judged most items with people.
    Never the one that agrees best: of several, the best one looks better than it is.
    shared: by model with a kappa, the number of items that people judged, too.
    """
    ranked = sorted(shared, key=lambda name: (name not in validators, -shared[name], name))
    if not ranked:
        return None, ""
    if ranked[0] in validators:
        return ranked[0], "the run's validator"
    if len(ranked) == 1:
        return ranked[0], "the only model judge"
    return ranked[0], "the model judge of the most items"


def _unknown(study_id: int | None, why: str) -> tuple[Light, Light, Light]:
    return (
        precision_light(study_id, None, why),
        agreement_light(PEOPLE, study_id, None, why_not=why),
        agreement_light(MODEL, study_id, None, why_not=why),
    )


def _flip(found: OfModel) -> Light:
    base, trained, checkpoint = found.base, found.trained, found.checkpoint
    if trained is None:
        return flip_light(None, None, None, NO_FLIP)
    after = float(trained.metrics[INSTRUCTION_FLIP])
    if base is None:
        return flip_light(None, after, None, f"{trained.base_model} is not evaluated on it")
    ends = base.metrics.get(INSTRUCTION_CONTROL), trained.metrics.get(INSTRUCTION_CONTROL)
    low = found.difference.low if found.difference else None
    shared = shared_with_control(*ends, low)
    return flip_light(
        float(base.metrics[INSTRUCTION_FLIP]),
        after,
        found.difference,
        found.why_not,
        (*found.circular, *([shared] if shared else [])),
        index_stays(checkpoint),
        seed=None if checkpoint is None else checkpoint.config.get("seed"),
    )
