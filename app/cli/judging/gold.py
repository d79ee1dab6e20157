"""`inf studies gold|qualification|template`: items with known answers, and the rules about them."""

import json
from pathlib import Path
from typing import Any, Literal

import click

from app.cli.kit.report import Result, command_actor, lines, reporting
from app.operations.judging import studies as operations
from db.errors import BadInput
from db.study.rules import GOLD_ACTIONS

study_argument = click.argument("study_id", type=int)
file_option = click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Items with `right` and `explanation` (.jsonl, .csv, .parquet).",
)


def _change(
    study_id: int,
    part: Literal["gold", "training"],
    file: Path | None,
    sample: int | None,
    rules: dict[str, Any],
) -> Result:
    changes = {rule: value for rule, value in rules.items() if value is not None}
    name = "gold" if part == "gold" else "qualification"
    if file is None and sample is None and not changes:
        raise click.UsageError(
            f"nothing to do: give --file, --sample or a rule (inf studies {name} --help)"
        )
    done = operations.change_gold(
        command_actor(), study_id, part, file=file, sample=sample, rules=changes
    )
    return {
        "study_id": study_id,
        "added": list(done.added),
        name: done.total,
        **{rule: done.rules[rule] for rule in rules},
    }


@click.command()
@study_argument
@file_option
@click.option("--sample", type=click.IntRange(min=1), help="Sample N items from approved groups.")
@click.option("--threshold", type=float, help="Required gold accuracy, 0 to 1 [0.7].")
@click.option("--action", type=click.Choice(GOLD_ACTIONS), help="If below threshold [warn].")
@reporting(
    lambda result: lines(
        ("study", result["study_id"]),
        ("added", len(result["added"])),
        ("gold items", result["gold"]),
        ("threshold", result["gold_threshold"]),
        ("if below", result["gold_action"]),
    )
)
def gold(
    study_id: int,
    file: Path | None,
    sample: int | None,
    threshold: float | None,
    action: str | None,
) -> Result:
    """Add gold items to a study, and set the rules for judges who miss them."""
    rules = {"gold_threshold": threshold, "gold_action": action}
    return _change(study_id, "gold", file, sample, rules)


@click.command()
@study_argument
@file_option
@click.option("--sample", type=click.IntRange(min=1), help="Sample N items from approved groups.")
@click.option("--pass-mark", type=float, help="Required share of right answers, 0 to 1 [0.8].")
@click.option("--rounds", type=int, help="Attempts before a judge is paused [3].")
@click.option("--per-round", type=int, help="Examples per round, each round with others [5].")
@reporting(
    lambda result: lines(
        ("study", result["study_id"]),
        ("added", len(result["added"])),
        ("examples", result["qualification"]),
        ("pass mark", result["pass_mark"]),
        ("rounds", result["training_rounds"]),
        ("examples per round", result["training_items"]),
    )
)
def qualification(
    study_id: int,
    file: Path | None,
    sample: int | None,
    pass_mark: float | None,
    rounds: int | None,
    per_round: int | None,
) -> Result:
    """Add qualification examples with feedback, and set pass mark and number of attempts."""
    given = {"pass_mark": pass_mark, "training_rounds": rounds, "training_items": per_round}
    return _change(study_id, "training", file, sample, given)


@click.command()
@study_argument
@click.option("--items", default=20, show_default=True, type=click.IntRange(min=1))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True)
@reporting(lambda result: f"{result['rows']} rows to complete: {result['out']}")
def template(study_id: int, items: int, out: Path) -> Result:
    """Write unused items to a file, in which you fill in the right answer and the reason."""
    rows = operations.template(command_actor(), study_id, items)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"{out} cannot be written: {error.strerror}", code="file_unwritable"
        ) from error
    return {"study_id": study_id, "rows": len(rows), "out": str(out)}
