"""`inf studies`: create studies, follow their progress, and run model judges on them."""

from collections.abc import Callable
from typing import Any

import click

from app.cli.judging import estimates, exchange, gold, people
from app.cli.kit.doors import Noun
from app.cli.kit.formerly import formerly
from app.cli.kit.options import RegistryOption, Text, TextFile, field_options, request_of
from app.cli.kit.report import (
    Launching,
    Result,
    command_actor,
    counts,
    facts,
    launched,
    lines,
    reporting,
)
from app.cli.kit.table import drawn
from app.operations.judging import studies as operations
from curation.judges.registry import describe_judges
from curation.judging.request import StudyFilePlan, StudyPlan
from curation.judging.sampling import describe_sampling
from curation.questions.templates import TEMPLATES, template_text
from db.requests import default_of
from db.rows import Row

studies = Noun("studies", former={"study_id": "id"})
for room in (gold, people, estimates, exchange):
    room.add_to(studies)


CREATED: tuple[tuple[str, str, Callable[[Result], object]], ...] = (
    ("study", "study_id", lambda made: f"{made['study_id']} ({made['name']})"),
    ("dataset", "dataset", lambda made: f"{made['dataset']} (made of the file's texts)"),
    ("run", "run_id", lambda made: made["run_id"]),
    ("items", "items", lambda made: made["items"]),
    ("questions", "questions", lambda made: ", ".join(made["questions"])),
    ("answers of a judge", "answers", lambda made: made["answers"]),
    ("judges per item", "overlap", lambda made: made["overlap"]),
    ("sample", "sampling", lambda made: describe_sampling(made["sampling"])),
    ("seed", "sampling", lambda made: made["seed"]),
    ("scenarios", "scenarios", lambda made: counts(made["scenarios"])),
    ("groups", "verdicts", lambda made: counts(made["verdicts"])),
    ("sources", "sampling", lambda made: counts(made["sampling"]["sources"])),
    ("qualification", "qualification", lambda made: made["qualification"]),
    ("gold", "gold", lambda made: made["gold"]),
)


def _created(result: Result) -> str:
    """What a study has, of a run or of a file, and what comes next."""
    number, is_of_file = result["study_id"], "questions" in result
    known = [each for each in CREATED if each[1] in result and (is_of_file or each[0] != "dataset")]
    summary = lines(*((label, value(result)) for label, _, value in known))
    start, then = "people judge it", ""
    if is_of_file:
        start, then = (
            "inf serve, and people judge it",
            f"; then inf analyze agreement --study {number}",
        )
    command = f"on the Judge page, a model or program by inf studies judge {number} --judge JUDGE"
    return f"{summary}\nnext: {start} {command}{then}"


@studies.command()
@field_options(StudyPlan)
@click.argument("dataset", required=False)
@click.option(
    "--items-file",
    type=click.Path(exists=True, dir_okay=False),
    help="Instead of a dataset: a file of items with id, query, instruction and passages.",
)
@click.option("--questions", type=TextFile(), help="For --items-file: the questions, as JSON.")
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    help="For --items-file, instead of --questions: questions that many ask.",
)
@click.option(
    "--list",
    "lines",
    type=TextFile(),
    help="A file with lines GROUP, GROUP SCENARIO or item ITEM.",
)
@click.option(
    "--guidelines", type=TextFile(), help="A Markdown file (default: a short text on relevance)."
)
@launched
@reporting(_created)
def create(
    items_file: str | None,
    questions: Text | None,
    template: str | None,
    launch: Launching,
    **given: Any,
) -> Result | Row:
    """Create a study of items sampled from all groups that reached validation, kept or dropped;
    or, by --items-file and --questions, of a file, with nothing else in the store.

    No group contributes two items. By default the sample is balanced over scenarios; --strata
    source also balances sources. A sample by disagreement or from a list is not representative
    of the run.
    """
    if items_file or questions or template:
        if items_file is None or (questions is None) == (template is None):
            raise click.UsageError(
                "--items-file requires --questions or --template: give one of them"
            )
        listed = questions or Text(template_text(str(template)), str(template))
        return _create_from_file(items_file, listed, given)
    if given["dataset"] is None:
        raise click.UsageError("give a DATASET, or --items-file with --questions or --template")
    if lines := given["lines"]:
        given |= {"lines": lines.splitlines(), "file": lines.file}
    elif given["sample"] == "list":
        raise click.UsageError("--sample list requires --list FILE")
    wanted = request_of(StudyPlan, given)
    _ = wanted.sampling  # parts that do not go together are refused before anything is launched
    actor = command_actor()
    if launch.is_here:
        return operations.create(actor, wanted)
    return operations.create_as_job(actor, wanted, launch(f"sampling from {wanted.dataset}"))


def _create_from_file(items: str, questions: Text, given: Result) -> Row:
    values = {k: v for k, v in given.items() if v not in (None, (), default_of(StudyPlan, k))}
    values |= {"items_file": items, "questions": questions, "questions_file": questions.file}
    from app.cli.serve import store_to_serve  # here: it loads the server

    store_to_serve()  # which makes the tables of a new store: nothing has to be there before
    return operations.create_from_file(command_actor(), request_of(StudyFilePlan, values))


studies.listed(
    operations.list_all,
    click.option("--dataset", help="Only studies of this dataset."),
    columns=(
        *(("study", "id"), "status", "dataset"),
        ("size", lambda row: f"{row['items']:,} items × {row['overlap']}"),
        *(("by people", lambda row: f"{row['done']}/{row['places']}"), "name"),
    ),
    empty="no studies yet",
)


def _shown(result: Result) -> str:
    number = result["study_id"]
    facts = lines(
        ("study", f"{number} ({result['name']})"),
        ("status", result["status"]),
        ("dataset", result["dataset"]),
        ("run", result["run_id"]),
        ("items", result["items"]),
        ("by people", f"{result['done']:,} of {result['places']:,} judgments"),
        ("scenarios", counts(result["scenarios"])),
        ("groups", counts(result["verdicts"])),
    )
    judges = drawn(("judge", "judged", ("kind", _labels)), result["judges"], empty="no judge yet")
    of_open = result["status"] == "open"
    then = f"studies people {number}" if of_open else f"analyze agreement --study {number}"
    return f"{facts}\n{judges}\nnext: inf {then}"


def _labels(judge: Result) -> str:
    return ", ".join([judge["kind"], *(name for name in ("simulated", "offline") if judge[name])])


studies.door(operations.show, text=_shown)
_changed = facts(
    *(("study", "study_id"), "status", ("judges per item", "overlap")),
    ("guidelines", lambda study: f"version {study['guideline_version']}"),
)
studies.door(
    operations.judge,
    click.option("--judge", required=True, cls=RegistryOption, describe=describe_judges),
    text=(
        ("judge", lambda done: done["judge"] + " (simulated)" * done["simulated"]),
        *(("judged now", "judged"), "judged_before", ("none of them", "none")),
        ("no usable answer", lambda done: counts(done["unusable"])),
        ("cost", lambda done: f"${done['spent_usd']:.4f}" if done["spent_usd"] else ""),
    ),
    title="judging as {judge}",
    about="Run a model judge on every item of a study that it has not judged yet.\n\nWith --run, "
    "on all items of the run's groups, as a second judge next to the validator: with its answers "
    "in a release, held_out_judge=JUDGE trains with held-out groups that it confirmed.",
)
studies.door(
    operations.change,
    click.option(
        "--guidelines",
        type=TextFile(),
        help="A Markdown file with the next version of the guidelines.",
    ),
    name="set",
    text=_changed,
)
studies.door(operations.add_example, name="example", text=_changed)
studies.door(
    operations.recruit,
    text=lambda made: f"give this path of the app to {made['platform']}: {made['path']}",
)
close = studies.door(operations.close, text=_changed)
study = Noun("study")
for each in (one for one in studies.commands.values() if one is not close):
    options = {"study_id": "--study", "dataset": "--dataset"}
    now = " ".join(
        arg.make_metavar(click.Context(each))
        for arg in each.params
        if isinstance(arg, click.Argument)
    )
    study.add_command(
        formerly(each, f"study {each.name}", f"studies {each.name} {now}".rstrip(), options=options)
    )
