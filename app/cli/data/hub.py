"""`inf hub`: push releases and checkpoints to the Hugging Face Hub, pull datasets from it."""

import dataclasses
from pathlib import Path

import click

from app.cli.data.import_ import bad_rows_in_json, mapping_of
from app.cli.data.releases import push_either
from app.cli.kit.formerly import formerly
from app.cli.kit.progress import progress_bar
from app.cli.kit.report import Result, counts, detach_option, me, ready_store, reporting, work
from app.jobs import launching
from curation.hub import pull as hub_pull
from curation.hub.layouts import LAYOUTS, Wanted
from db.jobs.jobs import LOCAL


@click.group()
def hub() -> None:
    """Push to the Hugging Face Hub and pull from it (token: HF_TOKEN)."""


hub.add_command(formerly(push_either, "hub push", "releases push"))


def _pulled(result: Result) -> str:
    kind = "groups" if result["run_id"] is not None else "pairs"
    at = f" at {result['commit'][:12]}" if result["commit"] else ""
    summary = (
        f"{result['imported']:,} {kind} of {result['repo']}{at} imported "
        f"into dataset {result['dataset']} (id {result['dataset_id']})"
    )
    run = f", run {result['run_id']}" if result["run_id"] is not None else ""
    skipped = f"{result['unchanged']:,} already present, {result['skipped']} skipped"
    left_out = f"; left out: {counts(result['left_out'])}" if result["left_out"] else ""
    return f"{summary}{run}; {skipped}{left_out}"


@hub.command()
@click.argument("repo", metavar="USER/NAME")
@click.option("--dataset", "name", required=True, help="Name of the dataset; created if missing.")
@click.option("--revision", help="Branch, tag or commit; default: main.")
@click.option("--licence", default="", help="Default: the licence of the card.")
@click.option("--skip-bad", is_flag=True, help="Skip bad rows and list them.")
@click.option("--layout", type=click.Choice(LAYOUTS), help="Default: found by the columns.")
@click.option(
    "--column", "columns", multiple=True, metavar="OURS=THEIRS", help="Map a column; repeatable."
)
@click.option("--split", help="Only files whose name starts with it, as train.")
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of pairs.")
@click.option("--without-negatives", is_flag=True, help="Leave out negative passages.")
@detach_option
@reporting(_pulled)
def pull(
    repo: str,
    name: str,
    revision: str | None,
    licence: str,
    skip_bad: bool,
    layout: str | None,
    columns: tuple[str, ...],
    split: str | None,
    limit: int | None,
    without_negatives: bool,
    detach: bool,
) -> Result:
    """Import a dataset from the Hub, or from a folder or URL (s3://…) given in place of USER/NAME.

    InF-IR's columns become groups; those of Promptriever, FollowIR-train and any (query, positive,
    negatives) dataset become pairs, with the negatives as passages of the pool. Columns of other
    names are mapped by --column.
    """
    wanted = Wanted(layout, mapping_of(columns), split, limit, not without_negatives)
    store = ready_store()
    options: Result = {"revision": revision, "licence": licence, "skip_bad": skip_bad}
    if detach or launching.chosen_launcher() != LOCAL:
        if hub_pull.is_folder(repo) and "://" not in repo:
            repo = str(Path(repo).expanduser().absolute())
        config = {"repo": repo, "name": name, **options, "wanted": dataclasses.asdict(wanted)}
        return work(store, "pull", config, detach=detach, title=f"pulling {repo}")
    with progress_bar(f"pulling {repo}") as show, bad_rows_in_json():
        pulled = hub_pull.pull(
            store, repo=repo, name=name, imported_by=me(), progress=show, wanted=wanted, **options
        )
    return hub_pull.pulled_as_json(name, pulled)
