"""`inf export`: make a release."""

from pathlib import Path

import click

from app.cli.kit.report import Result, detach_option, lines, ready_store, reporting, work
from db.corpus.datasets import get_dataset
from db.run.runs import choose_run


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
@click.option("--dataset", required=True, help="Name of the dataset.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="A new folder for the release."
)
@click.option(
    "--format", type=click.Choice(["parquet", "jsonl", "csv"]), default="parquet", show_default=True
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
@click.option("--study", "study_id", type=int, help="Only groups that have items in this study.")
@click.option("--source", "sources", multiple=True, help="Only pairs of this source; repeats.")
@click.option("--language", "languages", multiple=True, help="Only this language; repeats.")
@click.option(
    "--split-by",
    type=click.Choice(["dataset", "source"]),
    default="dataset",
    show_default=True,
    help="What a split is named after.",
)
@click.option(
    "--held-out",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    help="Share of groups in splits of their own that share no text with the others.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of what is drawn.")
@click.option(
    "--config",
    "configs",
    type=click.Choice(["default", "provenance", "triplets", "judgments"]),
    multiple=True,
    help="Only these configurations (default is always there); repeats. Default: all.",
)
@click.option(
    "--view",
    "views",
    type=click.Choice(["sentence-transformers", "tevatron"]),
    multiple=True,
    help="The same groups as another trainer reads them, as a configuration more; repeats.",
)
@click.option(
    "--balance",
    type=click.Choice(["none", "source"]),
    default="none",
    show_default=True,
    help="As many groups of every source as the rarest has, drawn by the seed.",
)
@click.option(
    "--groups-per-file",
    "groups_per_part",
    type=click.IntRange(min=1),
    default=50_000,
    show_default=True,
    help="A killed export goes on after the last whole file.",
)
@click.option(
    "--accept-licences", is_flag=True, help="Mix licences that do not go together by their terms."
)
@click.option(
    "--leave-out-contaminated",
    is_flag=True,
    help="Without groups that overlap with evaluation sets (inf analyze contamination).",
)
@click.option("--name", default="", help="Title on the card; default: the dataset's name.")
@detach_option
@reporting(_human)
def export(
    dataset: str,
    out: Path,
    format: str,
    run_id: int | None,
    reviews: str,
    include_dropped: bool,
    study_id: int | None,
    sources: tuple[str, ...],
    languages: tuple[str, ...],
    split_by: str,
    held_out: float,
    seed: int,
    configs: tuple[str, ...],
    views: tuple[str, ...],
    balance: str,
    groups_per_part: int,
    accept_licences: bool,
    leave_out_contaminated: bool,
    name: str,
    detach: bool,
) -> Result:
    """Make a release: the kept groups as files under DIR/data, with a dataset card.

    `datasets.load_dataset(DIR)` reads it. A release is never overwritten.
    """
    store = ready_store()
    with store.read() as session:
        run_id = choose_run(session, get_dataset(session, dataset).id, run_id).id
    config: Result = {
        "dataset": dataset,
        "run_id": run_id,
        "out": str(out.expanduser().absolute()),
        "format": format,
        "reviews": reviews,
        "include_dropped": include_dropped,
        "study_id": study_id,
        "sources": sources,
        "languages": languages,
        "split_by": split_by,
        "held_out": held_out,
        "seed": seed,
        "views": views,
        "balance": balance,
        "groups_per_part": groups_per_part,
        "accept_licences": accept_licences,
        "leave_out_contaminated": leave_out_contaminated,
        "name": name,
    }
    if configs:
        config["configs"] = configs
    return work(store, "export", config, detach=detach, title=f"exporting {dataset}")
