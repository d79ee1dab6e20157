"""What Home reads: the quality of the newest run, study and model that the user may see.

Every figure is read under the permission of the page that shows it, so Home tells nobody more than
that page does. What is computed is cached by the version of its data, and only over few enough
rows that Home stays fast; the Agreement page computes the rest.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import streamlit as st
from sqlalchemy.orm import Session

from analysis.agreement.agreement import agreement_report
from analysis.agreement.judgment_filter import decisions_of
from analysis.figures.paired import Difference, paired_difference
from app.access.identity import SessionUser
from app.access.permissions import NEEDS
from app.access.scope import scope_kept, work_under
from app.home.quality import (
    HIDDEN,
    Light,
    Quality,
    flip_light,
    kappa_light,
    kept_light,
    leakage_light,
    precision_light,
)
from app.models.compared.conditions import unlike
from curation.judging.about_run import NO_RUN, about_run, rows_of_people
from curation.run.leakage import stored_leakage
from db.assignment.hidden import hidden_items_of_study
from db.assignment.members import is_member
from db.outcome.evaluations import Scored, get_evaluation, newest_scores
from db.run.runs import RunSummary, list_runs
from db.store.store import open_store
from db.study.judgments import JudgmentRow, JudgmentState, judgment_frame, judgment_state
from db.study.rules import rules_of
from db.study.studies import StudySummary, get_study, list_studies
from trainer.evaluate.following import INSTRUCTION_FLIP

T = TypeVar("T")
MAX_JUDGMENTS: Final = 20_000
MAX_GROUPS: Final = 5_000  # of a run whose precision is estimated here
TOO_MANY = "Too many judgments or groups to compute here: the Agreement page does."
NO_STUDY = "No study has judgments yet."
NO_FLIP = "No trained model is evaluated on held-out groups yet."
PEOPLE, MODEL = "Kappa, people–people", "Kappa, people–model"


class StudyState(NamedTuple):
    """The study that the figures are of, and how far its judging is."""

    study_id: int
    done: int
    places: int
    is_own: bool  # closes with its judge's last answer


class Found(NamedTuple):
    """The quality line, and the run and study it is of."""

    quality: Quality
    run: RunSummary | None
    study: StudyState | None


def read_quality(user: SessionUser) -> Found:
    """The figures of the newest run with finished groups, its study, and the newest model."""
    runs = _under(user, "curate", lambda session: list_runs(session)) or []
    run = next((each for each in runs if each.kept + each.dropped), None)
    report = None
    if run is not None:
        report = _under(user, "curate", lambda session: stored_leakage(session, run.id))
    studies = _under(user, "studies", lambda session: list_studies(session)) or []
    study = newest_judged(studies, run)
    precision, people, model = _agreement_lights(user, study, run)
    found = Quality(
        kept_light(*((run.id, run.pairs, run.kept, run.dropped) if run else (None, 0, 0, 0))),
        leakage_light(run.id if run else None, report),
        precision,
        people,
        model,
        _flip(user),
    )
    state = None
    if study is not None:
        rules = _under(user, "studies", lambda session: rules_of(get_study(session, study.id)))
        is_own = rules is not None and rules.closes_when_done
        state = StudyState(study.id, study.done, study.places, is_own)
    return Found(found, run, state)


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
    user: SessionUser, study: StudySummary | None, run: RunSummary | None
) -> tuple[Light, Light, Light]:
    if study is None:
        return _unknown(None, NO_STUDY)
    found = _under(user, "studies", lambda session: _judged(session, study.id, user.name))
    assert found is not None  # the study was read under the same permission
    state, rows, is_hidden = found
    if is_hidden:
        return _unknown(study.id, HIDDEN)
    if state.judgments > MAX_JUDGMENTS:
        return _unknown(study.id, TOO_MANY)
    version = (str(open_store().engine.url), study.id, state)
    report = _agreement(rows, version)
    about, why_not = None, NO_RUN.capitalize() + "."
    if study.run_id is not None:
        is_small = run is not None and run.id == study.run_id and run.pairs <= MAX_GROUPS
        why_not = TOO_MANY
        if is_small:
            about = _under(user, "studies", lambda _: _about(study.id, version))
    persons, simulated = rows_of_people(list(rows))
    by_item: dict[int, set[str]] = {}
    for row in persons:
        by_item.setdefault(row.item_id, set()).add(row.judge)
    twice = sum(len(judges) > 1 for judges in by_item.values())
    models = {
        name: mean for name, mean in report["human_model"].items() if mean["kappa"] is not None
    }
    best = max(models, key=lambda name: models[name]["kappa"]) if models else None
    shared = {row.item_id for row in rows if row.judge == best} & set(by_item)
    return (
        precision_light(study.id, about, why_not),
        kappa_light(
            PEOPLE, study.id, report["human_human"], twice, why_not="", simulated=simulated
        ),
        kappa_light(
            MODEL if best is None else f"{MODEL} ({best})",
            study.id,
            models[best] if best else next(iter(report["human_model"].values()), None),
            len(shared),
            why_not="",
            simulated=simulated,
        ),
    )


def _unknown(study_id: int | None, why: str) -> tuple[Light, Light, Light]:
    return (
        precision_light(study_id, None, why),
        kappa_light(PEOPLE, study_id, None, 0, why_not=why),
        kappa_light(MODEL, study_id, None, 0, why_not=why),
    )


def _judged(
    session: Session, study_id: int, person: str
) -> tuple[JudgmentState, Sequence[JudgmentRow], bool]:
    """The judgments, and whether their figures are hidden from the person, as on Agreement."""
    state = judgment_state(session, study_id)
    is_hidden = is_member(session, study_id, person) and bool(
        hidden_items_of_study(session, study_id, person)
    )
    if is_hidden or state.judgments > MAX_JUDGMENTS:
        return state, [], is_hidden
    return state, judgment_frame(session, study_id), False


@st.cache_data(max_entries=16, show_spinner=False)
def _agreement(_rows: Sequence[JudgmentRow], version: tuple[object, ...]) -> dict[str, Any]:
    """The report without intervals, whose posterior draws take seconds."""
    return agreement_report(decisions_of(_rows), resamples=0)


@st.cache_data(max_entries=16, show_spinner=False)
def _about(study_id: int, version: tuple[object, ...]) -> dict[str, Any]:
    with open_store().read() as session:
        return about_run(session, study_id)


def _flip(user: SessionUser) -> Light:
    scores = _under(user, "evaluate", newest_scores) or []
    base, trained = newest_pair(scores)
    if trained is None:
        return flip_light(None, None, None, NO_FLIP)
    after = float(trained.metrics[INSTRUCTION_FLIP])
    if base is None:
        return flip_light(None, after, None, f"{trained.base_model} is not evaluated on it")
    before = float(base.metrics[INSTRUCTION_FLIP])
    url, first, second = str(open_store().engine.url), base.evaluation_id, trained.evaluation_id
    assert first is not None and second is not None  # both are stored
    found = _under(user, "evaluate", lambda _: _difference(url, first, second))
    assert found is not None  # the scores were read under the same permission
    difference, why_not = found
    return flip_light(before, after, difference, why_not)


def newest_pair(scores: Sequence[Scored]) -> tuple[Scored | None, Scored | None]:
    """The evaluation of the base model and that of the newest trained model, on the benchmark
    where that was measured last; None where there is none."""
    measured = [each for each in scores if each.metrics.get(INSTRUCTION_FLIP) is not None]
    trained = [each for each in measured if each.checkpoint_id is not None]
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
