"""`inf analyze agreement`: the judges of a study, or of a file of judgments."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from analysis.agreement.agreement import agreement_report, interval_caption
from analysis.agreement.flagged import (
    difference_rows,
    flag_note,
    flag_sentence,
    measure_rows,
    pair_rows,
    pairs_sentence,
    profile_rows,
    window_rows,
)
from analysis.agreement.headline import rest_sentence
from analysis.agreement.intervals import DRAWS
from analysis.agreement.judgment_filter import JudgmentFilter
from analysis.study.audit import audit_lines
from analysis.study.judgment_file import read_judgments
from app.cli.kit.formerly import with_former_ends
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, counts, reporting
from app.cli.kit.table import sheet
from app.operations.judging import agreement as operations
from app.text.numbers import counted, score
from app.text.remedies import in_commands


def _interval(numbers: Mapping[str, Any]) -> str:
    if not numbers.get("interval"):
        return ""
    low, high = numbers["interval"]
    return f" [{low:.4f}, {high:.4f}]"


def _figure_line(name: str, found: dict[str, Any]) -> str:
    if found["value"] is None:
        return f"{name}: undefined ({found['reason']})"
    line = f"{name}: {found['label']} {score(found['value'])}{_interval(found)}"
    line += f" over {counted(found['items'], 'item')}"
    flagged = flag_sentence(found, digits=4)
    return f"{line}\n  {flagged}" if flagged else line


def _shown_agreement(report: Result) -> str:
    if "questions" in report:
        return _shown_by_question(report)
    lines = [f"{report['judgments']:,} judgments of {report['items']:,} items"]
    if "scope" in report:
        lines.append(report["scope"]["sentence"])
    if report.get("circular"):
        lines.append(report["circular"])
    if report["simulated"]:
        lines.append("the people are simulated judges: demo data, not evidence")
    few = [pair for pair in report["pairs"] if pair["kappa"] is None]
    pairs = [pair for pair in report["pairs"] if pair["kappa"] is not None]
    pairs += few if len(few) <= MAX_COUNTED else []
    lines += [
        pairs_sentence(report["pairs_counted"]),
        *([sheet(pair_rows(pairs))] if pairs else []),
    ]
    who = "simulated" if report["simulated"] else "human"
    lines.append(_figure_line(f"{who}–{who}", report["human_human"]))
    lines += [sentence] if (sentence := rest_sentence(report)) else []
    lines += [_figure_line(f"{who}–{model}", mean) for model, mean in report["human_model"].items()]
    tables = (difference_rows(report["differences"]), measure_rows(report))
    lines += [sheet(rows) for rows in tables if rows]
    if windows := report.get("over_time"):
        lines.append(sheet(window_rows(windows)))
    if profiles := report.get("by_judge"):
        lines.append(sheet(profile_rows(profiles)))
    if report["flagged"]:
        lines.append(flag_note([report]))
    for judge, chosen in report.get("answered", {}).items():
        lines.append(f"{judge} chose: {counts(chosen)}")
    if "joining" in report:
        lines.append(in_commands(operations.JOINING[report["joining"]]))
    if caption := interval_caption(report):
        lines.append(f"in brackets: {caption}")
    return "\n".join(lines)


def _shown_by_question(report: Result) -> str:
    lines = [report["scope"]["sentence"]]
    for key, found in report["questions"].items():
        lines += ["", f"{key} ({found['type']}): {found['text']}", _shown_agreement(found)]
    audit = report["audit"]
    lines += ["", f"audit of {audit['records']:,} records, over answers of people"]
    for name, share in audit_lines(audit):
        reason = f" ({share['reason']})" if "reason" in share else f" of {share['of']:,}"
        lines.append(f"{name}: {score(share['value'])}{_interval(share)}{reason}")
    lines.append(f"in brackets: 95 % intervals from {audit['resamples']:,} resamples of records")
    return "\n".join(lines)


MAX_COUNTED = 20  # pairs without a value that are printed one by one


@click.command()
@click.option("--study", type=int, help="Id of the study.")
@click.option(
    "--judgments",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="CSV or JSONL with item, judge, label and, if there are models, kind (person or model).",
)
@click.option(
    "--resamples",
    default=DRAWS,
    show_default=True,
    type=click.IntRange(min=0),
    help="Posterior draws; 0 omits the intervals.",
)
@request_options(JudgmentFilter)
@click.option("--over-time", is_flag=True, help="Also report by windows of items over time.")
@click.option("--by-judge", is_flag=True, help="Also report pace, gold and position bias.")
@reporting(_shown_agreement)
def agreement(
    study: int | None,
    judgments: Path | None,
    resamples: int,
    request: JudgmentFilter,
    over_time: bool,
    by_judge: bool,
) -> Result:
    """Agreement of people with each other and of each model with them, with intervals.

    Krippendorff's alpha of three people or more, Cohen's kappa of two and of pairs that share
    10 items or more. A study from a file has them by question, and weighted kappa and ordinal
    alpha where the answers are grades or scores.
    """
    if (study is None) == (judgments is None):
        raise click.UsageError("give either --study ID or --judgments FILE")
    if judgments is not None:
        if over_time or by_judge or request != JudgmentFilter():
            raise click.UsageError("filters, --over-time and --by-judge require --study ID")
        decisions = read_judgments(judgments)
        report = agreement_report(decisions, resamples=resamples)
        return {"judgments_file": str(judgments), **report}
    assert study is not None  # one of the two is given
    found = operations.agreement(
        command_actor(),
        study,
        chosen=request,
        resamples=resamples,
        over_time=over_time,
        by_judge=by_judge,
    ).as_json()
    if over_time:
        found["over_time"] = with_former_ends(found["over_time"], "since", "until")
    return found
