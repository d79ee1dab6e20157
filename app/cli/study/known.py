"""`inf study gold|training|template`: items whose answer is known, and the rules about them."""

import json
from pathlib import Path
from typing import Any

import click

from app.cli.kit.report import Result, lines, me, ready_store, reporting
from curation.judging.known_item_file import add_from_file, template_rows
from db.errors import BadInput
from db.people.accounts import record_audit
from db.study.gold_items import draw_known_items
from db.study.rules import GOLD_ACTIONS, set_rules
from db.study.studies import count_parts

study_option = click.option("--study", "study_id", type=int, required=True, help="Its number.")
file_option = click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Rows (.jsonl, .csv, .parquet) of items with `right` and `explanation`.",
)


def _change(
    study_id: int, part: str, file: Path | None, draw: int | None, rules: dict[str, Any]
) -> Result:
    changes = {name: value for name, value in rules.items() if value is not None}
    if file is None and draw is None and not changes:
        raise BadInput(f"nothing to do: give --file, --draw or a rule (inf study {part} --help)")
    with ready_store().write() as session:
        added = [] if file is None else add_from_file(session, study_id, part, file)
        if draw is not None:
            added += draw_known_items(session, study_id, part, draw)
        now = set_rules(session, study_id, **changes)
        record_audit(session, me(), f"study.{part}", str(study_id), items=len(added), rules=changes)
        total = count_parts(session, study_id).get(part, 0)
        session.commit()
    return {
        "study_id": study_id,
        "added": added,
        part: total,
        **{name: getattr(now, name) for name in rules},
    }


@click.command()
@study_option
@file_option
@click.option("--draw", type=click.IntRange(min=1), help="Draw so many from approved groups.")
@click.option("--threshold", type=float, help="Share that has to be right, 0 to 1 [0.7].")
@click.option("--action", type=click.Choice(GOLD_ACTIONS), help="Below it: warn, or pause [warn].")
@click.option("--every", type=int, help="One after so many items [10].")
@reporting(
    lambda result: lines(
        ("study", result["study_id"]),
        ("added", len(result["added"])),
        ("gold items", result["gold"]),
        ("threshold", result["gold_threshold"]),
        ("below it", result["gold_action"]),
        ("one every", f"{result['gold_every']} items"),
    )
)
def gold(
    study_id: int,
    file: Path | None,
    draw: int | None,
    threshold: float | None,
    action: str | None,
    every: int | None,
) -> Result:
    """Hide control items in a study, and say what happens to who misses them."""
    rules = {"gold_threshold": threshold, "gold_action": action, "gold_every": every}
    return _change(study_id, "gold", file, draw, rules)


@click.command()
@study_option
@file_option
@click.option("--draw", type=click.IntRange(min=1), help="Draw so many from approved groups.")
@click.option("--pass-mark", type=float, help="Share that has to be right, 0 to 1 [0.8].")
@click.option("--rounds", type=int, help="Tries before a judge is paused [3].")
@reporting(
    lambda result: lines(
        ("study", result["study_id"]),
        ("added", len(result["added"])),
        ("examples", result["training"]),
        ("pass mark", result["pass_mark"]),
        ("rounds", result["training_rounds"]),
    )
)
def training(
    study_id: int,
    file: Path | None,
    draw: int | None,
    pass_mark: float | None,
    rounds: int | None,
) -> Result:
    """Give a study examples with feedback before it, a pass mark and a number of tries."""
    given = {"pass_mark": pass_mark, "training_rounds": rounds}
    return _change(study_id, "training", file, draw, given)


@click.command()
@study_option
@click.option("--items", default=20, show_default=True, type=click.IntRange(min=1))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True)
@reporting(lambda result: f"{result['rows']} rows to fill in: {result['out']}")
def template(study_id: int, items: int, out: Path) -> Result:
    """Write items that the study does not use, for you to fill in what is right and why."""
    with ready_store().read() as session:
        rows = template_rows(session, study_id, items)
    if not rows:
        raise BadInput(f"study {study_id} uses every group of its run: there is none to write")
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{out} cannot be written: {error.strerror}") from error
    return {"study_id": study_id, "rows": len(rows), "out": str(out)}
