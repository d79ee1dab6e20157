"""`inf analyze`: agreement, diversity and coverage."""

from pathlib import Path
from typing import Any

import click

from analysis.agreement import Decision, agreement_report
from analysis.judgment_file import read_judgments
from app.cli.report import Result, ready_store, reporting
from db.judgments import judgment_frame
from db.studies import get_study


@click.group()
def analyze() -> None:
    """Agreement of judges, diversity and coverage of texts."""


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _mean_line(name: str, mean: dict[str, Any]) -> str:
    if mean["kappa"] is None:
        return f"{name}: undefined ({mean['reason']})"
    left_out = mean["undefined_pairs"]
    note = f", {left_out} undefined" if left_out else ""
    return f"{name}: mean kappa {_number(mean['kappa'])} over {mean['pairs']} pairs{note}"


def _shown_agreement(report: Result) -> str:
    lines = [f"{report['judgments']:,} judgments of {report['items']:,} items"]
    if report["simulated"]:
        lines.append("the people are simulated judges: a demo, no evidence")
    for pair in report["pairs"]:
        spread = "" if pair["kappa"] is None else f" ± {_number(pair['standard_error'])}"
        reason = f" ({pair['reason']})" if "reason" in pair else ""
        lines.append(
            f"{pair['judge_a']} – {pair['judge_b']}: kappa {_number(pair['kappa'])}{spread}{reason}"
            f", agreement {_number(pair['agreement'])}, {pair['items']:,} items"
        )
    lines.append(_mean_line("human–human", report["human_human"]))
    lines += [_mean_line(f"human–{model}", mean) for model, mean in report["human_model"].items()]
    return "\n".join(lines)


@analyze.command()
@click.option("--study", type=int, help="The id of a study.")
@click.option(
    "--judgments",
    type=click.Path(path_type=Path, dir_okay=False),
    help="CSV or JSONL with item, judge, label and, if there are models, kind (person or model).",
)
@reporting(_shown_agreement)
def agreement(study: int | None, judgments: Path | None) -> Result:
    """Cohen's kappa of every pair of judges, human–human and human–model means."""
    if (study is None) == (judgments is None):
        raise click.UsageError("give --study ID or --judgments FILE, one of them")
    if judgments is not None:
        return {"judgments_file": str(judgments), **agreement_report(read_judgments(judgments))}
    store = ready_store()
    with store.read() as session:
        get_study(session, study)
        rows = judgment_frame(session, study)
    decisions = [
        Decision(row.item_id, row.judge, row.label, row.kind, row.simulated, row.offline)
        for row in rows
    ]
    return {"study_id": study, **agreement_report(decisions)}
