"""`inf analyze agreement`: the judges of a study, or of a file of judgments."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from analysis.agreement.agreement import agreement_report, interval_caption
from analysis.agreement.flagged import WITHOUT, flag_note, flag_sentence
from analysis.agreement.headline import rest_sentence
from analysis.agreement.intervals import DRAWS
from analysis.agreement.judgment_filter import JudgmentFilter
from analysis.agreement.measures import MEASURES
from analysis.study.audit import audit_lines
from analysis.study.judgment_file import read_judgments
from app.cli.kit.formerly import with_former_ends
from app.cli.kit.report import Result, command_actor, counts, reporting
from app.operations.judging import agreement as operations
from app.text.numbers import counted, score
from app.text.remedies import in_commands
from db.shape import INF_IR


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


def _pair_line(pair: dict[str, Any]) -> str:
    names = f"{pair['judge_a']} – {pair['judge_b']}"
    if pair["kappa"] is None:
        return f"{names}: {pair['reason']}"
    return (
        f"{names}: kappa {score(pair['kappa'])}{_interval(pair)}, "
        f"agreement {score(pair['agreement'])}, {pair['items']:,} items"
        + (f" (flagged: {', '.join(pair['flagged'])})" if "flagged" in pair else "")
    )


def _without(found: dict[str, Any], key: str = "value") -> str:
    """The figure without the flagged people in it; "" where there is none."""
    if not found.get("flagged"):
        return ""
    without = found["without_flagged"]
    return f", {WITHOUT.lower()} {score(without.get(key))}{_interval(without)}"


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
    lines += [_pair_line(pair) for pair in report["pairs"] if pair["kappa"] is not None]
    few = [pair for pair in report["pairs"] if pair["kappa"] is None]
    if len(few) <= MAX_COUNTED:
        lines += [_pair_line(pair) for pair in few]
    else:
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
        reason = f" ({found['reason']})" if "reason" in found else ""
        value = f"{score(found['value'])}{_interval(found)}{reason}{_without(found)}"
        lines.append(f"{persons}, {MEASURES[name].label}: {value}")
    for window in report.get("over_time", ()):
        found = window["human_human"]
        lines.append(
            f"window {window['window']} to {window['until'][:16]}: {window['items']:,} items, "
            f"{found['label']} of {persons} {score(found['value'])}"
            + (f" ({found['reason']})" if "reason" in found else "")
            + _without(found)
        )
    for each in report.get("by_judge", ()):
        pace, gold = each["median_seconds"], each["gold_accuracy"]
        p, bias = each["position_bias"]["p"], each["position_bias"].get("reason", "")
        lines.append(
            f"{each['judge']}: {each['judged']:,} judged, "
            + ("pace unknown" if pace is None else f"{pace:.1f} s each")
            + f", kappa with the other {persons} {score(each['with_people']['value'])}"
            + _interval(each["with_people"])
            + _without(each["with_people"])
            + (", no gold items" if gold is None else f", gold {gold:.3f} of {each['gold_seen']}")
            + (f", flagged: {each['flagged']}" if each["flagged"] else "")
            + (f", position bias undefined ({bias})" if p is None else f", position bias p {p:.4f}")
        )
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
                value = found[name]
                reason = f" ({value['reason']})" if "reason" in value else ""
                weighted = f"{score(value['value'])}{_interval(value)}{reason}"
                lines.append(f"weighted kappa, {label}: {weighted}")
    audit = report["audit"]
    lines += ["", f"audit of {audit['records']:,} records, over answers of people"]
    for name, share in audit_lines(audit):
        reason = f" ({share['reason']})" if "reason" in share else f" of {share['of']:,}"
        lines.append(f"{name}: {score(share['value'])}{_interval(share)}{reason}")
    lines.append(f"in brackets: 95 % intervals from {audit['resamples']:,} resamples of records")
    return "\n".join(lines)


MAX_COUNTED = 20  # pairs without a value that are printed one by one
DAY = click.DateTime(["%Y-%m-%d"])


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
@click.option(
    "--role",
    multiple=True,
    type=click.Choice(list(INF_IR.scenarios)),
    help="Only items of this scenario; repeatable, like the other filters.",
)
@click.option("--source", multiple=True, help="Only items of pairs of this source.")
@click.option("--recipe", multiple=True, help="Only items generated with this recipe.")
@click.option("--judge", multiple=True, help="Only this judge.")
@click.option("--question", multiple=True, help="Only this question of a study from a file.")
@click.option("--since", type=DAY, help="Only judgments from this day (UTC) on.")
@click.option("--until", type=DAY, help="Only judgments up to this day (UTC).")
@click.option(
    "--over-time",
    is_flag=True,
    help="Also report by windows of items over time.",
)
@click.option(
    "--by-judge",
    is_flag=True,
    help="Also report pace, gold and position bias.",
)
@reporting(_shown_agreement)
def agreement(
    study: int | None,
    judgments: Path | None,
    resamples: int,
    role: tuple[str, ...],
    source: tuple[str, ...],
    recipe: tuple[str, ...],
    judge: tuple[str, ...],
    question: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
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
    if since and until and since > until:
        raise click.UsageError(f"--since {since:%Y-%m-%d} is after --until {until:%Y-%m-%d}")
    chosen = JudgmentFilter(
        role, source, recipe, judge, since and since.date(), until and until.date(), question
    )
    if judgments is not None:
        if over_time or by_judge or chosen != JudgmentFilter():
            raise click.UsageError("filters, --over-time and --by-judge require --study ID")
        decisions = read_judgments(judgments)
        report = agreement_report(decisions, resamples=resamples)
        return {"judgments_file": str(judgments), **report}
    assert study is not None  # one of the two is given
    found = operations.agreement(
        command_actor(),
        study,
        chosen=chosen,
        resamples=resamples,
        over_time=over_time,
        by_judge=by_judge,
    )
    if over_time:
        found["over_time"] = with_former_ends(found["over_time"], "since", "until")
    return found
