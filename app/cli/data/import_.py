"""`inf import`: pairs and passages from files into a dataset; with `--detach` as a job."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from analysis.files.storage import local_file
from app.cli.kit.progress import progress_bar
from app.cli.kit.report import (
    Result,
    counts,
    detach_option,
    failed,
    lines,
    me,
    ready_store,
    reporting,
    work,
)
from app.text.numbers import counted
from curation.importing.columns import MissingColumns
from curation.importing.files import PATTERN
from curation.importing.groups import import_groups
from curation.importing.importing import ImportPreview, import_dataset, preview_import
from curation.importing.job import as_json, groups_as_json
from curation.judging.judgment_import import JudgmentImport, import_judgments
from db.errors import BadRows


class FileOrUrl(click.Path):
    """A path, or the URL of a file on any storage (s3://…), of which a copy is read."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "://" in value and not PATTERN & set(value):
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
    return "\n".join([summary, *skipped, *_notices(result)])


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
        "question": report.question,
        "not_judged": report.not_judged,
        "notices": report.notices,
    }


@contextmanager
def bad_rows_in_json() -> Iterator[None]:
    """Add what stopped an import to the JSON error: all bad rows, or the proposed columns."""
    try:
        yield
    except MissingColumns as missing:
        raise failed(missing, proposed_columns=missing.proposed) from missing
    except BadRows as bad:
        rows = list(map(dataclasses.asdict, bad.rows))
        raise failed(bad, bad_rows=rows) from bad


def _place(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser().absolute())


def _human_either(result: Result) -> str:
    if "study_id" in result:
        summary = lines(
            ("study", result["study_id"]),
            ("question", result["question"]),
            ("judgments", _import_counts(result["imported"], result["unchanged"])),
            ("judges", len(result["judges"])),
            ("no judgments", counts(result["not_judged"])),
            ("skipped", result["skipped"]),
        )
        return "\n".join([summary, *_notices(result)])
    if "preview" in result:
        return _human_preview(result)
    if "run_id" not in result:
        return _human(result)
    summary = lines(
        ("dataset", f"{result['dataset']} (id {result['dataset_id']})"),
        ("run", result["run_id"]),
        ("groups", _import_counts(result["imported"], result["unchanged"])),
        ("skipped", result["skipped"]),
    )
    return "\n".join([summary, *_notices(result)])


@click.command()
@click.option("--dataset", "name", help="Name of the dataset; created if missing.")
@click.option(
    "--pairs",
    type=FILE,
    help="Columns query_id, query, passage_id, passage; a file, a pattern ('train-*') or a folder.",
)
@click.option("--passages", type=FILE, help="Columns passage_id, text, title; as --pairs.")
@click.option("--as", "layout", metavar="FORMAT", help="Read --pairs as a format of `inf convert`.")
@click.option("--beir", type=FILE, help="The same as --pairs DIR --as beir.")
@click.option("--split", help="The part of a folder to take: test, dev or train.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="OURS=THEIRS",
    help="Map a column (for one file: pairs.OURS=THEIRS); repeatable.",
)
@click.option("--usual-columns", is_flag=True, help="Map usual names (question, answer, …).")
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
    help="Instead of pairs: an export of Label Studio, Argilla, Prodigy or doccano; requires "
    "--study.",
)
@click.option("--study", "study_id", type=int, help="The study whose items were judged.")
@click.option("--question", help="Of several questions in --judgments: the one to import.")
@click.option("--source", default="", help="Origin of the texts.")
@click.option("--licence", default="", help="Licence of the texts, e.g. cc-by-sa-3.0.")
@click.option("--skip-bad", is_flag=True, help="Skip bad rows and list them.")
@detach_option
@reporting(_human_either)
def import_(
    name: str | None,
    pairs: Path | None,
    passages: Path | None,
    layout: str | None,
    beir: Path | None,
    split: str | None,
    columns: tuple[str, ...],
    usual_columns: bool,
    preview: bool,
    groups: tuple[Path, ...],
    judgments: Path | None,
    study_id: int | None,
    question: str | None,
    source: str,
    licence: str,
    skip_bad: bool,
    detach: bool,
) -> Result:
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
    if bool(pairs) + bool(groups) + bool(judgments) + bool(beir) != 1:
        raise click.UsageError("give one of --pairs, --beir, --groups and --judgments")
    if beir is not None and (layout or passages):
        raise click.UsageError("--beir cannot be combined with --as or --passages")
    if beir is not None:
        pairs, layout = beir, "beir"
    for option, given in (
        ("--column", columns),
        ("--usual-columns", usual_columns),
        ("--preview", preview),
        ("--split", split),
        ("--as", layout),
        ("--passages", passages),
    ):
        if given and pairs is None:
            raise click.UsageError(f"{option} requires --pairs")
    if question is not None and judgments is None:
        raise click.UsageError("--question requires --judgments")
    if judgments is not None:
        if detach:
            raise click.UsageError("--detach requires --pairs or --groups")
        if study_id is None:
            raise click.UsageError("--judgments requires --study ID")
        with bad_rows_in_json():
            added = import_judgments(
                ready_store(), judgments, study_id=study_id, question=question, skip_bad=skip_bad
            )
        return judgments_as_json(added)
    if name is None:
        raise click.UsageError("give --dataset NAME")
    store = ready_store()
    read_by: dict[str, Any] = {
        "columns": mapping_of(columns),
        "layout": layout,
        "split": split,
        "usual_columns": usual_columns,
    }
    if preview and pairs is not None:
        with bad_rows_in_json():
            shown = preview_import(store, name=name, pairs=pairs, passages=passages, **read_by)
        return _preview_as_json(name, shown)
    about: dict[str, Any] = {"source": source, "licence": licence, "skip_bad": skip_bad}
    if detach:
        config = about | {
            "name": name,
            "pairs": _place(pairs),
            "passages": _place(passages),
            **read_by,
            "groups": [_place(path) for path in groups],
        }
        return work(store, "import", config, detach=True, title=f"importing into {name}")
    with progress_bar(f"importing into {name}") as show, bad_rows_in_json():
        about["progress"] = show
        if pairs is None:
            origin = ", ".join(path.name for path in groups)
            found = import_groups(
                store, name=name, files=groups, origin=origin, imported_by=me(), **about
            )
            return groups_as_json(name, found)
        report = import_dataset(
            store, name=name, pairs=pairs, passages=passages, **read_by, **about
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


def _preview_as_json(name: str, preview: ImportPreview) -> Result:
    return {
        "dataset": name,
        "preview": preview.rows,
        "pairs": preview.pairs,
        "passages": preview.passages,
        "bad_rows": list(map(dataclasses.asdict, preview.bad)),
        "notices": preview.notices,
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
    return "\n".join([*parts, *_notices(result)])


def _notices(result: Result) -> list[str]:
    return [f"note: {notice}" for notice in result.get("notices", ())]
