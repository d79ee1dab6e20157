"""`inf analyze agreement`: the judges of a study, or of a file of judgments."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from analysis.agreement.agreement import agreement_report, interval_caption
from analysis.agreement.flagged import WITHOUT, flag_note, flag_sentence, pair_rows, window_rows
from analysis.agreement.headline import rest_sentence
from analysis.agreement.intervals import DRAWS
from analysis.agreement.judgment_filter import JudgmentFilter
from analysis.agreement.measures import MEASURES
from analysis.study.audit import audit_lines
from analysis.study.judgment_file import read_judgments
from app.cli.kit.formerly import with_former_ends
from app.cli.kit.options import request_options
from app.cli.kit.report import Result, command_actor, counts, reporting
from app.cli.kit.table import Column, drawn, sheet
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


def _without(found: dict[str, Any], key: str = "value") -> str:
    """The figure without the flagged people in it; "" where there is none."""
    if not found.get("flagged"):
        return ""
    without = found["without_flagged"]
    return f", {WITHOUT.lower()} {score(without.get(key))}{_interval(without)}"


def _valued(found: dict[str, Any]) -> str:
    """A figure with its interval, why it is undefined, and itself without flagged people."""
    reason = f" ({found['reason']})" if "reason" in found else ""
    return f"{score(found['value'])}{_interval(found)}{reason}{_without(found)}"


PROFILES: tuple[Column, ...] = (
    *("judge", "judged", ("seconds each", lambda each: _rounded(each["median_seconds"]))),
    ("kappa with the others", lambda each: _valued(each["with_people"])),
    ("gold", lambda each: _rounded(each["gold_accuracy"])),
    *(("of", "gold_seen"), "flagged"),
    ("position bias p", lambda each: _bias(each["position_bias"])),
)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _bias(found: dict[str, Any]) -> object:
    return f"undefined ({found['reason']})" if found["p"] is None else round(found["p"], 4)


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
    counted_pairs = report["pairs_counted"]
    pairs = [pair for pair in report["pairs"] if pair["kappa"] is not None]
    few = [pair for pair in report["pairs"] if pair["kappa"] is None]
    if few_enough := len(few) <= MAX_COUNTED:
        pairs += few
    lines += [sheet(pair_rows(pairs))] if pairs else []
    if not few_enough:
        lines.append(
            f"{counted_pairs['with_fewer']:,} pairs share fewer than "
            f"{counted_pairs['min_shared']} items: no value (--json has their counts)"
        )
    if counted_pairs["listed"] < counted_pairs["pairs"]:
        lines.append(
            f"{counted_pairs['listed']:,} of {counted_pairs['pairs']:,} pairs are listed: those "
            "that share most items"
        )
    who = "simulated" if report["simulated"] else "human"
    persons = "simulated judges" if report["simulated"] else "people"
    lines.append(_figure_line(f"{who}–{who}", report["human_human"]))
    lines += [sentence] if (sentence := rest_sentence(report)) else []
    lines += [_figure_line(f"{who}–{model}", mean) for model, mean in report["human_model"].items()]
    for row in report["differences"]:
        difference = f"{row['model_a']} minus {row['model_b']}: {score(row['difference'])}"
        reason = f" ({row['reason']})" if "reason" in row else ""
        lines.append(f"{difference}{_interval(row)}{reason}{_without(row, 'difference')}")
    for name, found in report["people"].items():
        lines.append(f"{persons}, {MEASURES[name].label}: {_valued(found)}")
    if windows := report.get("over_time"):
        lines.append(sheet(window_rows(windows)))
    if profiles := report.get("by_judge"):
        lines.append(drawn(PROFILES, profiles))
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
        for name, label in (("weighted_kappa", "quadratic"), ("linear_weighted_kappa", "linear")):
            if name in found:
                lines.append(f"weighted kappa, {label}: {_valued(found[name])}")
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
    )
    if over_time:
        found["over_time"] = with_former_ends(found["over_time"], "since", "until")
    return found
