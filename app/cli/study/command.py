"""`inf study`: create studies, follow their progress, and run model judges on them."""

import dataclasses
from pathlib import Path

import click

from app.cli.kit.registered import RegistryOption
from app.cli.kit.report import (
    Result,
    counts,
    detach_option,
    lines,
    me,
    ready_store,
    reporting,
    work,
)
from app.cli.study import about_run as study_about_run
from app.cli.study import consensus as study_consensus
from app.cli.study import known as study_known
from app.cli.study import people as study_people
from app.cli.study import work as study_work
from app.jobs import launching
from curation.judges.registry import describe_judges
from curation.judging.sampling import SAMPLES, STRATA, Sampling, describe_sampling
from curation.judging.studies import make_study
from db.corpus.datasets import get_dataset
from db.errors import BadInput
from db.events import record_event
from db.jobs.jobs import LOCAL
from db.run.runs import get_run
from db.study import studies
from db.values import STUDY_STATUSES, VERDICTS


@click.group()
def study() -> None:
    """Create studies and run model judges on them."""


for command_of_a_study in (
    study_known.gold,
    study_known.qualification,
    study_known.template,
    study_people.people,
    study_people.adjudicate,
    study_work.work_of_people,
    study_about_run.estimate,
    study_about_run.plan,
    study_about_run.thresholds,
    study_consensus.consensus,
):
    study.add_command(command_of_a_study)


def _created(result: Result) -> str:
    return lines(
        ("study", f"{result['study_id']} ({result['name']})"),
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


@study.command()
@click.option("--dataset", required=True, help="Name of the dataset.")
@click.option(
    "--items",
    type=click.IntRange(min=1),
    help="Number of items (default: all of the list).",
)
@click.option("--overlap", type=click.IntRange(min=1), required=True, help="Judges per item.")
@click.option("--seed", default=0, show_default=True, help="Seed of the sampling.")
@click.option(
    "--sample",
    type=click.Choice(SAMPLES),
    default="stratified",
    show_default=True,
    help="Stratified, random, by disagreement of judges, or from a list.",
)
@click.option(
    "--strata",
    type=click.Choice(STRATA),
    multiple=True,
    help="Strata of a stratified sample; repeatable [scenario].",
)
@click.option(
    "--only",
    type=click.Choice(VERDICTS),
    help="Only kept or only dropped groups [both]; such a study knows one part of the run.",
)
@click.option(
    "--apart-from",
    type=int,
    multiple=True,
    metavar="STUDY",
    help="Leave out groups that this study has items of; repeatable.",
)
@click.option("--of-study", type=int, help="For disagreement: the judges of this earlier study.")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    help="For disagreement: these judges; repeatable [all model judges and the validator].",
)
@click.option(
    "--list",
    "list_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with lines GROUP, GROUP SCENARIO or item ITEM.",
)
@click.option("--run", "run_id", type=int, help="A run of the dataset [latest finished].")
@click.option("--name", default="", help="The name shown to judges.")
@click.option(
    "--guidelines",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A Markdown file (default: a short text on relevance).",
)
@click.option(
    "--qualification",
    type=click.IntRange(min=0),
    default=0,
    help="Qualification examples before the study, from approved groups.",
)
@click.option(
    "--gold",
    type=click.IntRange(min=0),
    default=0,
    help="Gold items hidden in the study, from approved groups.",
)
@detach_option
@click.option(
    "--close-when-done",
    is_flag=True,
    help="The last answer closes the study: answers are final, and people see how they agree with "
    "the validator.",
)
@reporting(_created)
def create(
    dataset: str,
    items: int | None,
    overlap: int,
    seed: int,
    sample: str,
    strata: tuple[str, ...],
    only: str | None,
    apart_from: tuple[int, ...],
    of_study: int | None,
    judges: tuple[str, ...],
    list_file: Path | None,
    run_id: int | None,
    name: str,
    guidelines: Path | None,
    qualification: int,
    gold: int,
    detach: bool,
    close_when_done: bool,
) -> Result:
    """Create a study of items sampled from all groups that reached validation, kept or dropped.

    No group contributes two items. By default the sample is balanced over scenarios; --strata
    source also balances sources. A sample by disagreement or from a list is not representative
    of the run.
    """
    if sample == "list" and list_file is None:
        raise click.UsageError("--sample list requires --list FILE")
    sampling = Sampling(
        sample=sample,
        strata=strata or ("scenario",),
        only=only or "",
        apart_from=apart_from,
        of_study=of_study,
        judges=judges,
        lines=() if list_file is None else tuple(_text(list_file).splitlines()),
        file="" if list_file is None else list_file.name,
    )
    options: Result = {
        "dataset": dataset,
        "items": items,
        "overlap": overlap,
        "seed": seed,
        "run_id": run_id,
        "name": name,
        "guidelines": None if guidelines is None else _text(guidelines),
        "qualification": qualification,
        "gold": gold,
        "close_when_done": close_when_done,
    }
    store = ready_store()
    if detach or launching.chosen_launcher() != LOCAL:
        with store.read() as session:
            get_dataset(session, dataset)
        config = options | {"sampling": dataclasses.asdict(sampling)}
        return work(store, "study", config, detach=detach, title=f"sampling from {dataset}")
    return make_study(store, sampling=sampling, created_by=me(), **options)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path} is not UTF-8 text (byte {error.start})", code="not_utf_text_byte"
        ) from error


def as_row(found: studies.StudySummary) -> Result:
    """A study as JSON."""
    return {
        "study_id": found.id,
        "name": found.name,
        "dataset": found.dataset,
        "run_id": found.run_id,
        "status": found.status,
        "items": found.items,
        "overlap": found.overlap,
        "seed": found.seed,
        "places": found.places,
        "done": found.done,
        "created_by": found.created_by,
        "created_at": found.created_at.isoformat(),
    }


def _line(row: Result) -> str:
    return (
        f"{row['study_id']:>6}  {row['status']:<7} {row['dataset']:<20} {row['items']:>6} items × "
        f"{row['overlap']}  {row['done']}/{row['places']} by people  {row['name']}"
    )


@study.command("list")
@click.option("--dataset", help="Only studies of this dataset.")
@reporting(lambda result: "\n".join(map(_line, result["studies"])) or "no studies yet")
def list_(dataset: str | None) -> Result:
    """List studies, newest first, with their progress."""
    with ready_store().read() as session:
        dataset_id = None if dataset is None else get_dataset(session, dataset).id
        return {
            "studies": [
                as_row(each) for each in studies.list_studies(session, dataset_id=dataset_id)
            ]
        }


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
        ]
    )


def _labels(judge: Result) -> str:
    labels = [judge["kind"], *(name for name in ("simulated", "offline") if judge[name])]
    return f"  [{', '.join(labels)}]"


study_option = click.option("--study", "study_id", type=int, required=True, help="Id of the study.")


@study.command()
@study_option
@reporting(_shown)
def show(study_id: int) -> Result:
    """Show one study: its sample, progress and judges."""
    with ready_store().read() as session:
        row = as_row(studies.summarise_study(session, study_id))
        composition = studies.compose(session, study_id)
        judges = [
            {
                "judge": each.judge,
                "kind": each.kind,
                "simulated": each.simulated,
                "offline": each.offline,
                "judged": each.judged,
            }
            for each in studies.judge_progress(session, study_id)
        ]
        return {
            **row,
            "scenarios": composition.scenarios,
            "verdicts": composition.verdicts,
            "judges": judges,
        }


def _judged(result: Result) -> str:
    return lines(
        ("judge", result["judge"] + (" (simulated)" if result["simulated"] else "")),
        ("judged now", result["judged"]),
        ("judged before", result["judged_before"]),
        ("none of them", result["none"]),
        ("no usable answer", counts(result["unusable"])),
    )


@study.command("judge")
@click.option("--study", "study_id", type=int, help="Id of the study.")
@click.option("--run", "run_id", type=int, help="Instead of a study: every group of this run.")
@click.option(
    "--judge",
    required=True,
    cls=RegistryOption,
    describe=describe_judges,
)
@detach_option
@reporting(_judged)
def judge_(study_id: int | None, run_id: int | None, judge: str, detach: bool) -> Result:
    """Run a model judge on every item of a study that it has not judged yet.

    With --run, on all items of the run's groups, as a second judge next to the validator: with its
    answers in a release, held_out_judge=JUDGE trains with held-out groups that it confirmed.
    """
    if (study_id is None) == (run_id is None):
        raise click.UsageError("give either --study or --run")
    store = ready_store()
    config: dict[str, int | str] = {"judge": judge}
    with store.read() as session:
        if study_id is not None:
            config["study_id"] = studies.get_study(session, study_id).id
        if run_id is not None:
            config["run_id"] = get_run(session, run_id).id
    return work(store, "judge", config, detach=detach, title=f"judging as {judge}")


@study.command("set")
@study_option
@click.option(
    "--status",
    type=click.Choice(STUDY_STATUSES),
    help="Open, pause or close the study; a closed one stays closed.",
)
@click.option("--overlap", type=click.IntRange(min=1), help="Increase the judges per item.")
@click.option(
    "--guidelines",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A Markdown file with the next version of the guidelines.",
)
@reporting(
    lambda result: lines(
        ("study", result["study_id"]),
        ("status", result["status"]),
        ("judges per item", result["overlap"]),
        ("guidelines", f"version {result['guideline_version']}"),
    )
)
def set_(study_id: int, status: str | None, overlap: int | None, guidelines: Path | None) -> Result:
    """Change status, overlap or guidelines of a study."""
    with ready_store().write() as session:
        found = studies.get_study(session, study_id)
        if status is not None:
            studies.set_status(session, study_id, status)
            record_event(session, me(), f"study.{status}", study_id)
        if overlap is not None:
            studies.extend_overlap(session, study_id, overlap)
            record_event(session, me(), "study.overlap", study_id, overlap=overlap)
        if guidelines is not None:
            body = _text(guidelines)
            version = studies.write_guideline(session, study_id, body, created_by=me()).version
            record_event(session, me(), "study.guideline", study_id, version=version)
        session.commit()
        return {
            "study_id": study_id,
            "status": found.status,
            "overlap": found.overlap,
            "guideline_version": studies.current_guideline(session, study_id).version,
        }
