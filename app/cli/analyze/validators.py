"""`inf analyze validators`: how model judges, and votes among them, would filter a run."""

from typing import Any

import click

from app.cli.kit.report import Result, command_actor, reporting
from app.operations.judging import agreement as operations
from app.text.numbers import score


def _shown_validators(result: Result) -> str:
    lines = [f"run {result['run_id']} kept {result['kept']:,} of {result['groups']:,} groups"]
    if not result.get("scope", {}).get("of_run", True):
        lines.append(f"no kappa with people is shown: {result['scope']['sentence']}")
    for row in result["validators"]:
        passed = "–" if row["items_passed"] is None else f"{row['items_passed']:.3f}"
        cost = row["usd_per_1000_items"]
        estimated = " (estimated)" * (row["price_from"] == "estimate")
        price = (
            f"cost unknown: {row['price_reason']}"
            if cost is None
            else f"{cost:.4f} USD per 1,000 items{estimated}"
        )
        missing = "not requested" if result.get("scope", {}).get("of_run", True) else "not shown"
        kappa = score(row["human_kappa"]["value"]) if "human_kappa" in row else missing
        lines.append(
            f"{row['judge']}: passes {passed} of {row['items']:,} items, {price}, "
            f"kappa with people {kappa}"
        )
        lines.append(_beside_line(row))
    if result["flag_note"]:
        lines.append(f"kappa with people: {result['flag_note']}")
    for row in result["policies"]:
        lines.append(f"{row['policy']} of {', '.join(row['judges'])}:")
        lines.append(_beside_line(row))
    if result["not_asked"]:
        prices = ", ".join(
            f"{row['model']} {row['usd_per_1000_items']:.4f}" for row in result["not_asked"]
        )
        lines.append(f"not run, estimated USD per 1,000 items: {prices}")
    return "\n".join(lines)


def _beside_line(row: dict[str, Any]) -> str:
    whole = (
        f"    of {row['groups']:,} fully judged groups it keeps {row['kept']:,}: "
        f"{row['kept_by_both']:,} also kept by the run, {row['only_here']:,} more, "
        f"{row['only_by_the_run']:,} fewer"
    )
    if not row["kept_groups_in_part"]:
        return whole
    return (
        f"{whole}; of {row['kept_groups_in_part']:,} partly judged kept groups it drops at least "
        f"{row['surely_dropped_of_them']:,}"
    )


@click.command()
@click.option("--dataset", required=True, help="The dataset.")
@click.option("--run", type=int, help="A run of the dataset (default: the latest).")
@click.option("--study", type=int, help="A study; adds each model's kappa with its people.")
@click.option(
    "--judge",
    multiple=True,
    help="A voting judge; repeatable (default: all model judges with a fully judged group).",
)
@reporting(_shown_validators)
def validators(dataset: str, run: int | None, study: int | None, judge: tuple[str, ...]) -> Result:
    """Compare how model judges, and votes among them, would filter a run, before paying for it."""
    return operations.validators(command_actor(), dataset, run, study, judge)
