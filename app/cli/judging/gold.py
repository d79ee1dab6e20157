"""`inf studies gold|qualification|template`: items with known answers, and the rules about them."""

from pathlib import Path
from typing import Any

import click

from analysis.files.written import write_files
from app.cli.kit.doors import Noun
from app.cli.kit.options import field_options, request_of
from app.cli.kit.report import command_actor, facts, reporting
from app.cli.kit.table import Column
from app.operations.judging import studies as operations
from app.operations.judging.studies import GoldSet, Known, QualificationSet, TemplateWritten
from curation.judging.request import GoldChange
from db.study.rules import StudyRules


def add_to(studies: Noun) -> None:
    """Add the commands to those of studies."""
    _add_known(
        studies,
        GoldSet,
        "gold",
        rules={"gold_threshold": "threshold", "gold_action": "if below"},
        about="Add gold items to a study, and set the rules for judges who miss them.",
    )
    _add_known(
        studies,
        QualificationSet,
        "qualification",
        rules={
            "pass_mark": "pass mark",
            "training_rounds": "rounds",
            "training_items": "examples per round",
        },
        about="Add qualification examples with feedback, and set pass mark and number of attempts.",
    )
    studies.add_command(template)


def _add_known(
    studies: Noun, row: type[Known], name: str, rules: dict[str, str], about: str
) -> None:
    """The command that adds items of a part, and sets the rules, which have these labels."""
    columns: tuple[Column, ...] = (
        ("study", "study_id"),
        *(("added", lambda done: len(done["added"])), (f"{name} items", name)),
        *((label, rule) for rule, label in rules.items()),
    )

    @studies.command(name, help=about)
    @field_options(GoldChange)
    @field_options(StudyRules, changed=tuple(rules))
    @reporting(facts(*columns))
    def command(**given: Any) -> Known:
        chosen = {rule: value for rule in rules if (value := given.pop(rule)) is not None}
        if given["file"] is None and given["sample"] is None and not chosen:
            raise click.UsageError(
                f"nothing to do: give --file, --sample or a rule (inf studies {name} --help)"
            )
        wanted = request_of(GoldChange, given | {"part": row.part, "rules": chosen})
        done = operations.change_gold(command_actor(), wanted)
        counted = {"study_id": wanted.study_id, "added": done.added, name: done.total}
        return row.model_validate({**dict(done.rules), **counted})


@click.command()
@click.argument("study_id", type=int)
@click.option(
    "--items", default=operations.TEMPLATE_ROWS, show_default=True, type=click.IntRange(min=1)
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True)
@reporting(lambda result: f"{result['rows']} rows to complete: {result['out']}")
def template(study_id: int, items: int, out: Path) -> TemplateWritten:
    """Write unused items to a file, in which you fill in the right answer and the reason."""
    text = operations.template(command_actor(), study_id, items)
    write_files(out.parent, {out.name: text}, replace=True)
    return TemplateWritten(study_id=study_id, rows=text.count("\n"), out=str(out))
