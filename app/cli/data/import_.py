"""`inf import`: pairs and passages from files into a dataset; with `--detach` as a job."""

import dataclasses
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from analysis.files.storage import local_file
from app.cli.kit.progress import progress_bar
from app.cli.kit.report import (
    Failed,
    Result,
    detach_option,
    lines,
    me,
    ready_store,
    reporting,
    work,
)
from app.text.numbers import counted
from curation.importing.groups import import_groups
from curation.importing.importing import SKIP_REMEDY, import_dataset
from curation.importing.job import as_json, groups_as_json
from curation.importing.preview import ImportPreview, preview_import
from curation.judging.judgment_import import JudgmentImport, import_judgments
from curation.sources.beir import read_beir
from curation.sources.converting import Conversion, write_files
from db.errors import BadRow, BadRows
from db.store.store import Store

FOLDER = click.Path(path_type=Path)


class FileOrUrl(click.Path):
    """A path, or the URL of a file on any storage (s3://…), of which a copy is read."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "://" in value:
            value = str(local_file(value))
        return super().convert(value, param, ctx)


FILE = FileOrUrl(path_type=Path)
SHOWN = 20
SHOWN_CHARACTERS = 70


def _human(result: Result) -> str:
    summary = lines(
        ("dataset", f"{result['dataset']} (id {result['dataset_id']})"),
        ("pairs", _import_counts(result["imported"], result["unchanged"])),
        ("passages", _import_counts(result["imported_passages"], result["unchanged_passages"])),
        ("skipped", result["skipped"]),
    )
    bad = result["bad_rows"]
    skipped = [f"  {row['file']}, line {row['line']}: {row['reason']}" for row in bad[:SHOWN]]
    if len(bad) > SHOWN:
        skipped.append(f"  … and {len(bad) - SHOWN} more (all of them with --json)")
    return "\n".join([summary, *skipped])


def _import_counts(new: int, unchanged: int) -> str:
    return f"{new:,} imported" + (f", {unchanged:,} already present" if unchanged else "")


def judgments_as_json(report: JudgmentImport) -> Result:
    """The report of an import of judgments as JSON."""
    return {
        "study_id": report.study_id,
        "imported": report.imported,
        "unchanged": report.unchanged,
        "judges": sorted(report.judges),
        "skipped": len(report.skipped),
        "bad_rows": list(map(dataclasses.asdict, report.skipped)),
    }


@contextmanager
def bad_rows_in_json() -> Iterator[None]:
    """Add all bad rows that stopped an import to the JSON error."""
    try:
        yield
    except BadRows as bad:
        rows = list(map(dataclasses.asdict, bad.rows))
        raise Failed(str(bad), bad_rows=rows) from bad


def _place(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser().absolute())


def _human_either(result: Result) -> str:
    if "study_id" in result:
        return lines(
            ("study", result["study_id"]),
            ("judgments", _import_counts(result["imported"], result["unchanged"])),
            ("judges", len(result["judges"])),
            ("skipped", result["skipped"]),
        )
    if "preview" in result:
        return _human_preview(result)
    if "run_id" not in result:
        return _human(result)
    return lines(
        ("dataset", f"{result['dataset']} (id {result['dataset_id']})"),
        ("run", result["run_id"]),
        ("groups", _import_counts(result["imported"], result["unchanged"])),
        ("skipped", result["skipped"]),
    )


@click.command()
@click.option("--dataset", "name", help="Name of the dataset; created if missing.")
@click.option("--pairs", type=FILE, help="Columns query_id, query, passage_id, passage.")
@click.option("--passages", type=FILE, help="Columns passage_id, text, title.")
@click.option("--beir", type=FOLDER, help="Instead of pairs: a BEIR folder.")
@click.option("--split", help="Qrels of the BEIR folder: test, dev or train.")
@click.option(
    "--column", "columns", multiple=True, metavar="OURS=THEIRS", help="Map a column; repeatable."
)
@click.option("--preview", is_flag=True, help="Show first and bad rows; import nothing.")
@click.option(
    "--groups",
    type=FILE,
    multiple=True,
    help="Instead of pairs: finished groups with InF-IR's seven columns; repeatable.",
)
@click.option(
    "--judgments",
    type=FILE,
    help="Instead of pairs: an export of Label Studio or Argilla; requires --study.",
)
@click.option("--study", "study_id", type=int, help="The study whose items were judged.")
@click.option("--source", default="", help="Origin of the texts.")
@click.option("--licence", default="", help="Licence of the texts, e.g. cc-by-sa-3.0.")
@click.option("--skip-bad", is_flag=True, help="Skip bad rows and list them.")
@detach_option
@reporting(_human_either)
def import_(
    name: str | None,
    pairs: Path | None,
    passages: Path | None,
    beir: Path | None,
    split: str | None,
    columns: tuple[str, ...],
    preview: bool,
    groups: tuple[Path, ...],
    judgments: Path | None,
    study_id: int | None,
    source: str,
    licence: str,
    skip_bad: bool,
    detach: bool,
) -> Result:
    """Read pairs (query and the passage that answers it) and passages into a dataset.

    Each file is a path or a URL (s3://, gs://, hf://, https://).
    Files are JSONL, JSON, CSV (`,` or `;`), TSV, Excel or Parquet; text formats also as .gz. A pair
    may bring its passage inline in a column `passage`: a file of `query` and `passage` alone is
    enough. Further columns are kept. Importing the same rows again adds nothing. Every bad row is
    reported with its file, line and reason. With --groups, finished groups (published InF-IR,
    another store's release) become a run. With --judgments and --study, existing annotations become
    judgments.
    """
    if bool(pairs) + bool(groups) + bool(judgments) + bool(beir) != 1:
        raise click.UsageError("give one of --pairs, --beir, --groups and --judgments")
    if columns and pairs is None:
        raise click.UsageError("--column requires --pairs")
    if preview and pairs is None and beir is None:
        raise click.UsageError("--preview requires --pairs or --beir")
    if split is not None and beir is None:
        raise click.UsageError("--split requires --beir")
    if beir is not None and (detach or passages is not None):
        raise click.UsageError("--beir cannot be combined with --detach or --passages")
    if judgments is not None:
        if detach:
            raise click.UsageError("--detach requires --pairs or --groups")
        if study_id is None:
            raise click.UsageError("--judgments requires --study ID")
        with bad_rows_in_json():
            added = import_judgments(ready_store(), judgments, study_id=study_id, skip_bad=skip_bad)
        return judgments_as_json(added)
    if name is None:
        raise click.UsageError("give --dataset NAME")
    if groups and passages is not None:
        raise click.UsageError("--passages requires --pairs")
    store = ready_store()
    mapped = mapping_of(columns)
    if preview and beir is not None:
        return _preview_beir(store, beir, split, name=name)
    if preview and pairs is not None:
        shown = preview_import(store, name=name, pairs=pairs, passages=passages, columns=mapped)
        return _preview_as_json(name, shown)
    about: dict[str, Any] = {"source": source, "licence": licence, "skip_bad": skip_bad}
    if detach:
        config = about | {
            "name": name,
            "pairs": _place(pairs),
            "passages": _place(passages),
            "columns": mapped,
            "groups": [_place(path) for path in groups],
        }
        return work(store, "import", config, detach=True, title=f"importing into {name}")
    with progress_bar(f"importing into {name}") as show, bad_rows_in_json():
        if beir is not None:
            return _import_beir(store, beir, split, name=name, progress=show, about=about)
        if pairs is None:
            origin = ", ".join(path.name for path in groups)
            found = import_groups(
                store,
                name=name,
                files=groups,
                origin=origin,
                imported_by=me(),
                progress=show,
                **about,
            )
            return groups_as_json(name, found)
        report = import_dataset(
            store,
            name=name,
            pairs=pairs,
            passages=passages,
            columns=mapped,
            progress=show,
            **about,
        )
    return as_json(name.strip(), report)


def mapping_of(columns: tuple[str, ...]) -> dict[str, str]:
    """`OURS=THEIRS` as a dictionary. Raises UsageError for anything else."""
    mapped: dict[str, str] = {}
    for each in columns:
        ours, equals, theirs = each.partition("=")
        if not equals or not ours.strip() or not theirs.strip():
            raise click.UsageError(f"--column {each!r}: give it as query=NAME_IN_THE_FILE")
        mapped[ours.strip()] = theirs.strip()
    return mapped


@contextmanager
def _beir_files(folder: Path, split: str | None) -> Iterator[tuple[Conversion, list[BadRow]]]:
    """A BEIR folder as files of pairs and passages, for a while; rows that give no pair."""
    with tempfile.TemporaryDirectory(prefix="inf-beir-") as place:
        done = write_files(read_beir(folder, split), Path(place), limit=None)
        yield done, [BadRow(row.file, row.line, row.reason) for row in done.examples]


def _preview_beir(store: Store, folder: Path, split: str | None, *, name: str) -> Result:
    with _beir_files(folder, split) as (done, bad):
        shown = preview_import(store, name=name, pairs=done.pairs_path, passages=done.passages_path)
    return _preview_as_json(name, dataclasses.replace(shown, bad=[*bad, *shown.bad]))


def _import_beir(
    store: Store,
    folder: Path,
    split: str | None,
    *,
    name: str,
    progress: Callable[[int, int], None],
    about: dict[str, Any],
) -> Result:
    """Import a BEIR folder. Raises BadRows where rows give no pair and not `skip_bad`."""
    with _beir_files(folder, split) as (done, bad):
        if bad and not about["skip_bad"]:
            raise BadRows(bad, SKIP_REMEDY)
        report = import_dataset(
            store,
            name=name,
            pairs=done.pairs_path,
            passages=done.passages_path,
            progress=progress,
            **about,
        )
    return {
        **as_json(name.strip(), report),
        "skipped": sum(done.left_out.values()),
        "bad_rows": [dataclasses.asdict(row) for row in bad],
    }


def _preview_as_json(name: str, preview: ImportPreview) -> Result:
    return {
        "dataset": name,
        "preview": preview.rows,
        "pairs": preview.pairs,
        "passages": preview.passages,
        "bad_rows": list(map(dataclasses.asdict, preview.bad)),
    }


def _human_preview(result: Result) -> str:
    bad = result["bad_rows"]
    parts = [
        f"{counted(result['pairs'], 'pair')} and {counted(result['passages'], 'passage')} would be "
        f"imported; {counted(len(bad), 'bad row')}. Nothing was stored."
    ]
    for row in result["preview"]:
        parts.append(f"  {row['query_id']}: {row['query'][:SHOWN_CHARACTERS]}")
        parts.append(f"    {row['passage_id']}: {row['passage'][:SHOWN_CHARACTERS]}")
    parts += [f"  {row['file']}, line {row['line']}: {row['reason']}" for row in bad[:SHOWN]]
    return "\n".join(parts)
