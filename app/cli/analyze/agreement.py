"""`inf analyze agreement`: the judges of a study, or of a file of judgments."""

from collections.abc import Mapping
from typing import Any

from analysis.agreement.agreement import interval_caption
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
from analysis.study.audit import audit_lines
from app.access.identity import Actor, owner
from app.cli.kit.doors import Noun
from app.cli.kit.formerly import with_former_ends
from app.cli.kit.report import Result, command_actor, counts, me
from app.cli.kit.table import sheet
from app.operations.judging import agreement as operations
from app.text.numbers import counted, score
from app.text.remedies import in_commands
from curation.judging.request import AgreementShow


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


def _agreement(actor: Actor, wanted: AgreementShow) -> Result:
    found = operations.agreement(actor, wanted).as_json()
    if windows := found.get("over_time"):
        found["over_time"] = with_former_ends(windows, "since", "until")
    return found


def add_to(analyze: Noun) -> None:
    """Add the command to those of analyses; of a file it needs no store."""
    analyze.door(
        _agreement,
        name="agreement",
        text=_shown_agreement,
        actor=lambda given: owner(me()) if given["judgments"] else command_actor(),
    )
