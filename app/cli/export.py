"""`inf export`: make a release."""

from pathlib import Path

import click

from app.cli.report import Result, detach_option, lines, ready_store, reporting, work
from db.datasets import get_dataset
from db.runs import choose_run


def _human(result: Result) -> str:
    splits = ", ".join(f"{name} {rows:,}" for name, rows in result["splits"].items())
    told = [
        ("release", f"{result['release_id']} at {result['path']}"),
        ("groups", f"{result['groups']:,} ({splits})"),
        ("reviews", result["reviews"]),
        ("content", result["content_sha256"]),
    ]
    if result["offline"]:
        told.append(("OFFLINE", "made by rules, without a language model"))
    return lines(*told)


@click.command()
@click.option("--dataset", required=True, help="Name of the data set.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="A new folder for the release."
)
@click.option(
    "--format", type=click.Choice(["parquet", "jsonl"]), default="parquet", show_default=True
)
@click.option("--run", "run_id", type=int, help="Default: the latest finished run.")
@click.option(
    "--reviews",
    type=click.Choice(["not-rejected", "approved"]),
    default="not-rejected",
    show_default=True,
    help="Which reviews a group needs.",
)
@click.option(
    "--include-dropped", is_flag=True, help="Dropped groups too, with their reason; for study."
)
@click.option("--name", default="", help="Title on the card; default: the data set's name.")
@detach_option
@reporting(_human)
def export(
    dataset: str,
    out: Path,
    format: str,
    run_id: int | None,
    reviews: str,
    include_dropped: bool,
    name: str,
    detach: bool,
) -> Result:
    """Make a release: the kept groups as files under DIR/data, with a data set card.

    `datasets.load_dataset(DIR)` reads it. A release is never overwritten.
    """
    store = ready_store()
    with store.read() as session:
        run_id = choose_run(session, get_dataset(session, dataset).id, run_id).id
    config = {
        "dataset": dataset,
        "run_id": run_id,
        "out": str(out.expanduser().absolute()),
        "format": format,
        "reviews": reviews,
        "include_dropped": include_dropped,
        "name": name,
    }
    return work(store, "export", config, detach=detach, title=f"exporting {dataset}")
