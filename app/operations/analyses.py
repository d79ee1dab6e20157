"""Analyses of texts and of judgments: diversity, maps, overlaps, leakage, agreement, validators."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from analysis.agreement.agreement import agreement_report, report_of
from analysis.agreement.answers import number_decisions
from analysis.agreement.flagged import flag_note
from analysis.agreement.judge_profile import judge_profiles
from analysis.agreement.judgment_filter import JudgmentFilter, chosen_rows, decisions_of
from analysis.agreement.over_time import agreement_over_time
from analysis.agreement.validators import choosing_report
from analysis.request import CorporaChosen, CoverageStart
from app.access.identity import Actor, SessionUser
from app.access.permissions import require
from app.operations.acting import Launch, reading
from curation.judging.agreement import Reader, reader_of
from curation.judging.independence import map_sentence, validator_sentence
from curation.judging.scope import of_filtered, study_scope
from curation.recipe.prices import load_prices
from curation.run.estimate import judging_prices
from db.corpus.datasets import get_dataset
from db.run.position_bias import study_choices
from db.run.runs import choose_run
from db.run.validations import judge_models, judging_cost, run_answers
from db.study.items import study_item_places
from db.study.judgments import judgment_frame
from db.study.quality import flagged_people, judge_quality
from db.study.studies import get_study

RIGHT, OF_STUDIES = "analyze", "studies"
T = TypeVar("T")
Result = dict[str, Any]


def start(actor: Actor, request: CorporaChosen, launch: Launch[T]) -> T:
    """Launch an analysis of texts; one that is stored is not computed again."""
    return launch(require(actor, RIGHT), kind_of(request), request)


def kind_of(request: CorporaChosen) -> str:
    """The kind of the job that does an analysis."""
    return "project" if isinstance(request, CoverageStart) else "embed"


def about_map(actor: Actor, result: Result) -> str:
    """Whether a validator embeds the map of the groups that it chose, in a sentence; else ""."""
    with reading(actor, RIGHT) as session:
        return map_sentence(session, result)


def agreement(
    actor: Actor,
    study_id: int,
    *,
    chosen: JudgmentFilter,
    resamples: int,
    over_time: bool = False,
    by_judge: bool = False,
) -> Result:
    """The agreement of a study's judges, of the judgments that pass the filter. Raises NotFound.

    Where no person has judged, `answered` is how often a model chose each label, and `joining` how
    people join. For who judges in the study, as on the page: without items that are hidden from
    them, without flags, and without profiles, which know gold.
    """
    with reading(actor, OF_STUDIES) as session:
        study = get_study(session, study_id)
        rows = judgment_frame(session, study_id)
        places = study_item_places(session, study_id)
        scope = study_scope(session, study_id)
        circular = validator_sentence(session, study_id, {row.judge for row in rows})
        reader = Reader()
        if isinstance(actor, SessionUser):
            reader = reader_of(session, study_id, actor.name)
        by_judge = by_judge and not reader.is_blind
        flagged = {} if reader.is_blind else flagged_people(session, study_id)
        quality = judge_quality(session, study_id) if by_judge else []
        choices = study_choices(session, study_id) if by_judge else {}
        is_open = study.status == "open"
    seen = [row for row in rows if row.item_id not in reader.left_out]
    rows = chosen_rows(seen, places, chosen)
    scope = scope if chosen == JudgmentFilter() else of_filtered(scope)
    decisions = list(decisions_of(rows))
    answers = number_decisions(decisions)
    report = report_of(answers, flagged, resamples)
    notes: Result = {"circular": circular} if circular else {}
    if report["judges"] and all(judge["kind"] == "model" for judge in report["judges"]):
        notes["joining"] = JOINING if is_open else JOINING_CLOSED
        notes["answered"] = {judge["judge"]: Counter[str]() for judge in report["judges"]}
        for each in decisions:
            notes["answered"][each.judge][each.label] += 1
    if over_time:
        notes["over_time"] = agreement_over_time(answers, flagged)
    if by_judge:
        notes["by_judge"] = judge_profiles(report, quality, choices)
    return {"study_id": study_id, "scope": asdict(scope), **report, **notes}


JOINING = (
    "no person has judged here, so there is no agreement with people: who has the right to judge "
    "gets the items on the Judge page, and `people invite role=annotator study=ID` makes a link "
    "for others"
)
JOINING_CLOSED = "no person has judged here, and the study is not open: open it, or create another"


def validators(
    actor: Actor, dataset: str, run: int | None, study_id: int | None, judges: Sequence[str]
) -> Result:
    """How model judges, and votes among them, would filter a run. Raises NotFound, BadInput."""
    with reading(actor, OF_STUDIES) as session:
        run_id = choose_run(session, get_dataset(session, dataset).id, run).id
        patterns, models = run_answers(session, run_id).patterns, judge_models(session)
        costs = judging_cost(session, ("validation",))
        known = {model for model, _ in models.values()} | set(load_prices())
        estimates = judging_prices(session, run_id, known)
        rows = [] if study_id is None else judgment_frame(session, study_id)
        scope = None if study_id is None else study_scope(session, study_id)
        flagged = {} if study_id is None else flagged_people(session, study_id)
    # only of a sample of the run: kappa on chosen items would rank the models by those
    of_run = scope is not None and scope.of_run
    found = agreement_report(decisions_of(rows), flagged=flagged) if of_run else {}
    people = found.get("human_model", {})
    return {
        "run_id": run_id,
        "study_id": study_id,
        "flag_note": flag_note(list(people.values())),
        **({} if scope is None else {"scope": asdict(scope)}),
        **choosing_report(patterns, models, costs, people, judges, estimates),
    }
