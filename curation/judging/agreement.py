"""Agreement in a study: read from the store, and as a job where it is large.

A page computes up to `MAX_LIVE` judgments itself. Of more, the job stores the figures as an
analysis of kind `agreement`, one for each study and reader, and every page shows what is stored by
this `VERSION`.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sqlalchemy.orm import Session

from analysis.agreement.agreement import headlines_of, report_of
from analysis.agreement.answers import Answers
from analysis.agreement.intervals import DRAWS
from analysis.agreement.judge_profile import judge_profiles
from analysis.agreement.judgment_filter import JudgmentFilter, study_answers
from analysis.agreement.over_time import agreement_over_time
from curation.judging.about_run import about_run
from curation.judging.request import AgreementStart
from db.assignment.hidden import hidden_items_of_study
from db.assignment.members import is_member
from db.corpus.datasets import text_sha256
from db.jobs.runner import JobHandle
from db.outcome.analyses import analyses_of_dataset, replace_analysis
from db.outcome.position_bias import study_choices
from db.rows import Row
from db.study.items import questions_of_study
from db.study.judgments import JudgmentState, judgment_state
from db.study.quality import flagged_people, judge_quality
from db.study.studies import get_study
from db.tables import Analysis

KIND: Final = "agreement"
VERSION: Final = 5  # of the stored figures: those of another are stale (4 had narrower intervals)
MAX_LIVE: Final = 20_000  # judgments that a page computes itself (docs/benchmarks.md)


@dataclass(frozen=True)
class Reader:
    """For whom figures are: a person who may still judge items of the study does not see these
    counted, nor who fails gold, which would say what the right answers are. "" is anybody else."""

    name: str = ""
    left_out: frozenset[int] = frozenset()

    @property
    def is_blind(self) -> bool:
        """Whether items are left out for this reader."""
        return bool(self.name)


def reader_of(session: Session, study_id: int, person: str) -> Reader:
    """Who the person is as a reader of the study's figures."""
    if not is_member(session, study_id, person):
        return Reader()
    items = hidden_items_of_study(session, study_id, person)
    return Reader(person, frozenset(items)) if items else Reader()


def study_report(
    session: Session,
    study_id: int,
    *,
    chosen: JudgmentFilter | None = None,
    left_out: Collection[int] = (),
    with_flags: bool = True,
    draws: int = DRAWS,
    over_time: bool = True,
    by_judge: bool = True,
) -> dict[str, Any]:
    """The figures of a study, of page, command and job: `report` as in `agreement_report`, and
    where wanted `over_time` and `by_judge`, rows of `WindowRow` and `JudgeProfile`.

    Of a study that asks several questions they are those of the one that is chosen, or the first:
    `report` has its name as `question`. Answers to different questions are never mixed.

    Reads the judgments one by one: memory grows by 32 bytes for each. Raises NotFound.
    """
    answers, question = _answers_to_one(session, study_id, chosen or JudgmentFilter(), left_out)
    flagged = flagged_people(session, study_id) if with_flags else {}
    report = report_of(answers, flagged, draws)
    if question:
        report["question"] = question
    found: dict[str, Any] = {"report": report}
    if over_time:
        rows: Sequence[Row] = agreement_over_time(answers, flagged)
        found["over_time"] = [each.as_json() for each in rows]
    if by_judge:
        quality, choices = judge_quality(session, study_id), study_choices(session, study_id)
        rows = judge_profiles(report, quality, choices, with_gold=with_flags)
        found["by_judge"] = [each.as_json() for each in rows]
    return found


def study_headlines(session: Session, study_id: int) -> dict[str, Any]:
    """The figures of people with each other and with models, with the intervals that the study's
    report has, in a tenth of its time. Raises NotFound."""
    answers, _ = _answers_to_one(session, study_id, JudgmentFilter(), ())
    return headlines_of(answers, flagged_people(session, study_id), DRAWS)


def _answers_to_one(
    session: Session, study_id: int, chosen: JudgmentFilter, left_out: Collection[int]
) -> tuple[Answers, str]:
    """The answers to the question that is chosen, or the first, and its name; "" in a study that
    asks for a pick alone."""
    own = questions_of_study(session, study_id)
    if not own:
        return study_answers(session, study_id, chosen, left_out=left_out), ""
    question = next((one for one in own if one.name in chosen.questions), own[0])
    chosen = chosen.model_copy(update={"questions": (question.name,)})
    answers = study_answers(
        session, study_id, chosen, left_out=left_out, is_ordered=question.is_ordered
    )
    return answers, question.name


class AgreementStored(Row):
    """The figures of a study, stored as an analysis: of how many judgments."""

    analysis_id: int
    judgments: int


def agreement_job(handle: JobHandle) -> AgreementStored:
    """Store the figures of a study by an AgreementStart."""
    wanted = AgreementStart.read(handle.config)
    study_id, person = wanted.study_id, wanted.reader
    handle.report(0, 2, "computing agreement")
    with handle.store.read() as session:
        state, study = judgment_state(session, study_id), get_study(session, study_id)
        reader = reader_of(session, study_id, person) if person else Reader()
        found = study_report(
            session, study_id, left_out=reader.left_out, with_flags=not reader.is_blind
        )
        handle.report(1, 2, "estimating what the study says about its run")
        has_estimates = study.run_id is not None and not reader.is_blind
        found["about"] = about_run(session, study_id) if has_estimates else None
    found["state"], found["version"] = _state_numbers(state), VERSION
    inputs = f"{VERSION} {study_id} {person} {state} {sorted(reader.left_out)}"
    with handle.store.write() as session:
        stored = replace_analysis(
            session,
            kind=KIND,
            inputs_sha256=text_sha256(inputs),
            config={"study": study_id, "reader": person},
            result=found,
            dataset_id=study.dataset_id,
            job_id=handle.id,
        )
        session.commit()
        number = stored.id
    handle.report(2, 2, "done")
    return AgreementStored(analysis_id=number, judgments=state.judgments)


def _state_numbers(state: JudgmentState) -> dict[str, Any]:
    return {**asdict(state), "last_at": state.last_at and state.last_at.isoformat()}


def stored_agreement(session: Session, study_id: int, reader: str = "") -> Analysis | None:
    """The newest stored figures of the study for the reader; None where only another VERSION's."""
    config = {"study": study_id, "reader": reader}
    every = analyses_of_dataset(session, KIND, get_study(session, study_id).dataset_id)
    current = (each for each in every if each.result.get("version") == VERSION)
    return next((each for each in current if each.config == config), None)
