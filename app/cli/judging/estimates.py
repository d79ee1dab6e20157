"""`inf studies estimate|plan|thresholds|consensus`: what a study says of its run and its judges."""

from typing import Any

import click

from analysis.agreement.flagged import WITHOUT
from analysis.figures.means import share_of
from analysis.study import run_text
from app.cli.kit.formerly import with_former_ends
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, reporting
from app.operations.judging import agreement as operations
from app.text.numbers import counted
from curation.judging.consensus import SURE, flagged_note, outlier_sentences
from curation.judging.request import PlanStudy

study_argument = click.argument("study_id", type=int)


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
@study_argument
@reporting(_shown)
def estimate(study_id: int) -> Result:
    """Estimate the validator's precision and recall over the whole run.

    Judged items are weighted by how they were sampled; intervals are over groups. A study of listed
    or disputed items says nothing about the run, and the command says why.
    """
    found: Result = with_former_ends(operations.estimates(command_actor(), study_id), "low", "high")
    return found


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
@study_argument
@request_options(PlanStudy)
@reporting(_planned)
def plan(request: PlanStudy) -> Result:
    """Plan how many more judgments a figure needs, and among which items they help most."""
    return operations.plan(command_actor(), request)


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
@study_argument
@reporting(_explored)
def thresholds(study_id: int) -> Result:
    """Explore stricter filters: precision, recall and size by votes, margins and judges."""
    return operations.thresholds(command_actor(), study_id)


def _consensus_text(report: Result) -> str:
    if not report["items"]:
        return "no person has judged this study"
    lines = [
        f"{counted(len(report['items']), 'item')} judged, {report['sure']:,} with a consensus "
        f"label of probability {SURE} or more"
    ]
    if report["simulated"]:
        lines.append("the people are simulated judges: demo data, not evidence")
    if note := flagged_note(report):
        lines.append(note)
    lines += [_judge_line(row) + _by_others(row, "compared") for row in report["judges"]]
    lines += [
        f"{row['judge']} (model): right on {share_of(row['accuracy'], row['items'])} of "
        f"{counted(row['items'], 'item')} by the people's consensus{_by_others(row, 'items')}"
        for row in report["models"]
    ]
    return "\n".join([*lines, *outlier_sentences(report)])


def _by_others(row: dict[str, Any], number: str) -> str:
    """The share by the consensus of the people who are not flagged, where there are others."""
    other = row.get("without_flagged")
    if other is None or other["accuracy"] is None:
        return ""
    return f"; without flagged people {share_of(other['accuracy'], other[number])}"


def _judge_line(row: dict[str, Any]) -> str:
    if row["accuracy"] is None:
        return f"{row['judge']}: {row['items']:,} items, undefined ({row['reason']})"
    right, others = (share_of(row[name], row["compared"]) for name in ("accuracy", "others"))
    return (
        f"{row['judge']}: {row['items']:,} items, right {right}, the others there {others}, "
        f"p {row['p']:.2g}" + (", an outlier" if row["outlier"] else "")
    )


@click.command()
@study_argument
@reporting(_consensus_text)
def consensus(study_id: int) -> Result:
    """Consensus labels with their probability, and who errs more than the others.

    By Dawid and Skene's model over the people's judgments; models are compared with the people's
    consensus. --json has a row per item.
    """
    return operations.consensus(command_actor(), study_id)
