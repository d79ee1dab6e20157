"""`inf study consensus`: the right label of every item by Dawid and Skene, and judges' errors."""

from typing import Any

import click

from analysis.figures.means import share_of
from app.cli.kit.report import Result, ready_store, reporting
from app.text.numbers import counted
from curation.judging.consensus import SURE, flagged_note, outlier_sentences, study_consensus


def _shown(report: Result) -> str:
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
    lines += [_judge_line(row) + _without(row, "compared") for row in report["judges"]]
    lines += [
        f"{row['judge']} (model): right on {share_of(row['accuracy'], row['items'])} of "
        f"{counted(row['items'], 'item')} by the people's consensus{_without(row, 'items')}"
        for row in report["models"]
    ]
    return "\n".join([*lines, *outlier_sentences(report)])


def _without(row: dict[str, Any], number: str) -> str:
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
@click.option("--study", "study_id", type=int, required=True, help="Id of the study.")
@reporting(_shown)
def consensus(study_id: int) -> Result:
    """Consensus labels with their probability, and who errs more than the others.

    By Dawid and Skene's model over the people's judgments; models are compared with the people's
    consensus. --json has a row per item.
    """
    with ready_store().read() as session:
        return study_consensus(session, study_id)
