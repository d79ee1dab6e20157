"""What Home measures: the newest run, study and model of a dataset, and how good they are.

Every figure is read under the permission of the page that shows it, so Home tells nobody more than
that page does. What is computed is cached by the version of its data, and only over few enough
rows that Home stays fast; the Agreement page computes the rest.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy.orm import Session

from analysis.figures.means import Mean, cluster_mean
from analysis.figures.paired import Difference, paired_difference
from analysis.found.runs import LeakageReport
from app.access.identity import Actor
from app.access.permissions import NEEDS
from app.operations.acting import reading
from app.operations.overview.frame import PageDataset
from app.operations.overview.home import SeenStudies
from curation.judging.about_run import about_run
from curation.judging.agreement import MAX_LIVE, reader_of, stored_agreement, study_headlines
from curation.run.leakage import stored_leakage, why_outdated
from db.outcome.checkpoints import list_checkpoints
from db.outcome.evaluations import Scored, get_evaluation, newest_scores
from db.outcome.independence import validators_of
from db.outcome.overview import KeptGroups, kept_groups
from db.run.progress import exact_funnel, list_runs
from db.run.runs import Funnel, RunSummary
from db.store.store import open_store
from db.study.judgments import judgment_state
from db.study.quality import flagged_people
from db.study.rules import rules_of
from db.study.run_items import estimate_state
from db.study.studies import StudySummary, get_study
from db.tables import Checkpoint
from trainer.evaluate.following import INSTRUCTION_FLIP
from trainer.records.circular import circular_sentences
from trainer.report.compared.conditions import unlike

T = TypeVar("T")
MAX_GROUPS: Final = 5_000  # of a run whose precision is estimated here


class OfRun(NamedTuple):
    """The newest run with finished groups, None without one, its check for leakage, how far its
    groups came, and what became of the kept ones."""

    run: RunSummary | None = None
    leakage: LeakageReport | None = None
    outdated: str = ""
    funnel: Funnel | None = None
    kept: Sequence[KeptGroups] = ()


class OfStudy(NamedTuple):
    """The study to show, None without one.

    `is_own`: the actor judges in it, and it closes with its judge's last answer; `other_id`: an
    open study of the same dataset in which people have items to judge. `report`: of agreement, at
    least as `study_headlines`, None where it is too large and none is stored; `is_hidden` from the
    actor, as on Agreement. `about`: the run's estimated precision, None where it is not computed
    here. `validators`: of its run.
    """

    study: StudySummary | None = None
    is_own: bool = False
    other_id: int | None = None
    is_hidden: bool = False
    report: dict[str, Any] | None = None
    about: dict[str, Any] | None = None
    validators: Collection[str] = ()


class OfModel(NamedTuple):
    """Evaluations of the newest trained model and of its base, None where there is none.

    `difference`, or `why_not` the two may not be compared; `circular`: a sentence for each model
    that chose the groups it is measured on. `flips`: their instruction flip with its interval, by
    `base` and `trained`.
    """

    base: Scored | None = None
    trained: Scored | None = None
    difference: Difference | None = None
    why_not: str = ""
    circular: Sequence[str] = ()
    checkpoint: Checkpoint | None = None
    flips: Mapping[str, Mean] = {}


class Figures(NamedTuple):
    """What was measured; None for what the actor has no right to see."""

    of_run: OfRun | None
    of_study: OfStudy | None
    of_model: OfModel | None


def figures(actor: Actor, dataset: PageDataset | None, seen: SeenStudies) -> Figures:
    """The figures of a dataset, or without one of all."""
    number = None if dataset is None else dataset.id
    runs = _under(actor, "curate", lambda session: list_runs(session, number, archived=True))
    run = next((one for one in runs or () if one.kept + one.dropped and not one.archived), None)
    of_run = None if runs is None else OfRun()
    if run is not None:
        with reading(actor, "curate") as session:
            of_run = OfRun(
                run,
                stored_leakage(session, run.id),
                why_outdated(session, run.id),
                exact_funnel(session, run.id),
                kept_groups(session, run.id),
            )
    of_study = None
    if NEEDS["studies"].is_met(actor):
        studies = [
            one for one in seen.under("studies") if dataset is None or one.dataset == dataset.name
        ]
        of_study = _of_study(actor, newest_judged(studies, run), seen, runs or ())
    return Figures(of_run, of_study, _of_model(actor, number))


def _of_study(
    actor: Actor, study: StudySummary | None, seen: SeenStudies, runs: Sequence[RunSummary]
) -> OfStudy:
    if study is None:
        return OfStudy()
    with reading(actor, "studies") as session:
        other_id = next(
            (
                one.id
                for one in seen.under("studies", "open")
                if one.dataset == study.dataset
                and one.id != study.id
                and one.done < one.places
                and not _is_own(session, one)
            ),
            None,
        )
        found = OfStudy(study, NEEDS["judge"].is_met(actor) and _is_own(session, study), other_id)
        state = judgment_state(session, study.id)
        if reader_of(session, study.id, actor.name).is_blind:
            return found._replace(is_hidden=True)
        if state.judgments > MAX_LIVE:
            stored = stored_agreement(session, study.id)
            report = None if stored is None else stored.result["report"]
        else:
            flags = tuple(flagged_people(session, study.id).items())
            report = _agreement(study.id, (open_store().url, state, flags))
        if report is None or study.run_id is None:
            return found._replace(report=report)
        about, run = None, next((one for one in runs if one.id == study.run_id), None)
        if run is not None and run.pairs <= MAX_GROUPS and state.judgments <= MAX_LIVE:
            version = (open_store().url, state, tuple(report["flagged"].items()))
            about = _about(study.id, (*version, estimate_state(session, study.id)))
        validators = validators_of(session, study.run_id)
    return found._replace(report=report, about=about, validators=validators)


def _is_own(session: Session, study: StudySummary) -> bool:
    """Whether it closes with its judge's last answer."""
    return rules_of(get_study(session, study.id)).closes_when_done


def newest_judged(studies: Sequence[StudySummary], run: RunSummary | None) -> StudySummary | None:
    """The study to show: the newest that people judged, of this run if there is one; else the
    newest. `studies`: newest first."""
    ranked = sorted(
        studies,
        key=lambda each: (each.done > 0, run is not None and each.run_id == run.id),
        reverse=True,
    )
    return ranked[0] if ranked else None


def _under(actor: Actor, permission: str, read: Callable[[Session], T]) -> T | None:
    """What `read` finds under the permission; None for who lacks it."""
    if not NEEDS[permission].is_met(actor):
        return None
    with reading(actor, permission) as session:
        return read(session)


@lru_cache(maxsize=16)
def _agreement(study_id: int, version: tuple[object, ...]) -> dict[str, Any]:
    """The headlines with their intervals; those of pairs and judges take seconds."""
    with open_store().read() as session:
        return study_headlines(session, study_id)


@lru_cache(maxsize=16)
def _about(study_id: int, version: tuple[object, ...]) -> dict[str, Any]:
    with open_store().read() as session:
        return about_run(session, study_id)


def _of_model(actor: Actor, dataset_id: int | None) -> OfModel | None:
    if not NEEDS["evaluate"].is_met(actor):
        return None
    with reading(actor, "evaluate") as session:
        scores, own = newest_scores(session), None
        if dataset_id is not None:
            own = {each.id for each in list_checkpoints(session, dataset_id=dataset_id)}
        base, trained = newest_pair(scores, own)
        if base is None or trained is None:
            return OfModel(base, trained)
        first, second = base.evaluation_id, trained.evaluation_id
        assert first is not None and second is not None  # both are stored
        difference, why_not, flips = _difference(open_store().url, first, second)
        return OfModel(
            base,
            trained,
            difference,
            why_not,
            circular_sentences(session, [base, trained]),
            session.get(Checkpoint, trained.checkpoint_id),
            flips,
        )


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


@lru_cache(maxsize=16)
def _difference(
    url: str, base_id: int, trained_id: int
) -> tuple[Difference | None, str, dict[str, Mean]]:
    """The paired difference, or why the two may not be compared, and both flips; evaluations never
    change."""
    with open_store().read() as session:
        base, trained = get_evaluation(session, base_id), get_evaluation(session, trained_id)
        means = {
            name: cluster_mean(each.per_query, INSTRUCTION_FLIP, each.questions, is_share=True)
            for name, each in (("base", base), ("trained", trained))
        }
        flips = {name: mean for name, mean in means.items() if mean is not None}
        if reasons := unlike(base, [trained]).get(trained.id):
            return None, ", ".join(reasons), flips
        questions = trained.questions or base.questions
        found = paired_difference(base.per_query, trained.per_query, INSTRUCTION_FLIP, questions)
    return found, "", flips
