"""`inf studies estimate|plan|thresholds|consensus`: what a study says of its run and its judges."""

from typing import Any

from analysis.agreement.flagged import WITHOUT
from analysis.study import run_text
from app.access.identity import Actor
from app.cli.kit.doors import Noun
from app.cli.kit.formerly import with_former_ends
from app.cli.kit.report import Result
from app.cli.kit.table import MAX_SHEET_COLUMNS, Column, drawn, sheet
from app.operations.judging import agreement as operations
from app.text.numbers import counted
from app.text.remedies import in_commands
from curation.judging.consensus import SURE, flagged_note, judge_rows, outlier_sentences

SIMULATED = ("the people are simulated judges: demo data, not evidence",)


def _shown(report: Result) -> str:
    lines = [run_text.headline(report)]
    if report["known"]:
        lines += [run_text.basis(report), *SIMULATED * report["simulated"]]
        lines += [sheet(run_text.rows(report)), run_text.WHY_BOUNDS]
        lines += [sheet(run_text.group_rows(report)), sheet(run_text.part_rows(report))]
    return "\n".join(filter(None, lines))


def _estimate(found: dict[str, Any]) -> str:
    """The figure, and itself without the flagged people in it where there are some."""
    if not found.get("flagged"):
        return run_text.estimate(found)
    return f"{run_text.estimate(found)}, {WITHOUT.lower()} {run_text.without_flagged(found)}"


THRESHOLDS: tuple[Column, ...] = (
    (
        "threshold",
        lambda row: "as it is" if row["threshold"] is None else f"at least {row['threshold']:.4g}",
    ),
    *(("groups", "kept_groups"), ("of the kept", lambda row: f"{row['size'] or 0:.0%}")),
    ("precision", lambda row: _estimate(row["precision"])),
    ("recall", lambda row: _estimate(row["recall"])),
)


def _estimates(actor: Actor, study_id: int) -> Result:
    found = operations.estimates(actor, study_id).as_json()
    report: Result = with_former_ends(found, "low", "high")
    return report


def _planned(result: Result) -> str:
    lines = [run_text.plan_sentence(result)]
    if result["cells"]:
        lines.append(sheet([{"items": cell["items"]} | cell for cell in result["cells"]]))
    if result["added"]:
        lines.append(f"added to study {result['study_id']}: {counted(result['items'], 'item')}")
    elif result["items"]:
        lines.append("nothing added: repeat with --add")
    return "\n".join(lines)


def _explored(result: Result) -> str:
    if not result["explored"]:
        return f"no threshold to explore: {in_commands(result['reason'])}"
    lines = [*SIMULATED * result["simulated"]]
    for each in result["explored"]:
        reason = f": {in_commands(each['reason'])}" if "reason" in each else ""
        lines.append(each["by"] + reason)
        lines.append(drawn(THRESHOLDS, each["rows"], max_columns=MAX_SHEET_COLUMNS))
    return "\n".join(lines)


def _consensus_text(report: Result) -> str:
    if not report["items"]:
        return "no person has judged this study"
    lines = [
        f"{counted(len(report['items']), 'item')} judged, {report['sure']:,} with a consensus "
        f"label of probability {SURE} or more"
    ]
    note = flagged_note(report)
    lines += [*SIMULATED * report["simulated"], *([note] if note else [])]
    return "\n".join([*lines, sheet(judge_rows(report)), *outlier_sentences(report)])


def add_to(studies: Noun) -> None:
    """Add the commands to those of studies."""
    studies.door(
        _estimates,
        name="estimate",
        text=_shown,
        about="Estimate the validator's precision and recall over the whole run.\n\nJudged items "
        "are weighted by how they were sampled; intervals are over groups. A study of listed or "
        "disputed items says nothing about the run, and the command says why.",
    )
    studies.door(operations.plan, text=_planned)
    studies.door(operations.thresholds, text=_explored)
    studies.door(
        operations.consensus,
        text=_consensus_text,
        about="Consensus labels with their probability, and who errs more than the others.\n\nBy "
        "Dawid and Skene's model over the people's judgments; models are compared with the "
        "people's consensus. --json has a row per item.",
    )
