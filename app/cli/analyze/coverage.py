"""`inf analyze coverage`: the map of texts."""

from typing import Any

import click

from app.cli.analyze.corpora import corpora_config, corpora_options
from app.cli.kit.report import Result, detach_option, ready_store, reporting, work
from curation.judging.independence import map_sentence


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
@corpora_options
@click.option("--seed", default=0, show_default=True, help="Seed of the map.")
@click.option("--onto", type=int, help="Place the corpora on this stored map (an analysis).")
@click.option(
    "--fit",
    type=click.IntRange(min=10),
    help="Fit at most N texts and place the others.",
)
@click.option(
    "--pairs", is_flag=True, help="Also the pairs without a kept group, a corpus per dataset."
)
@detach_option
@reporting(_shown_coverage)
def coverage(
    detach: bool, seed: int, onto: int | None, fit: int | None, pairs: bool, **corpora: Any
) -> Result:
    """Compute a UMAP of instructions, queries and passages; the Coverage page shows it."""
    if onto is not None and fit is not None:
        raise click.UsageError("--fit cannot be combined with --onto, which fits nothing")
    config = {**corpora_config(**corpora), "seed": seed, "onto": onto, "fit": fit, "pairs": pairs}
    store = ready_store()
    result = work(store, "project", config, detach=detach, title="coverage")
    if "corpora" not in result:
        return result
    with store.read() as session:
        circular = map_sentence(session, result)
    return result | ({"circular": circular} if circular else {})
