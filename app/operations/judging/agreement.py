"""Agreement of judges: of a study, of its people with models, and of models that filter a run.

Whoever may still judge items of a study reads its figures without these (`Reader`): the operations
find out themselves who reads. A door that computes a study's figures again and again keeps them
under `version`.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pydantic import Field
from sqlalchemy.orm import Session

from analysis.agreement.agreement import agreement_report, report_of
from analysis.agreement.disagreement import confusion_of
from analysis.agreement.flagged import flag_note
from analysis.agreement.headline import COHEN
from analysis.agreement.intervals import DRAWS
from analysis.agreement.judge_profile import JudgeProfile
from analysis.agreement.judgment_filter import JudgmentFilter, study_answers, study_decisions
from analysis.agreement.over_time import WindowRow
from analysis.agreement.validators import choosing_report
from analysis.embed.independence import validator_sentence
from analysis.found.agreement import AgreementReport
from analysis.study.judgment_file import read_judgments
from app.access.identity import Actor, SessionUser
from app.access.permissions import require
from app.operations.acting import Launch, reading, store_address, writing
from app.operations.doors.events import SETTLED
from app.operations.doors.events import newest as newest_event
from app.operations.judging.figures import (
    Audit,
    OtherModel,
    QuestionAgreement,
    RunEstimates,
    StudyConsensus,
    StudyFigures,
    StudyPlanned,
    ThresholdsExplored,
    Validator,
    Vote,
)
from curation.judging.about_run import (
    about_run,
    extend_by_plan,
    plan_for,
    plan_numbers,
    thresholds_of,
)
from curation.judging.agreement import (
    MAX_LIVE,
    Reader,
    reader_of,
    stored_agreement,
    study_report,
)
from curation.judging.consensus import study_consensus
from curation.judging.request import (
    AgreementShow,
    AgreementStart,
    PlanStudy,
    StudyExport,
    ValidatorsCompare,
)
from curation.judging.scope import Scope, of_filtered, study_scope
from curation.questions.audit import study_audit
from curation.recipe.prices import load_prices
from curation.run.estimate import judging_prices
from db.assignment.hidden import hidden_in_study, hidden_items_of_study
from db.corpus.datasets import get_dataset
from db.errors import BadInput, Refused
from db.events import record_event
from db.question import Question
from db.rows import Row, SparseRow
from db.run.runs import choose_run, shape_of
from db.run.validations import (
    RunAnswers,
    judge_models,
    judging_cost,
    run_answers,
)
from db.shape import Shape
from db.study.items import ItemPlace, questions_of_study, study_item_places
from db.study.judgments import (
    JudgmentRow,
    JudgmentState,
    count_choices,
    items_of_two_judges,
    judgment_frame,
    judgment_state,
)
from db.study.quality import flagged_people
from db.study.run_items import estimate_state
from db.study.studies import get_study
from db.tables import Analysis

RIGHT = "studies"
T = TypeVar("T")
Result = dict[str, Any]
Figures = Mapping[str, Any]  # as `analysis` computes them: values with intervals and reasons

# How people join a study that only models judged, by the key that a report has.
JOINING: Mapping[str, str] = {
    "invite": "no person has judged here, so there is no agreement with people: who has the right "
    "to judge gets the items on the Judge page, and `people invite role=annotator study=ID` makes "
    "a link for others",
    "open_study": "no person has judged here, and the study is not open: open it, or create "
    "another",
}


class Seen(NamedTuple):
    """What a study's figures count, for whom, and whether they are too many for a page."""

    state: JudgmentState
    reader: Reader

    @property
    def is_large(self) -> bool:
        """Whether a job computes the figures."""
        return self.state.judgments > MAX_LIVE


class Judged(NamedTuple):
    """The judgments of a study and what they are about; `hidden`: items no list shows the actor;
    `labels`: of the scenarios of its run, which a study of a file lacks."""

    rows: list[JudgmentRow]
    places: dict[int, ItemPlace]
    scope: Scope
    circular: str
    hidden: set[int]
    labels: Mapping[str, str]


class Stored(NamedTuple):
    """The figures of a large study as the newest job stored them, and what they are about."""

    found: Analysis
    scope: Scope
    circular: str


class Judges(NamedTuple):
    """What is known of the models that may filter a run besides their answers.

    `scope`: of the study whose people they are compared with.
    """

    models: dict[str, tuple[str, bool]]
    costs: dict[str, tuple[int, float]]
    estimates: dict[str, tuple[float | None, str]]
    scope: Scope | None
    shape: Shape


class StudyAgreement(AgreementReport):
    """The agreement of a study's judges.

    `circular`: a sentence where a judge chose the run's groups; `joining` and `answered`: where no
    person has judged; `over_time` and `by_judge`: where they are wanted.
    """

    study_id: int
    scope: Scope
    circular: str = ""
    joining: str = ""
    answered: Mapping[str, Mapping[str, int]] = {}
    over_time: tuple[WindowRow, ...] = ()
    by_judge: tuple[JudgeProfile, ...] = ()


class FileAgreement(AgreementReport):
    """The agreement of the judges in a file of judgments."""

    judgments_file: str


class QuestionsAgreement(SparseRow):
    """The agreement on each question of a study by its key, and the audit of its items."""

    study_id: int
    scope: Scope
    questions: dict[str, QuestionAgreement]
    audit: Audit


class ValidatorsCompared(SparseRow):
    """How models, and votes of them, would filter a run; `scope`: of the people's judgments."""

    run_id: int
    study_id: int | None
    flag_note: str
    scope: Scope | None = None
    groups: int
    kept: int
    validators: tuple[Validator, ...]
    others: tuple[OtherModel, ...] = Field(alias="not_asked")
    policies: tuple[Vote, ...]


def agreement(
    actor: Actor, wanted: AgreementShow
) -> StudyAgreement | QuestionsAgreement | FileAgreement:
    """The agreement of the judges of a study, of the judgments that pass the filter, or of a file.

    Raises NotFound, BadInput. Where no person has judged, `answered` is how often a model chose
    each label, and `joining` the key of how people join (`JOINING`). For who judges in the study,
    as on the page: without items that are hidden from them, without flags, and without profiles,
    which know gold.
    """
    if wanted.study_id is not None:
        return _of_study(actor, wanted.study_id, wanted)
    file = Path(str(wanted.judgments))
    require(actor, "server")
    report = agreement_report(read_judgments(file), resamples=wanted.resamples)
    return FileAgreement(judgments_file=str(file), **report)


def _of_study(
    actor: Actor, study_id: int, wanted: AgreementShow
) -> StudyAgreement | QuestionsAgreement:
    chosen, resamples = wanted.chosen, wanted.resamples
    with reading(actor, RIGHT) as session:
        study = get_study(session, study_id)
        reader = _reader(session, study_id, actor)
        if listed := questions_of_study(session, study_id):
            return _by_question(session, study_id, listed, reader, chosen, resamples)
        found = study_report(
            session,
            study_id,
            chosen=chosen,
            left_out=reader.left_out,
            with_flags=not reader.is_blind,
            draws=resamples,
            over_time=wanted.over_time,
            by_judge=wanted.by_judge and not reader.is_blind,
        )
        report, scope = found.pop("report"), study_scope(session, study_id)
        judges = [judge["judge"] for judge in report["judges"]]
        circular = validator_sentence(session, study_id, judges)
        notes: Result = {"circular": circular} if circular else {}
        if judges and all(judge["kind"] == "model" for judge in report["judges"]):
            notes["joining"] = joining(study.status == "open")
            notes["answered"] = {judge: Counter[str]() for judge in judges}
            for each in study_decisions(session, study_id, chosen):
                if each.item not in reader.left_out:
                    notes["answered"][each.judge][each.label] += 1
    scope = scope if chosen == JudgmentFilter() else of_filtered(scope)
    return StudyAgreement(study_id=study_id, scope=scope, **report, **notes, **found)


def _by_question(
    session: Session,
    study_id: int,
    listed: Sequence[Question],
    reader: Reader,
    chosen: JudgmentFilter,
    resamples: int,
) -> QuestionsAgreement:
    """The agreement of a study on each of its questions, by its key, and the audit of its items."""
    questions: Result = {}
    for question in listed:
        if chosen.questions and question.name not in chosen.questions:
            continue
        found = study_report(
            session,
            study_id,
            chosen=chosen.model_copy(update={"questions": (question.name,)}),
            left_out=reader.left_out,
            with_flags=not reader.is_blind,
            draws=resamples,
            over_time=False,
            by_judge=False,
        )["report"]
        about = {"type": question.kind, "text": question.text, "meanings": dict(question.labels)}
        questions[question.name] = {**about, **_figures_of_question(found), **found}
    if not questions:
        raise BadInput(
            f"study {study_id} asks {', '.join(one.name for one in listed)}: none of "
            f"{', '.join(chosen.questions)}",
            "name one of its questions",
            code="question_unknown",
        )
    scope = study_scope(session, study_id)
    scope = scope if chosen == JudgmentFilter() else of_filtered(scope)
    audit = study_audit(
        session,
        study_id,
        questions=chosen.questions,
        left_out=reader.left_out,
        resamples=resamples,
    )
    parts: Result = {"questions": questions, "audit": audit}
    return QuestionsAgreement(study_id=study_id, scope=scope, **parts)


def _figures_of_question(report: Figures) -> Figures:
    """The coefficients of people on one question, each with its interval, by its own name.

    Cohen's kappa is of two people, Krippendorff's alpha and Fleiss' kappa of any number.
    """
    people = report["human_human"]
    is_pair = people["coefficient"] == COHEN.name
    reason = "Cohen's kappa is of two judges: Krippendorff's alpha is that of a team"
    return {
        COHEN.name: dict(people) if is_pair else {"value": None, "reason": reason},
        **report["people"],
    }


def validators(actor: Actor, wanted: ValidatorsCompare) -> ValidatorsCompared:
    """Compare how model judges, and votes among them, would filter a run, before paying for it.

    Raises NotFound, BadInput.
    """
    study_id = wanted.study_id
    with reading(actor, RIGHT) as session:
        run_id = choose_run(session, get_dataset(session, wanted.dataset).id, wanted.run).id
        found = run_answers(session, run_id)
        about = _judges(session, run_id, study_id)
        people: Mapping[str, Any] = {}
        if study_id is not None and about.scope is not None and about.scope.of_run:
            flagged = flagged_people(session, study_id)
            people = report_of(study_answers(session, study_id), flagged, DRAWS)["human_model"]
    scope: Result = {} if about.scope is None else {"scope": about.scope}
    return ValidatorsCompared(
        run_id=run_id,
        study_id=study_id,
        flag_note=flag_note(list(people.values())),
        **scope,
        **filtered(found, about, people, wanted.judges),
    )


def filtered(
    found: RunAnswers, about: Judges, people: Mapping[str, Any], judges: Sequence[str]
) -> Result:
    """How the judges, and votes among them, would filter a run, by their answers. Pure."""
    return choosing_report(
        found.patterns, about.shape, about.models, about.costs, people, judges, about.estimates
    )


def answers(actor: Actor, run_id: int) -> RunAnswers:
    """Every model's answers to a run."""
    with reading(actor, RIGHT) as session:
        return run_answers(session, run_id)


def judges(actor: Actor, run_id: int, study_id: int | None) -> Judges:
    """What is known of the models that may filter a run. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        return _judges(session, run_id, study_id)


def joining(is_open: bool) -> str:
    """The key of how people join a study."""
    return "invite" if is_open else "open_study"


class StateAsOf(NamedTuple):
    """The judgments of a study as of an event, and when they were counted."""

    newest: int
    at: float
    state: JudgmentState


def state_now(actor: Actor, study_id: int, before: StateAsOf | None = None) -> StateAsOf:
    """How many judgments the figures of a study count, and the newest of them: counted again where
    an event came since `before`, or that is old."""
    newest, now = newest_event(actor, RIGHT), time.monotonic()
    # old: on PostgreSQL an event can come after one of a greater number
    is_old = before is None or now - before.at > SETTLED.total_seconds()
    if before is not None and not is_old and before.newest == newest:
        return before
    with reading(actor, RIGHT) as session:
        return StateAsOf(newest, now, judgment_state(session, study_id))


def seen(actor: Actor, study_id: int) -> Seen:
    """What the figures of a study count, and as whom the actor reads them."""
    with reading(actor, RIGHT) as session:
        return Seen(judgment_state(session, study_id), _reader(session, study_id, actor))


def study_to_show(actor: Actor, study_ids: Sequence[int]) -> int:
    """The newest study with an item of two persons that figures may count for the actor.

    Where none has one, the newest with one of two judges, or with any judgment; else the newest.
    study_ids: newest first, at least one.
    """
    with_two, with_any = list[int](), list[int]()
    with reading(actor, RIGHT) as session:
        for study_id in study_ids:
            number = judgment_state(session, study_id).judgments
            if number > MAX_LIVE:
                return study_id
            if number:
                left_out = _reader(session, study_id, actor).left_out
                if items_of_two_judges(session, study_id, people=True) - left_out:
                    return study_id
                if items_of_two_judges(session, study_id) - left_out:
                    with_two.append(study_id)
                with_any.append(study_id)
    return (with_two or with_any or study_ids)[0]


def judged(actor: Actor, study_id: int) -> Judged:
    """Every judgment of a study and the places of its items. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        rows = judgment_frame(session, study_id)
        run_id = get_study(session, study_id).run_id
        return Judged(
            rows,
            study_item_places(session, study_id),
            study_scope(session, study_id),
            validator_sentence(session, study_id, {row.judge for row in rows}),
            hidden_items_of_study(session, study_id, actor.name),
            {} if run_id is None else shape_of(session, run_id).labels,
        )


def version(
    actor: Actor, study_id: int, found: Seen, *, with_run: bool = False
) -> tuple[object, ...]:
    """What changes whenever a figure of the study does: the store, its judgments, who of its people
    is flagged; `with_run`: also whenever one about its run does."""
    with reading(actor, RIGHT) as session:
        flags = () if found.reader.is_blind else tuple(flagged_people(session, study_id).items())
        of_run = estimate_state(session, study_id) if with_run else None
        return store_address(), *found, flags, of_run


def figures(actor: Actor, study_id: int, chosen: JudgmentFilter) -> StudyFigures:
    """The figures of a study as its page shows them, of the judgments that pass the filter.

    Raises NotFound.
    """
    with reading(actor, RIGHT) as session:
        reader = _reader(session, study_id, actor)
        found = study_report(
            session,
            study_id,
            chosen=chosen,
            left_out=reader.left_out,
            with_flags=not reader.is_blind,
        )
    return StudyFigures(**found)


class StudyExported(Row):
    """Grades as files: of which judge, which grades count for what, and what was left out."""

    study_id: int
    question: str
    judge: str
    positive: int
    violates: int
    records: int
    rows: int
    qrels: int
    grades: dict[int, int]
    left_out: dict[str, int]


class StudyExportWritten(StudyExported):
    """Grades as the files of the folder `out`."""

    out: str
    files: tuple[str, ...]


def export(actor: Actor, wanted: StudyExport) -> tuple[dict[str, str], StudyExported]:
    """The files by name that a study's grades become, and what a report says of them.

    Raises NotFound, BadInput without grades; Refused as `estimates`.
    """
    from curation.questions.graded import graded_files, graded_study  # here: it loads releases

    with reading(actor, RIGHT) as session:
        get_study(session, wanted.study_id)
        _require_unblinded(session, wanted.study_id, actor)
        graded = graded_study(
            session, wanted.study_id, question=wanted.question, judge=wanted.judge
        )
    files, report = graded_files(graded, positive=wanted.positive, violates=wanted.violates)
    return files, StudyExported.model_validate(report)


def estimates(actor: Actor, study_id: int) -> RunEstimates:
    """What a study says about its run, of all judgments. Raises NotFound, BadInput; Refused, as do
    `thresholds` and `plan`, for who may still judge items of it."""
    with reading(actor, RIGHT) as session:
        _require_unblinded(session, study_id, actor)
        return RunEstimates(**about_run(session, study_id))


def thresholds(actor: Actor, study_id: int) -> ThresholdsExplored:
    """Explore stricter filters: precision, recall and size by votes, margins and judges.

    Raises as `estimates`.
    """
    with reading(actor, RIGHT) as session:
        _require_unblinded(session, study_id, actor)
        return ThresholdsExplored(**thresholds_of(session, study_id))


def plan(actor: Actor, wanted: PlanStudy) -> StudyPlanned:
    """Plan how many more judgments a figure needs, and among which items they help most.

    Raises as `estimates`, and Refused for a closed study.
    """
    study_id = wanted.study_id
    with (writing if wanted.add else reading)(actor, RIGHT) as session:
        _require_unblinded(session, study_id, actor)
        make = extend_by_plan if wanted.add else plan_for
        reach = None if wanted.reach is None else wanted.reach / 100
        found = make(session, study_id, target=wanted.target, reach=reach, items=wanted.items)
        if wanted.add:
            record_event(session, actor.name, "study.extend", study_id, items=found.items)
        overlap = get_study(session, study_id).overlap
    return StudyPlanned(study_id=study_id, added=wanted.add, **plan_numbers(found, overlap))


def consensus(actor: Actor, study_id: int) -> StudyConsensus:
    """What the judges of a study say together, of items that the actor's figures count."""
    with reading(actor, RIGHT) as session:
        reader = _reader(session, study_id, actor)
        found = study_consensus(
            session, study_id, without=reader.left_out, with_flags=not reader.is_blind
        )
    return StudyConsensus(**found)


def stored(actor: Actor, study_id: int) -> Stored | None:
    """The figures of a large study as the newest job stored them for the actor as a reader."""
    with reading(actor, RIGHT) as session:
        found = stored_agreement(session, study_id, _reader(session, study_id, actor).name)
        if found is None:
            return None
        judges = [row["judge"] for row in found.result["by_judge"]]
        circular = validator_sentence(session, study_id, judges)
        return Stored(found, study_scope(session, study_id), circular)


def confusion(actor: Actor, study_id: int, one: str, other: str) -> tuple[list[str], np.ndarray]:
    """The labels of two judges of a study, and how often they met on an item, counted in the store:
    of the first of several questions, as its figures are. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        reader, run_id = _reader(session, study_id, actor), get_study(session, study_id).run_id
        choices = count_choices(
            session,
            study_id,
            (one, other),
            question=next((each.name for each in questions_of_study(session, study_id)), ""),
            without=hidden_in_study(session, study_id, reader.name) if reader.is_blind else None,
        )
        return confusion_of(choices, () if run_id is None else shape_of(session, run_id).roles)


def compute(actor: Actor, wanted: AgreementStart, launch: Launch[T]) -> T:
    """Let a job compute and store the figures of a study, for the actor as a reader of them,
    whoever is named as one.

    Raises NotFound before it is launched.
    """
    with reading(actor, RIGHT) as session:
        get_study(session, wanted.study_id)
        reader = _reader(session, wanted.study_id, actor)
    return launch(actor, "study", wanted.model_copy(update={"reader": reader.name}))


def _reader(session: Session, study_id: int, actor: Actor) -> Reader:
    """The actor as a reader of the study's figures; the store's owner reads all of them."""
    return reader_of(session, study_id, actor.name) if isinstance(actor, SessionUser) else Reader()


def _require_unblinded(session: Session, study_id: int, actor: Actor) -> None:
    """Raise Refused for who may still judge items of the study: figures about its run count all."""
    if _reader(session, study_id, actor).is_blind:
        raise Refused(
            f"you may still judge items of study {study_id}: what it says about its run counts "
            "their answers",
            "judge them, or wait until it is closed",
            code="study_judged_by_reader",
        )


def _judges(session: Session, run_id: int, study_id: int | None) -> Judges:
    models = judge_models(session)
    known = {model for model, _ in models.values()} | set(load_prices())
    return Judges(
        models,
        judging_cost(session, ("validation",)),
        judging_prices(session, run_id, known),
        None if study_id is None else study_scope(session, study_id),
        shape_of(session, run_id),
    )
