"""`inf datasets import`, in short `inf import`: files into a dataset; with `--detach` as a job."""

import shlex
from typing import Any

import click

from analysis.files.storage import local_file
from app.cli.kit.options import request_options
from app.cli.kit.progress import progress_bar
from app.cli.kit.report import Launching, Result, command_actor, counts, launched, lines, reporting
from app.cli.kit.table import MAX_SHEET_COLUMNS, drawn
from app.operations import datasets as operations
from app.operations.datasets import JudgmentsImport
from app.text.numbers import counted
from curation.importing.request import DatasetImport

SHOWN = 20


def _human(result: Result) -> str:
    if "preview" in result:
        return _human_preview(result)
    facts: list[tuple[str, object]]
    if "study_id" in result:
        facts = [
            ("study", result["study_id"]),
            ("question", result["question"]),
            ("judgments", _import_counts(result["imported"], result["unchanged"])),
            ("judges", len(result["judges"])),
            ("no judgments", counts(result["not_judged"])),
        ]
        following = f"analyze agreement --study {result['study_id']}"
    else:
        facts = [("dataset", f"{result['dataset']} (id {result['dataset_id']})")]
        imported = _import_counts(result["imported"], result["unchanged"])
        if "run_id" in result:
            facts += [("run", result["run_id"]), ("groups", imported)]
            following = f"groups list {result['run_id']}"
        else:
            passages = (result["imported_passages"], result["unchanged_passages"])
            facts += [("pairs", imported), ("passages", _import_counts(*passages))]
            if negatives := result["imported_negatives"]:
                facts.append(("negatives", f"{negatives:,} given to pairs"))
            following = f"datasets show {shlex.quote(result['dataset'])}"
    summary = lines(*facts, ("skipped", result["skipped"]))
    parts = [summary, *_bad(result), *_notices(result), f"next: inf {following}"]
    return "\n".join(filter(None, parts))


def _import_counts(new: int, unchanged: int) -> str:
    return f"{new:,} imported" + (f", {unchanged:,} already present" if unchanged else "")


def _bad(result: Result) -> list[str]:
    bad = result["bad_rows"]
    shown = [drawn(("file", "line", "reason"), bad[:SHOWN], max_columns=MAX_SHEET_COLUMNS)]
    more = len(bad) - SHOWN
    return [*shown, f"… and {more} more (all of them with --json)"] if more > 0 else shown


@click.command("import")
@click.argument("named", required=False, metavar="[NAME]")
@request_options(DatasetImport)
@click.option("--beir", metavar="FILE", help="The same as --pairs DIR --as beir.")
@click.option("--preview", is_flag=True, help="Show first and bad rows; import nothing.")
@click.option(
    "--judgments",
    metavar="FILE",
    help="Instead of pairs: an export of Label Studio, Argilla, Prodigy or doccano; requires "
    "--study.",
)
@click.option("--study", "study_id", type=int, help="The study whose items were judged.")
@click.option("--question", help="Of several questions in --judgments: the one to import.")
@launched
@reporting(_human)
def import_(
    named: str | None,
    request: DatasetImport,
    beir: str | None,
    preview: bool,
    judgments: str | None,
    study_id: int | None,
    question: str | None,
    launch: Launching,
) -> Any:
    """Read pairs (query and the passage that answers it) and passages into a dataset.

    Each file is a path or a URL (s3://, gs://, hf://, https://), or for pairs and passages a
    pattern or a folder: BEIR's, MS MARCO's (collection.tsv, queries.tsv, qrels) or a downloaded
    dataset of the Hub. Files are JSONL, JSON, CSV (`,` or `;`), TSV, Excel or Parquet; text formats
    also as .gz, .bz2 and .xz, in UTF-8, UTF-16 or cp1252. A pair may bring its passage inline in a
    column `passage`: a file of `query` and `passage` alone is enough. Further columns are kept.
    Importing the same rows again adds nothing. Every bad row is reported with its file, line and
    reason. With --groups, finished groups (published InF-IR, another store's release) become a run.
    With --judgments and --study, existing annotations become judgments.
    """
    pairs = request.pairs or beir
    if bool(request.pairs) + bool(request.groups) + bool(judgments) + bool(beir) != 1:
        raise click.UsageError("give one of --pairs, --beir, --groups and --judgments")
    if beir is not None and (request.layout or request.passages):
        raise click.UsageError("--beir cannot be combined with --as or --passages")
    if pairs is None and (preview or request.of_pairs):
        raise click.UsageError(f"{(request.of_pairs or ('--preview',))[0]} requires --pairs")
    if question is not None and judgments is None:
        raise click.UsageError("--question requires --judgments")
    if judgments is not None:
        if launch.is_detached:
            raise click.UsageError("--detach requires --pairs or --groups")
        if study_id is None:
            raise click.UsageError("--judgments requires --study ID")
        file, skip_bad = str(local_file(judgments)), request.skip_bad
        wanted = JudgmentsImport(path=file, study_id=study_id, question=question, skip_bad=skip_bad)
        return operations.import_judgments(command_actor(), wanted)
    name = named or request.name
    if not name or request.name not in ("", name):
        raise click.UsageError("give the NAME of one dataset")
    changed: dict[str, Any] = {"name": name}
    if beir is not None:
        changed |= {"pairs": beir, "layout": "beir"}
    request = DatasetImport.read(request.config() | changed)
    actor, title = command_actor(), f"importing into {request.name}"
    if preview:
        return operations.preview(actor, request)
    if launch.is_detached:
        return operations.import_files(actor, request, launch(title))
    with progress_bar(title) as draw:
        return operations.import_files(actor, request, operations.here(draw))


def _human_preview(result: Result) -> str:
    bad = result["bad_rows"]
    head = (
        f"{counted(result['pairs'], 'pair')} and {counted(result['passages'], 'passage')} would be "
        f"imported; {counted(len(bad), 'bad row')}. Nothing was stored."
    )
    rows = drawn(("query_id", "query", "passage_id", "passage"), result["preview"])
    return "\n".join(filter(None, [head, rows, *_bad(result), *_notices(result)]))


def _notices(result: Result) -> list[str]:
    return [f"note: {notice}" for notice in result.get("notices", ())]
