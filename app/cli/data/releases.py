"""`inf releases`: list, show and compare releases."""

from collections import Counter

import click

from app.cli.kit.report import Result, counts, lines, ready_store, reporting
from db.corpus.datasets import get_dataset
from db.release.diff import diff_releases
from db.release.releases import get_release, list_releases
from db.tables import Release


@click.group()
def releases() -> None:
    """List and compare releases."""


def as_row(release: Release) -> Result:
    """A release as JSON."""
    return {
        "release_id": release.id,
        "name": release.name,
        "path": release.path,
        "format": release.format,
        "groups": release.counts.get("groups"),
        "content_sha256": release.content_sha256,
        "filter": release.filter,
        "offline": release.offline,
        "created_at": release.created_at.isoformat(),
    }


def _line(row: Result) -> str:
    offline = "  OFFLINE" if row["offline"] else ""
    return (
        f"{row['release_id']:>5}  {row['name']:<20} {row['groups']:>8,}  {row['format']:<8} "
        f"{row['path']}{offline}"
    )


@releases.command("list")
@click.option("--dataset", help="Only releases of this dataset.")
@reporting(lambda result: "\n".join(map(_line, result["releases"])) or "no releases yet")
def list_(dataset: str | None) -> Result:
    """List releases, newest first."""
    with ready_store().read() as session:
        dataset_id = get_dataset(session, dataset).id if dataset else None
        return {"releases": [as_row(release) for release in list_releases(session, dataset_id)]}


def _shown(result: Result) -> str:
    return lines(*((name, value) for name, value in result.items() if name != "card"))


@releases.command()
@click.argument("release_id", type=int)
@reporting(_shown)
def show(release_id: int) -> Result:
    """Show one release; --json includes its card."""
    with ready_store().read() as session:
        release = get_release(session, release_id)
        return {**as_row(release), "card": release.card}


def _differences(result: Result) -> str:
    rows = [f"{row['change']:<8} {row['query_id']}: {row['why']}" for row in result["rows"]]
    return "\n".join([*rows, counts(result["changes"]) if rows else "no differences"])


@releases.command()
@click.argument("before", type=int)
@click.argument("after", type=int)
@reporting(_differences)
def diff(before: int, after: int) -> Result:
    """Show what was added, removed and changed from release BEFORE to release AFTER, and why."""
    with ready_store().read() as session:
        rows = diff_releases(session, get_release(session, before), get_release(session, after))
    return {
        "changes": dict(Counter(row.change for row in rows)),
        "rows": [{"query_id": row.query_id, "change": row.change, "why": row.why} for row in rows],
    }
