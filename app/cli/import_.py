"""`inf import`: pairs and passages from files into a data set. Runs in this process."""

import dataclasses
import sys
from pathlib import Path

import click
from tqdm import tqdm

from app.cli.report import Failed, Result, lines, ready_store, reporting
from curation.importing import ImportReport, import_dataset
from db.errors import BadRows

FILE = click.Path(path_type=Path)
SHOWN = 20


def _human(result: Result) -> str:
    words = lines(
        ("data set", f"{result['dataset']} (id {result['dataset_id']})"),
        ("pairs", _counted(result["imported"], result["unchanged"])),
        ("passages", _counted(result["imported_passages"], result["unchanged_passages"])),
        ("skipped", result["skipped"]),
    )
    bad = result["bad_rows"]
    left_out = [f"  {row['file']}, line {row['line']}: {row['reason']}" for row in bad[:SHOWN]]
    if len(bad) > SHOWN:
        left_out.append(f"  … and {len(bad) - SHOWN} more (all of them with --json)")
    return "\n".join([words, *left_out])


def _counted(new: int, unchanged: int) -> str:
    return f"{new:,} imported" + (f", {unchanged:,} were there already" if unchanged else "")


def as_json(name: str, report: ImportReport) -> Result:
    """The report as the command prints it."""
    return {
        "dataset_id": report.dataset_id,
        "dataset": name,
        "imported": report.imported["pairs"],
        "imported_passages": report.imported["passages"],
        "unchanged": report.unchanged["pairs"],
        "unchanged_passages": report.unchanged["passages"],
        "skipped": len(report.skipped),
        "bad_rows": list(map(dataclasses.asdict, report.skipped)),
    }


@click.command()
@click.option("--dataset", "name", required=True, help="Name of the data set; made if missing.")
@click.option(
    "--pairs", type=FILE, required=True, help="JSONL, CSV or Parquet: query_id, query, passage_id."
)
@click.option("--passages", type=FILE, help="JSONL, CSV or Parquet: passage_id, text, title.")
@click.option("--source", default="", help="Where the texts come from.")
@click.option("--licence", default="", help="Under which licence, e.g. cc-by-sa-3.0.")
@click.option("--skip-bad", is_flag=True, help="Leave bad rows out and list them.")
@reporting(_human)
def import_(
    name: str, pairs: Path, passages: Path | None, source: str, licence: str, skip_bad: bool
) -> Result:
    """Read pairs (query and the passage that answers it) and passages into a data set.

    A pair may bring its passage inline in a column `passage`. Further columns are kept. Importing
    the same rows again adds nothing. Every bad row is reported with its file, line and reason.
    """
    store = ready_store()
    with tqdm(
        desc=f"importing {pairs.name}",
        unit="B",
        unit_scale=True,
        leave=False,
        disable=not sys.stderr.isatty(),
        file=sys.stderr,
    ) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        try:
            report = import_dataset(
                store,
                name=name,
                pairs=pairs,
                passages=passages,
                source=source,
                licence=licence,
                skip_bad=skip_bad,
                progress=show,
            )
        except BadRows as bad:
            rows = list(map(dataclasses.asdict, bad.rows))
            raise Failed(str(bad), bad_rows=rows) from bad
    return as_json(name.strip(), report)
