"""What Home reads: the quality of a dataset's newest run, study and model.

Every figure is read under the permission of the page that shows it, so Home tells nobody more than
that page does. What is computed is cached by the version of its data, and only over few enough
rows that Home stays fast; the Agreement page computes the rest.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import streamlit as st
from sqlalchemy.orm import Session

from analysis.agreement.agreement import report_of
from analysis.agreement.answers import number_decisions
from analysis.agreement.judgment_filter import study_decisions
from analysis.figures.paired import Difference, paired_difference
from app.access.identity import SessionUser
from app.access.permissions import NEEDS
from app.access.scope import scope_kept, work_under
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
from app.home.seen_actions import SeenStudies
from app.kit.frame.dataset_actions import PageDataset
from app.operations.evaluations import circular_sentences
from curation.judging.about_run import NO_RUN, about_run
from curation.judging.agreement import MAX_LIVE, reader_of, stored_agreement
from curation.run.leakage import stored_leakage, why_outdated
from db.outcome.checkpoints import list_checkpoints
from db.outcome.evaluations import Scored, get_evaluation, newest_scores
from db.outcome.independence import validators_of
from db.run.runs import RunSummary, list_runs
from db.store.store import open_store
from db.study.judgments import JudgmentState, judgment_state
from db.study.quality import flagged_people
from db.study.rules import rules_of
from db.study.run_items import estimate_state
from db.study.studies import StudySummary, get_study
from db.tables import Checkpoint
from trainer.evaluate.following import INSTRUCTION_FLIP
from trainer.report.compared.conditions import unlike
from trainer.report.compared.trained import index_stays

T = TypeVar("T")
MAX_GROUPS: Final = 5_000  # of a run whose precision is estimated here

NO_STUDY = "No study has judgments yet."
NO_FLIP = "No trained model is evaluated on held-out groups yet."
PEOPLE, MODEL = "Agreement, people–people", "Agreement, people–model"


class Found(NamedTuple):
    """The quality line, and how far the study is that it is of."""

    quality: Quality
    judged: Judged | None


def read_quality(
    user: SessionUser, dataset: PageDataset | None = None, seen: SeenStudies | None = None
) -> Found:
    """The figures of the newest run with finished groups, its study, and the newest model; None
    for each that the user has no right to see. Of the dataset, or without one of all."""
    seen = seen or SeenStudies(user)
    number = None if dataset is None else dataset.id
    runs = _under(user, "curate", lambda session: list_runs(session, number, archived=True))
    kept, leakage, run = None, None, None
    if runs is not None:
        run = next((one for one in runs if one.kept + one.dropped and not one.archived), None)
        kept, leakage = kept_light(None, 0, 0, 0), leakage_light(None, None)
    if run is not None:
        is_done = run.status == "done"
        kept = kept_light(run.id, run.pairs, run.kept, run.dropped, is_done=is_done)
        report = _under(user, "curate", lambda session: stored_leakage(session, run.id))
        outdated = _under(user, "curate", lambda session: why_outdated(session, run.id))
        leakage = leakage_light(run.id, report, outdated or "")
    precision, people, model, judged = None, None, None, None
    if NEEDS["studies"].is_met(user):
        study = newest_judged(_of_dataset(seen.under("studies"), dataset), run)
        precision, people, model = _agreement_lights(user, study, runs or [])
        judged = None if study is None else _judged_of(user, study, seen)
    flip = _flip(user, number)
    return Found(Quality(kept, leakage, precision, people, model, flip), judged)


def _of_dataset(studies: Sequence[StudySummary], dataset: PageDataset | None) -> list[StudySummary]:
    return [one for one in studies if dataset is None or one.dataset == dataset.name]


def _judged_of(user: SessionUser, study: StudySummary, seen: SeenStudies) -> Judged:
    other_id = next(
        (
            one.id
            for one in seen.under("studies", "open")
            if one.dataset == study.dataset
            and one.id != study.id
            and one.done < one.places
            and not _is_own(user, one)
        ),
        None,
    )
    return Judged(
        study.id,
        study.done,
        study.places,
        is_own=NEEDS["judge"].is_met(user) and _is_own(user, study),
        is_closed=study.status == "closed",
        other_id=other_id,
    )


def _is_own(user: SessionUser, study: StudySummary) -> bool:
    """Whether it closes with its judge's last answer."""
    rules = _under(user, "studies", lambda session: rules_of(get_study(session, study.id)))
    return rules is not None and rules.closes_when_done


def newest_judged(studies: Sequence[StudySummary], run: RunSummary | None) -> StudySummary | None:
    """The study to show: the newest that people judged, of this run if there is one; else the
    newest. `studies`: newest first."""
    ranked = sorted(
        studies,
        key=lambda each: (each.done > 0, run is not None and each.run_id == run.id),
        reverse=True,
    )
    return ranked[0] if ranked else None


def _under(user: SessionUser, permission: str, read: Callable[[Session], T]) -> T | None:
    """What `read` finds under the permission; None for who lacks it."""
    if not NEEDS[permission].is_met(user):
        return None
    with scope_kept():
        work_under(user, permission)
        with open_store().read() as session:
            return read(session)


def _agreement_lights(
    user: SessionUser, study: StudySummary | None, runs: Sequence[RunSummary]
) -> tuple[Light, Light, Light]:
    if study is None:
        return _unknown(None, NO_STUDY)
    found = _under(user, "studies", lambda session: _judged(session, study.id, user.name))
    assert found is not None  # the study was read under the same permission
    state, report, is_hidden = found
    if is_hidden:
        return _unknown(study.id, HIDDEN)
    if report is None:
        return _unknown(study.id, TOO_MANY)
    flags = tuple(report["flagged"].items())
    version = (str(open_store().engine.url), study.id, state, flags)
    about, why_not = None, NO_RUN.capitalize() + "."
    run = next((one for one in runs if one.id == study.run_id), None)
    if study.run_id is not None:
        why_not = TOO_MANY
        if run is not None and run.pairs <= MAX_GROUPS and state.judgments <= MAX_LIVE:
            about = _under(user, "studies", lambda session: _estimated(session, study.id, version))
    validators: dict[str, str] = {}
    if study.run_id is not None:
        number = study.run_id
        validators = _under(user, "studies", lambda session: validators_of(session, number)) or {}
    of_models = report["human_model"]
    shared = {
        name: int(each["items"]) for name, each in of_models.items() if each["value"] is not None
    }
    chosen, whose = model_to_show(shared, validators)
    simulated = bool(report["simulated"])
    return (
        precision_light(study.id, about, why_not),
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


def _judged(
    session: Session, study_id: int, person: str
) -> tuple[JudgmentState, dict[str, Any] | None, bool]:
    """The study's report, None where it is too large and none is stored; and whether figures are
    hidden from the person, as on Agreement."""
    state = judgment_state(session, study_id)
    if reader_of(session, study_id, person).is_blind:
        return state, None, True
    if state.judgments > MAX_LIVE:
        stored = stored_agreement(session, study_id)
        return state, None if stored is None else stored.result["report"], False
    flags = tuple(flagged_people(session, study_id).items())
    return state, _agreement(study_id, (str(open_store().engine.url), state, flags)), False


@st.cache_data(max_entries=16, show_spinner=False)
def _agreement(study_id: int, version: tuple[object, ...]) -> dict[str, Any]:
    """The report without intervals, whose posterior draws take seconds."""
    with open_store().read() as session:
        answers = number_decisions(study_decisions(session, study_id))
        return report_of(answers, flagged_people(session, study_id), 0)


def _estimated(session: Session, study_id: int, version: tuple[object, ...]) -> dict[str, Any]:
    return _about(study_id, (*version, estimate_state(session, study_id)))


@st.cache_data(max_entries=16, show_spinner=False)
def _about(study_id: int, version: tuple[object, ...]) -> dict[str, Any]:
    with open_store().read() as session:
        return about_run(session, study_id)


def _flip(user: SessionUser, dataset_id: int | None) -> Light | None:
    scores = _under(user, "evaluate", newest_scores)
    if scores is None:
        return None
    own = None
    if dataset_id is not None:
        number = dataset_id
        found = _under(user, "evaluate", lambda s: list_checkpoints(s, dataset_id=number))
        own = {each.id for each in found or ()}
    base, trained = newest_pair(scores, own)
    if trained is None:
        return flip_light(None, None, None, NO_FLIP)
    after = float(trained.metrics[INSTRUCTION_FLIP])
    if base is None:
        return flip_light(None, after, None, f"{trained.base_model} is not evaluated on it")
    before = float(base.metrics[INSTRUCTION_FLIP])
    url, first, second = str(open_store().engine.url), base.evaluation_id, trained.evaluation_id
    assert first is not None and second is not None  # both are stored
    compared = _under(user, "evaluate", lambda _: _difference(url, first, second))
    assert compared is not None  # the scores were read under the same permission
    difference, why_not = compared
    circular = _under(
        user, "evaluate", lambda session: circular_sentences(session, [base, trained])
    )
    checkpoint = _under(
        user, "evaluate", lambda session: session.get(Checkpoint, trained.checkpoint_id)
    )
    stays = index_stays(checkpoint)
    seed = None if checkpoint is None else checkpoint.config.get("seed")
    return flip_light(before, after, difference, why_not, circular or (), stays, seed=seed)


def newest_pair(
    scores: Sequence[Scored], checkpoints: Collection[int] | None = None
) -> tuple[Scored | None, Scored | None]:
    """The evaluation of the base model and that of the newest trained model, on the benchmark
    where that was measured last; None where there is none. Of these checkpoints, or all."""
    measured = [each for each in scores if each.metrics.get(INSTRUCTION_FLIP) is not None]
    trained = [
        each
        for each in measured
        if each.checkpoint_id is not None
        and (checkpoints is None or each.checkpoint_id in checkpoints)
    ]
    if not trained:
        return None, None
    newest = max(trained, key=lambda each: (each.checkpoint_id or 0, each.evaluation_id or 0))
    base = next(
        (
            each
            for each in measured
            if each.model == newest.base_model and each.benchmark == newest.benchmark
        ),
        None,
    )
    return base, newest


@st.cache_data(max_entries=16, show_spinner=False)
def _difference(url: str, base_id: int, trained_id: int) -> tuple[Difference | None, str]:
    """The paired difference, or why the two may not be compared; evaluations never change."""
    with open_store().read() as session:
        base, trained = get_evaluation(session, base_id), get_evaluation(session, trained_id)
        if reasons := unlike(base, [trained]).get(trained.id):
            return None, ", ".join(reasons)
        questions = trained.questions or base.questions
        found = paired_difference(base.per_query, trained.per_query, INSTRUCTION_FLIP, questions)
    return found, ""
