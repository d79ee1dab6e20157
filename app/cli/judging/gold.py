"""`inf studies gold|qualification|template`: items with known answers, and the rules about them."""

import json
from pathlib import Path
from typing import Any, Literal

import click

from app.cli.kit.options import field_options
from app.cli.kit.report import Result, command_actor, facts, reporting
from app.operations.judging import studies as operations
from curation.judging.request import GoldChange
from db.errors import BadInput
from db.study.rules import StudyRules

study_argument = click.argument("study_id", type=int)
file_option = click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Items with `right` and `explanation` (.jsonl, .csv, .parquet).",
)
sample_option = click.option(
    "--sample", type=click.IntRange(min=1), help="Sample N items from approved groups."
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
    given = None if file is None else str(file)
    wanted = GoldChange(study_id=study_id, part=part, file=given, sample=sample, rules=changes)
    done = operations.change_gold(command_actor(), wanted)
    return {
        "study_id": study_id,
        "added": list(done.added),
        name: done.total,
        **{rule: done.rules[rule] for rule in rules},
    }


@click.command()
@study_argument
@file_option
@sample_option
@field_options(StudyRules, changed=("gold_threshold", "gold_action"))
@reporting(
    facts(
        *(
            ("study", "study_id"),
            ("added", lambda done: len(done["added"])),
            ("gold items", "gold"),
        ),
        *(("threshold", "gold_threshold"), ("if below", "gold_action")),
    )
)
def gold(study_id: int, file: Path | None, sample: int | None, **rules: Any) -> Result:
    """Add gold items to a study, and set the rules for judges who miss them."""
    return _change(study_id, "gold", file, sample, rules)


@click.command()
@study_argument
@file_option
@sample_option
@field_options(StudyRules, changed=("pass_mark", "training_rounds", "training_items"))
@reporting(
    facts(
        *(("study", "study_id"), ("added", lambda done: len(done["added"]))),
        *(("examples", "qualification"), "pass_mark", ("rounds", "training_rounds")),
        ("examples per round", "training_items"),
    )
)
def qualification(study_id: int, file: Path | None, sample: int | None, **rules: Any) -> Result:
    """Add qualification examples with feedback, and set pass mark and number of attempts."""
    return _change(study_id, "training", file, sample, rules)


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
            f"{out} cannot be written: {error.strerror}",
            "name a file in a folder that this account can write",
            code="file_unwritable",
        ) from error
    return {"study_id": study_id, "rows": len(rows), "out": str(out)}
