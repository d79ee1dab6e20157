"""`inf analyze diversity`: APS, INGF, counts and lengths."""

from typing import Any

import click

from analysis.figures.figures import sign
from analysis.request import DiversityStart
from app.cli.analyze.corpora import corpora_options, started
from app.cli.kit.report import Result, counts, detach_option, reporting

FIELD_SIGNS = {"instruction": "I", "query": "Q", "passage": "P", "text": "text"}


def _shown_diversity(result: Result) -> str:
    lines = []
    for corpus in result["corpora"]:
        label = " (offline)" if corpus["offline"] else ""
        lines.append(f"{corpus['corpus']}{label}")
        if corpus["dropped"]:
            lines.append(f"     dropped by its run: {counts(corpus['dropped'])}")
        lines.append("       texts  different  words      APS   INGF-2   INGF-3")
        for field, numbers in corpus["fields"].items():
            lines.append(_diversity_line(FIELD_SIGNS[field], numbers))
            if len(numbers["by_role"]) > 1:
                lines += [
                    _diversity_line(f" {sign(field, role)}", of_role)
                    for role, of_role in numbers["by_role"].items()
                ]
            if sampled := numbers.get("sampled"):
                lines.append(_sampled_line(sampled, numbers.get("halves")))
        for field, numbers in corpus["fields"].items():
            for metric, reason in numbers.get("reason", {}).items():
                lines.append(f"{FIELD_SIGNS[field]}: {metric} is undefined: {reason}")
    return "\n".join(lines)


def _diversity_line(name: str, numbers: dict[str, Any]) -> str:
    def cell(value: float | None, digits: int) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    return (
        f"{name:<4} {numbers['texts']:>7,} {numbers['different']:>10,}"
        f" {cell(numbers['mean_words'], 1):>6} {cell(numbers['aps'], 4):>8}"
        f" {cell(numbers['ingf_2'], 1):>8} {cell(numbers['ingf_3'], 1):>8}"
    )


def _sampled_line(sampled: dict[str, Any], halves: dict[str, Any] | None = None) -> str:
    parts = []
    for metric, name in (("aps", "APS"), ("ingf_2", "INGF-2"), ("ingf_3", "INGF-3")):
        if sampled[metric] is None:
            parts.append(f"{name} undefined ({sampled['reason'][metric]})")
        else:
            sd = sampled[metric]["sd"]
            spread = " (one draw)" if sd is None else f" ± {sd:.4g}"
            own = (halves or {}).get(metric)
            apart = "" if own is None else f" (its own halves differ by {own:.4g})"
            parts.append(f"{name} {sampled[metric]['mean']:.6g}{spread}{apart}")
    why = f"; no halves: {halves['reason']}" if halves and "reason" in halves else ""
    return f"     {sampled['repeats']} samples of {sampled['size']:,}: " + ", ".join(parts) + why


@click.command()
@corpora_options(DiversityStart)
@detach_option
@reporting(_shown_diversity)
def diversity(request: DiversityStart, detach: bool) -> Result:
    """APS, INGF, counts and mean lengths of instructions, queries and passages.

    Several corpora are also compared on samples of equal size, because INGF grows with size.
    """
    return started(request, detach=detach, title="diversity")
