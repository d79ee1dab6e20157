"""What a study says about its run: gathered from the store, and the items that would say more."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy.orm import Session

from analysis.agreement.flagged import with_figures_without
from analysis.study.balance import imbalances
from analysis.study.design import design_of
from analysis.study.planning import Kinds, Plan, added_items, plan_items
from analysis.study.run_report import run_report
from analysis.study.thresholds import explore_thresholds
from db.errors import BadInput, Refused
from db.run.runs import shape_of
from db.study.judgments import JudgmentRow, judgment_frame
from db.study.quality import flagged_people
from db.study.run_items import (
    JudgedItem,
    decided_items,
    judged_items,
    queue_item_ids,
    run_item_kinds,
    run_population,
    used_item_ids,
)
from db.study.strictness import run_strictness
from db.study.studies import add_items, get_study
from db.tables import Study

NO_RUN: Final = "the study has no run: its items were not grown here"

NO_STRICTNESS: Final = (
    "the run's validator gave one answer per item without scores: use several votes in the recipe, "
    "or let other models judge the run's items"
)


def about_run(session: Session, study_id: int) -> dict[str, Any]:
    """The report of `analysis.study.run_report` for a study, with `simulated`, how many items of
    its queue wait for a judgment, and in what the judged ones differ from these (`imbalances`).

    Each estimate that flagged people enter has itself without them (`analysis.agreement.flagged`).
    Raises NotFound, BadInput for a study without a run.
    """
    study = get_study(session, study_id)
    kinds = _kinds(session, study, of_study=study_id)
    sample, simulated, judges = _sample(session, study_id, kinds)
    assert study.run_id is not None
    population, design = run_population(session, study.run_id), design_of(study.settings)
    roles = shape_of(session, study.run_id).roles
    done = {item.item_id for item in sample}
    queue = [item for item in queue_item_ids(session, study_id) if item in kinds]
    waiting = [kinds[item][1] for item in queue if item not in done]
    judged = [kinds[item][1] for item in queue if item in done]
    report = run_report(population, sample, design, roles)
    entered = _flagged(session, study_id, judges)
    if entered:
        left, _, _ = _sample(session, study_id, kinds, without=entered)
        without = run_report(population, left, design, roles)
        report = with_figures_without(report, without, entered)
    return {
        "study_id": study_id,
        "run_id": study.run_id,
        "simulated": simulated,
        "flagged": entered,
        **report,
        "waiting": len(waiting),
        "imbalances": [each.as_json() for each in imbalances(judged, waiting, design.strata)],
    }


def plan_for(
    session: Session,
    study_id: int,
    *,
    target: str,
    reach: float | None = None,
    items: int | None = None,
) -> Plan:
    """Which items to add so that the target's interval is as narrow as ±`reach`, or the best
    `items` to add. Raises NotFound, BadInput."""
    if (reach is None) == (items is None):
        raise BadInput(
            "a half-width to reach and a number of items are two questions",
            "give one of them",
            code="half_width_excludes_items",
        )
    study, kinds, sample, _ = _gather(session, study_id)
    used = used_item_ids(session, study_id)
    return plan_items(
        kinds,
        sample,
        design_of(study.settings),
        target=target,
        used=used,
        reach=reach,
        items=items,
    )


def extend_by_plan(
    session: Session, study_id: int, *, target: str, reach: float | None, items: int | None = None
) -> Plan:
    """Add the items of `plan_for` to the study, sampled with the study's seed.

    Raises Refused for a closed study or an empty plan, BadInput, NotFound. Does not commit.
    """
    plan = plan_for(session, study_id, target=target, reach=reach, items=items)
    study = get_study(session, study_id)
    if study.status == "closed":
        raise Refused(
            f"study {study_id} is closed, it takes no items",
            "create another one",
            code="study_not_open",
        )
    if not plan.items:
        raise Refused(
            f"nothing to add to study {study_id} for {target}: {why_empty(plan)}",
            "choose another figure, or a smaller half-width",
            code="study_needs_no_items",
        )
    used = used_item_ids(session, study_id)
    kinds = _kinds(session, study)
    seed = study.seed + len(used)  # another sample than the study's first
    chosen = added_items(kinds, used, plan, seed)
    add_items(
        session,
        study_id,
        chosen,
        {"strata": list(plan.strata), "items": len(chosen), "seed": seed, "target": target},
    )
    return plan


def why_empty(plan: Plan) -> str:
    """Why a plan has no item."""
    if plan.is_enough:
        return "the interval is as narrow already"
    return "every group of the run that would help is in the study already"


def plan_numbers(plan: Plan, overlap: int) -> dict[str, Any]:
    """A plan as `--json` prints it; judgments are items times judges per item."""
    return {
        "target": plan.target,
        "reach": plan.reach,
        "now": plan.now,
        "expected": plan.expected,
        "is_enough": plan.is_enough,
        "items": plan.items,
        "judgments": plan.items * overlap,
        "cells": [
            {
                "verdict": cell.verdict,
                "among": cell_label(cell.verdict, cell.passed, cell.missed),
                **dict(zip(plan.strata, cell.stratum, strict=True)),
                "items": number,
            }
            for cell, number in sorted(plan.cells.items(), key=lambda each: -each[1])
        ],
    }


def cell_label(verdict: str, passed: bool | None, missed: int | None) -> str:
    """Which item of which groups a cell of a plan asks for, in words."""
    if verdict == "kept":
        return "kept groups"
    misses = "one item" if missed == 1 else f"{missed} items"
    which = "an item that the validator missed" if passed is False else "an item that it passed"
    return f"dropped groups with {misses} missed, {which}"


def _gather(session: Session, study_id: int) -> tuple[Study, Kinds, list[JudgedItem], bool]:
    study = get_study(session, study_id)
    kinds = _kinds(session, study)
    sample, simulated, _ = _sample(session, study_id, kinds)
    return study, kinds, sample, simulated


def _sample(
    session: Session, study_id: int, kinds: Kinds, *, without: Collection[str] = ()
) -> tuple[list[JudgedItem], bool, set[str]]:
    """The judged items, whether simulated judges stand in for people, and who judged.

    without: people whose judgments do not count.
    """
    rows, simulated = rows_of_people(judgment_frame(session, study_id))
    rows = [row for row in rows if row.judge not in without]
    sample = judged_items(kinds, rows, decided_items(session, study_id))
    return sample, simulated, {row.judge for row in rows}


def _flagged(session: Session, study_id: int, judges: Collection[str]) -> dict[str, str]:
    """Which of these people are flagged: why, by name."""
    flags = flagged_people(session, study_id)
    return {name: why for name, why in flags.items() if name in judges}


def _kinds(session: Session, study: Study, *, of_study: int | None = None) -> Kinds:
    if study.run_id is None:
        raise BadInput(NO_RUN, "create a study of a run", code="study_without_run")
    return run_item_kinds(session, study.run_id, of_study=of_study)


def rows_of_people(rows: list[JudgmentRow]) -> tuple[list[JudgmentRow], bool]:
    """The judgments of people, of simulated ones only where no real person judged; whether so."""
    persons = [row for row in rows if row.kind == "person"]
    real = [row for row in persons if not row.simulated]
    return real or persons, bool(persons) and not real


def thresholds_of(session: Session, study_id: int) -> dict[str, Any]:
    """For every strictness of the run: the figures of stricter filters, or why there are none.

    Raises NotFound, BadInput for a study without a run.
    """
    study = get_study(session, study_id)
    kinds = _kinds(session, study)
    sample, simulated, judges = _sample(session, study_id, kinds)
    assert study.run_id is not None
    entered = _flagged(session, study_id, judges)
    left = _sample(session, study_id, kinds, without=entered)[0] if entered else []
    design = design_of(study.settings)
    found: list[dict[str, Any]] = []
    for name, strictness in sorted(run_strictness(session, study.run_id).items()):
        try:
            rows = explore_thresholds(kinds, sample, design, strictness)
            if entered:
                without = explore_thresholds(kinds, left, design, strictness)
                rows = with_figures_without(rows, without, entered)
        except BadInput as error:
            found.append({"by": name, "rows": [], "reason": str(error)})
        else:
            found.append({"by": name, "rows": rows})
    return {
        "study_id": study_id,
        "run_id": study.run_id,
        "simulated": simulated,
        "explored": found,
        **({} if found else {"reason": NO_STRICTNESS}),
    }
