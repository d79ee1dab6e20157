"""`inf analyze coverage`: the map of texts."""

import click

from analysis.request import CoverageStart
from app.cli.analyze.corpora import corpora_options, started
from app.cli.kit.report import Result, command_actor, detach_option, reporting
from app.operations.analyses import about_map


def shown(value: float | None) -> str:
    """A share with three digits."""
    return "undefined" if value is None else f"{value:.3f}"


def _shown_coverage(result: Result) -> str:
    lines = [
        f"{corpus['corpus']}: {corpus['points']:,} points" + (" (offline)" * corpus["offline"])
        for corpus in result["corpora"]
    ]
    for field, numbers in result["fields"].items():
        for name, found in numbers.items():
            hull = found["hull_share"]
            hull_text = (
                f"hull {hull:.3f}" if hull is not None else f"hull undefined ({found['reason']})"
            )
            lines.append(f"{field}, {name}: {found['occupied_share']:.3f} of the map, {hull_text}")
    for row in result["covered"]:
        shares = [
            f"{label} undefined ({row['reason']})"
            if row[name] is None
            else f"{label} {row[name]:.3f} (its own halves {shown(row[name + '_halves'])})"
            for name, label in (("share", "covered"), ("map", "map"), ("hull", "hull"))
        ]
        lines.append(
            f"{row['field']}: {row['corpus']} with {row['by']}, {row['size']:,} texts of each: "
            + ", ".join(shares)
        )
    if result.get("circular"):
        lines.append(result["circular"])
    known = "was already stored" if result["known"] else "is stored"
    return "\n".join([*lines, f"the map {known} as analysis {result['analysis_id']}"])


@click.command()
@corpora_options(CoverageStart)
@detach_option
@reporting(_shown_coverage)
def coverage(request: CoverageStart, detach: bool) -> Result:
    """Compute a UMAP of instructions, queries and passages; the Coverage page shows it."""
    result = started(request, detach=detach, title="coverage")
    if "corpora" not in result:
        return result
    circular = about_map(command_actor(), result)
    return result | ({"circular": circular} if circular else {})
