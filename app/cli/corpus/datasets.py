"""`inf datasets`: list, show, import, pull, archive and purge datasets."""

import click

from app.cli.data.import_ import import_
from app.cli.data.releases import push_command
from app.cli.kit.deleting import add_archiving
from app.cli.kit.doors import Noun
from app.cli.kit.formerly import formerly
from app.cli.kit.report import Result, counts, lines
from app.operations import datasets as operations
from app.text.numbers import counted

datasets = Noun("datasets", import_, former={"dataset_id": "id", "dataset": "name"})
add_archiving(datasets, "dataset")
archived_option = click.option("--archived", is_flag=True, help="Also list archived ones.")
datasets.listed(
    operations.list_all,
    archived_option,
    columns=(
        *("id", ("dataset", "name"), "pairs", "passages", "generated", "licence"),
        ("state", lambda row: "archived" if row["archived_at"] else "active"),
    ),
    empty="no datasets yet",
)


def _shown(result: Result) -> str:
    facts = lines(
        ("dataset", f"{result['name']} (id {result['id']})"),
        ("state", f"archived {result['archived_at']}" if result["archived_at"] else "active"),
        ("source", result["source"] or "–"),
        ("licence", result["licence"] or "–"),
        ("imported", result["created_at"]),
        ("pairs", result["pairs"]),
        ("passages", f"{result['passages']:,} and {result['generated']:,} generated"),
        ("sources of pairs", ", ".join(filter(None, result["sources"])) or "–"),
        ("runs", ", ".join(map(str, result["runs"])) or "–"),
    )
    return "\n".join([facts, *dependents_text(result["dependents"])])


def dependents_text(dependents: list[str]) -> list[str]:
    """What depends on a dataset or run, for `show`."""
    if not dependents:
        return ["can be archived: nothing depends on it"]
    return ["cannot be archived, these depend on it:", *(f"  {one}" for one in dependents)]


datasets.door(operations.show, text=_shown)


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


pull = datasets.door(
    operations.pull,
    text=_pulled,
    title="pulling {repo}",
    unit="B",
    here=operations.here,
    about="Import a dataset from the Hub, or from a folder or URL (s3://…) given in place of "
    "USER/NAME.\n\nInF-IR's columns become groups; those of Promptriever, FollowIR-train and any "
    "(query, positive, negatives) dataset become pairs, with the negatives given to them as "
    "passages of the pool. Columns of other names are mapped by --column.",
)


def _mined(result: Result) -> str:
    facts = [
        ("negatives", f"{result['negatives']:,} for {counted(result['pairs'], 'pair')}"),
        ("among", counted(result["corpus"], "passage")),
        ("pairs without", f"{result['pairs_without']:,}"),
    ]
    if result["judge"]:
        removed = f"{result['answering']:,} that answer by {result['judge']}"
        facts.append(("removed", f"{removed}, {result['unusable']:,} without an answer"))
    facts.append(("given to pairs", f"{result['kept']:,} new"))
    return lines(*facts, ("file", result["out"] or "–"))


datasets.door(
    operations.mine,
    text=_mined,
    title="mining {name}",
    unit=" texts",
    here=operations.here,
    about="Mine hard negatives of a dataset's pairs, by BM25 and by embedding.\n\n"
    "The pairs get them, or with --out a file, whose folder `inf datasets pull` imports as pairs "
    "with their negatives.",
)


hub = Noun("hub", formerly(pull, "hub pull", "datasets pull"))
_push = push_command(
    hub,
    "a release (as a dataset) or a checkpoint (as a model)",
    click.option("--release", "release_id", type=int, help="The release to push."),
    click.option("--checkpoint", "checkpoint_id", type=int, help="The checkpoint to push."),
)
hub.add_command(formerly(_push, "hub push", "releases push | models push"))
