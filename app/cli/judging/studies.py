"""`inf studies`: create studies, follow their progress, and run model judges on them."""

from pathlib import Path
from typing import Any

import click

from app.cli.judging import estimates, gold, people
from app.cli.kit.formerly import formerly
from app.cli.kit.listing import listing
from app.cli.kit.options import RegistryOption, field_options, request_of, request_options
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
from app.operations.judging import studies as operations
from curation.judges.registry import describe_judges
from curation.judging.request import JudgeStart, StudyChange, StudyFilePlan, StudyPlan
from curation.judging.sampling import describe_sampling
from curation.questions.templates import TEMPLATES, template_text
from db.errors import BadInput
from db.requests import default_of, options_of
from db.rows import Listed

text_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def studies() -> None:
    """Create studies and run model judges on them."""


for command_of_a_study in (
    gold.gold,
    gold.qualification,
    gold.template,
    people.people,
    people.adjudicate,
    people.work_of_people,
    estimates.estimate,
    estimates.plan,
    estimates.thresholds,
    estimates.consensus,
):
    studies.add_command(command_of_a_study)


def _created(result: Result) -> str:
    if "questions" in result:
        return _created_from_file(result)
    number = result["study_id"]
    summary = lines(
        ("study", f"{number} ({result['name']})"),
        ("run", result["run_id"]),
        ("items", result["items"]),
        ("judges per item", result["overlap"]),
        ("sample", f"{describe_sampling(result['sampling'])}, seed {result['seed']}"),
        ("scenarios", counts(result["scenarios"])),
        ("groups", counts(result["verdicts"])),
        ("sources", counts(result["sampling"]["sources"])),
        ("qualification", result["qualification"]),
        ("gold", result["gold"]),
    )
    command = f"inf studies judge {number} --judge JUDGE"
    return f"{summary}\nnext: people judge it on the Judge page, a model by {command}"


def _created_from_file(result: Result) -> str:
    number = result["study_id"]
    summary = lines(
        ("study", f"{number} ({result['name']})"),
        ("dataset", f"{result['dataset']} (made of the file's texts)"),
        ("items", result["items"]),
        (
            "questions",
            f"{', '.join(result['questions'])}: {result['answers']:,} answers of a judge",
        ),
        ("judges per item", result["overlap"]),
        ("qualification", result["qualification"]),
        ("gold", result["gold"]),
    )
    return (
        f"{summary}\nnext: inf serve, and people judge it on the Judge page, or a program by inf "
        f"studies judge {number} --judge JUDGE; then inf analyze agreement --study {number}"
    )


@studies.command()
@click.argument("dataset", required=False)
@field_options(StudyPlan)
@click.option(
    "--items-file",
    type=text_file,
    help="Instead of a dataset: a file of items with id, query, instruction and passages.",
)
@click.option(
    "--questions",
    "questions_file",
    type=text_file,
    help="For --items-file: the questions, as JSON.",
)
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    help="For --items-file, instead of --questions: questions that many ask.",
)
@click.option(
    "--list",
    "list_file",
    type=text_file,
    help="A file with lines GROUP, GROUP SCENARIO or item ITEM.",
)
@click.option(
    "--guidelines",
    "guidelines_file",
    type=text_file,
    help="A Markdown file (default: a short text on relevance).",
)
@launched
@reporting(_created)
def create(
    items_file: Path | None,
    questions_file: Path | None,
    template: str | None,
    list_file: Path | None,
    guidelines_file: Path | None,
    launch: Launching,
    **given: Any,
) -> Result:
    """Create a study of items sampled from all groups that reached validation, kept or dropped;
    or, by --items-file and --questions, of a file, with nothing else in the store.

    No group contributes two items. By default the sample is balanced over scenarios; --strata
    source also balances sources. A sample by disagreement or from a list is not representative
    of the run.
    """
    if items_file or questions_file or template:
        if items_file is None or (questions_file is None) == (template is None):
            raise click.UsageError(
                "--items-file requires --questions or --template: give one of them"
            )
        if questions_file is not None:
            questions = _text(questions_file), questions_file.name
        else:
            questions = template_text(str(template)), str(template)
        return _create_from_file(items_file, questions, guidelines_file, given)
    if given["dataset"] is None:
        raise click.UsageError("give a DATASET, or --items-file with --questions or --template")
    request = request_of(StudyPlan, given)
    if request.sample == "list" and list_file is None:
        raise click.UsageError("--sample list requires --list FILE")
    texts: Result = {}
    if list_file is not None:
        texts |= {"lines": tuple(_text(list_file).splitlines()), "file": list_file.name}
    if guidelines_file is not None:
        texts["guidelines"] = _text(guidelines_file)
    wanted = request.model_copy(update=texts)
    _ = wanted.sampling  # parts that do not go together are refused before anything is launched
    actor = command_actor()
    if launch.is_here:
        return operations.create(actor, wanted)
    return operations.create_as_job(actor, wanted, launch(f"sampling from {wanted.dataset}"))


def _create_from_file(
    items: Path, questions: tuple[str, str], guidelines: Path | None, given: Result
) -> Result:
    """`questions`: their text, and its name in messages."""
    for name, value in given.items():
        if name not in StudyFilePlan.model_fields and value not in (
            None,
            (),
            default_of(StudyPlan, name),
        ):
            what = (options_of(StudyPlan, name) or (name.upper(),))[0]
            raise click.UsageError(f"{what} is of a study of a dataset: leave it out")
    values = {name: given[name] for name in StudyFilePlan.model_fields if name in given}
    values |= {
        "items_file": str(items),
        "questions": questions[0],
        "questions_file": questions[1],
        "guidelines": None if guidelines is None else _text(guidelines),
    }
    from app.cli.serve import store_to_serve  # here: it loads the server

    store_to_serve()  # which makes the tables of a new store: nothing has to be there before
    return operations.create_from_file(command_actor(), request_of(StudyFilePlan, values))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path} is not UTF-8 text (byte {error.start})",
            "save it as UTF-8",
            code="text_not_utf8",
        ) from error


@studies.command("list")
@click.option("--dataset", help="Only studies of this dataset.")
@listing(
    *(("study", "id"), "status", "dataset"),
    ("size", lambda row: f"{row['items']:,} items × {row['overlap']}"),
    ("by people", lambda row: f"{row['done']}/{row['places']}"),
    "name",
    empty="no studies yet: inf studies create DATASET --items N --overlap 3",
    then="inf studies show {id}",
    former=("studies", {"study_id": "id"}),
)
def list_(dataset: str | None, **page: Any) -> Listed[Any]:
    """List studies, newest first, with their progress."""
    return operations.list_all(command_actor(), dataset).part(**page)


def _shown(result: Result) -> str:
    judges = [
        f"  {judge['judge']:<28} {judge['judged']:>6} judged{_labels(judge)}"
        for judge in result["judges"]
    ]
    return "\n".join(
        [
            lines(
                ("study", f"{result['study_id']} ({result['name']})"),
                ("status", result["status"]),
                ("dataset", result["dataset"]),
                ("run", result["run_id"]),
                ("items", result["items"]),
                ("by people", f"{result['done']:,} of {result['places']:,} judgments"),
                ("scenarios", counts(result["scenarios"])),
                ("groups", counts(result["verdicts"])),
            ),
            *(["judges"] if judges else ["judges  –"]),
            *judges,
            f"next: inf studies people {result['study_id']}"
            if result["status"] == "open"
            else f"next: inf analyze agreement --study {result['study_id']}",
        ]
    )


def _labels(judge: Result) -> str:
    labels = [judge["kind"], *(name for name in ("simulated", "offline") if judge[name])]
    return f"  [{', '.join(labels)}]"


@studies.command()
@click.argument("study_id", type=int)
@reporting(_shown)
def show(study_id: int) -> Result:
    """Show one study: its sample, progress and judges."""
    return {"study_id": study_id, **operations.show(command_actor(), study_id).as_json()}


_judged = facts(
    ("judge", lambda done: done["judge"] + " (simulated)" * done["simulated"]),
    *(("judged now", "judged"), "judged_before", ("none of them", "none")),
    ("no usable answer", lambda done: counts(done["unusable"])),
)


@studies.command("judge")
@click.argument("study_id", type=int, required=False)
@request_options(JudgeStart)
@click.option("--judge", required=True, cls=RegistryOption, describe=describe_judges)
@launched
@reporting(_judged)
def judge_(request: JudgeStart, launch: Launching) -> Result:
    """Run a model judge on every item of a study that it has not judged yet.

    With --run, on all items of the run's groups, as a second judge next to the validator: with its
    answers in a release, held_out_judge=JUDGE trains with held-out groups that it confirmed.
    """
    return operations.judge(command_actor(), request, launch(f"judging as {request.judge}"))


_changed = facts(
    *(("study", "study_id"), "status", ("judges per item", "overlap")),
    ("guidelines", lambda study: f"version {study['guideline_version']}"),
)


@studies.command("set")
@click.argument("study_id", type=int)
@request_options(StudyChange)
@click.option(
    "--guidelines",
    "file",
    type=text_file,
    help="A Markdown file with the next version of the guidelines.",
)
@reporting(_changed)
def set_(request: StudyChange, file: Path | None) -> Result:
    """Change status, overlap or guidelines of a study."""
    if file is not None:
        request = request.model_copy(update={"guidelines": _text(file)})
    done = operations.change(command_actor(), request)
    return {"study_id": done.id, **done.as_json()}


@studies.command()
@click.argument("study_id", type=int)
@reporting(_changed)
def close(study_id: int) -> Result:
    """Close a study for good: answers become final."""
    done = operations.change(command_actor(), StudyChange(study_id=study_id, status="closed"))
    return {"study_id": study_id, **done.as_json()}


@click.group()
def study() -> None:
    """As `inf studies`, its former name."""


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
