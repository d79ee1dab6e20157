"""`inf study estimate|plan`: what a study says about its run, and the items that would say more."""

from typing import Any

import click

from analysis.agreement.flagged import WITHOUT
from analysis.study import run_text
from analysis.study.planning import TARGETS
from app.cli.kit.report import Result, me, ready_store, reporting
from app.text.numbers import counted
from curation.judging.about_run import (
    about_run,
    extend_by_plan,
    plan_for,
    plan_numbers,
    thresholds_of,
)
from db.events import record_event
from db.study.studies import get_study

study_option = click.option("--study", "study_id", type=int, required=True, help="Id of the study.")


def _shown(report: Result) -> str:
    lines = [run_text.headline(report)]
    if not report["known"]:
        return lines[0]
    lines.append(run_text.basis(report))
    if report["simulated"]:
        lines.append("the people are simulated judges: demo data, not evidence")
    for name, label in run_text.FIGURES.items():
        lines.append(f"{label}: {run_text.estimate(report[name])}{_more(report[name])}")
    lines.append(run_text.WHY_BOUNDS)
    for name, label in run_text.GROUP_FIGURES.items():
        lines.append(f"{label}: {run_text.bounds(report[name])}{_more(report[name])}")
    for row in report["parts"]:
        lines.append(
            f"{run_text.PARTS[row['part']]}, {row['by'].replace('_', ' ')} "
            f"{row['name'] or 'none'}: {run_text.estimate(row)}, "
            f"{counted(row['judged'], 'group')} judged{_without(row)}"
        )
    return "\n".join(lines)


def _without(found: dict[str, Any]) -> str:
    """The figure without the flagged people in it; "" where there is none."""
    if not found.get("flagged"):
        return ""
    return f", {WITHOUT.lower()} {run_text.without_flagged(found)}"


def _more(found: dict[str, Any]) -> str:
    """Why a figure is undefined, and itself without flagged people."""
    return (f" ({found['reason']})" if "reason" in found else "") + _without(found)


@click.command()
@study_option
@reporting(_shown)
def estimate(study_id: int) -> Result:
    """Estimate the validator's precision and recall over the whole run.

    Judged items are weighted by how they were sampled; intervals are over groups. A study of listed
    or disputed items says nothing about the run, and the command says why.
    """
    with ready_store().read() as session:
        return about_run(session, study_id)


def _planned(result: Result) -> str:
    lines = [run_text.plan_sentence(result)]
    lines += [
        f"  {cell['items']:>6}  {cell['among']}"
        + "".join(
            f", {name} {value or 'none'}"
            for name, value in cell.items()
            if name not in ("verdict", "among", "items")
        )
        for cell in result["cells"]
    ]
    if result["added"]:
        lines.append(f"added to study {result['study_id']}: {counted(result['items'], 'item')}")
    elif result["items"]:
        lines.append("nothing added: repeat with --add")
    return "\n".join(lines)


@click.command()
@study_option
@click.option(
    "--target",
    type=click.Choice(TARGETS),
    default="precision",
    show_default=True,
    help="The figure to know better; `overturned` are missed items that people confirm.",
)
@click.option("--reach", type=click.FloatRange(0.1, 50), help="Half-width in points, such as 2.")
@click.option("--items", type=click.IntRange(min=1), help="Or N items, where they help most.")
@click.option("--add", is_flag=True, help="Add exactly these items to the study.")
@reporting(_planned)
def plan(study_id: int, target: str, reach: float | None, items: int | None, add: bool) -> Result:
    """Plan how many more judgments a figure needs, and among which items they help most."""
    share = None if reach is None else reach / 100
    store = ready_store()
    if not add:
        with store.read() as session:
            overlap = get_study(session, study_id).overlap
            found = plan_for(session, study_id, target=target, reach=share, items=items)
        return {"study_id": study_id, "added": False, **plan_numbers(found, overlap)}
    with store.write() as session:
        found = extend_by_plan(session, study_id, target=target, reach=share, items=items)
        record_event(session, me(), "study.extend", study_id, items=found.items)
        overlap = get_study(session, study_id).overlap
        session.commit()
    return {"study_id": study_id, "added": True, **plan_numbers(found, overlap)}


def _explored(result: Result) -> str:
    if not result["explored"]:
        return f"no threshold to explore: {result['reason']}"
    lines = ["the people are simulated judges: demo data, not evidence"] * result["simulated"]
    for each in result["explored"]:
        lines.append(each["by"] + (f": {each['reason']}" if "reason" in each else ""))
        lines += [_threshold_line(row) for row in each["rows"]]
    return "\n".join(lines)


def _threshold_line(row: dict[str, Any]) -> str:
    at = "as it is" if row["threshold"] is None else f"at least {row['threshold']:.4g}"
    return (
        f"  {at:<18} {counted(row['kept_groups'], 'group')} ({row['size'] or 0:.0%} of the kept), "
        f"precision {run_text.estimate(row['precision'])}{_without(row['precision'])}, "
        f"recall {run_text.estimate(row['recall'])}{_without(row['recall'])}"
    )


@click.command()
@study_option
@reporting(_explored)
def thresholds(study_id: int) -> Result:
    """Explore stricter filters: precision, recall and size by votes, margins and judges."""
    with ready_store().read() as session:
        return thresholds_of(session, study_id)
