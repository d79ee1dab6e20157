"""`inf datasets`: list, show, delete and unarchive datasets."""

from pathlib import Path

import click

from app.cli.kit.deleting import back_text, bring_back, delete, delete_options, deleted_text
from app.cli.kit.report import Result, lines, ready_store, reporting
from app.cli.kit.table import table
from db.archive.dependents import dependents
from db.archive.target import target_of
from db.corpus.datasets import DatasetSummary, get_dataset, list_datasets
from db.corpus.texts import pair_sources
from db.run.runs import list_runs


@click.group()
def datasets() -> None:
    """List, show, delete and unarchive datasets."""


def as_row(found: DatasetSummary) -> Result:
    """A dataset as JSON."""
    return {
        "dataset_id": found.id,
        "dataset": found.name,
        "pairs": found.pairs,
        "passages": found.passages,
        "generated": found.generated,
        "source": found.source,
        "licence": found.licence,
        "created_at": found.created_at.isoformat(),
        "archived_at": None if found.archived_at is None else found.archived_at.isoformat(),
    }


def _listed(result: Result) -> str:
    return table(
        ("id", "dataset", "pairs", "passages", "generated", "licence", "state"),
        [
            (
                row["dataset_id"],
                row["dataset"],
                row["pairs"],
                row["passages"],
                row["generated"],
                row["licence"],
                "archived" if row["archived_at"] else "active",
            )
            for row in result["datasets"]
        ],
        empty="no datasets: `inf import --dataset NAME --pairs FILE` creates one",
    )


archived_option = click.option("--archived", is_flag=True, help="Also list archived ones.")


@datasets.command("list")
@archived_option
@reporting(_listed)
def list_(archived: bool) -> Result:
    """List datasets by name, with their counts."""
    with ready_store().read() as session:
        return {"datasets": [as_row(one) for one in list_datasets(session, archived=archived)]}


def _shown(result: Result) -> str:
    facts = lines(
        ("dataset", f"{result['dataset']} (id {result['dataset_id']})"),
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
        return ["can be deleted: nothing depends on it"]
    return ["cannot be deleted, these depend on it:", *(f"  {one}" for one in dependents)]


@datasets.command()
@click.argument("name")
@reporting(_shown)
def show(name: str) -> Result:
    """Show one dataset: counts, runs, and what depends on it."""
    with ready_store().read() as session:
        dataset = get_dataset(session, name)
        found = next(one for one in list_datasets(session, archived=True) if one.id == dataset.id)
        return {
            **as_row(found),
            "sources": pair_sources(session, dataset.id),
            "runs": [run.id for run in list_runs(session, dataset.id, archived=True)],
            "dependents": dependents(session, target_of(session, dataset=name)),
        }


@datasets.command("delete")
@click.argument("name")
@delete_options
@reporting(deleted_text)
def delete_(name: str, purged: bool, backup: Path | None, admin: str | None) -> Result:
    """Archive a dataset: it is hidden with its runs, but kept.

    Refused while releases, reviews, judgments, open studies or jobs depend on it; they are listed.
    --purge deletes it for good, after a backup of the store; the audit log records who did it.
    """
    return delete(purged=purged, backup=backup, admin=admin, dataset=name)


@datasets.command("unarchive")
@click.argument("name")
@reporting(back_text)
def unarchive_(name: str) -> Result:
    """Bring an archived dataset back."""
    return bring_back(dataset=name)
