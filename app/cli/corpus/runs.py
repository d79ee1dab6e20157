"""`inf runs`: list, show, delete and unarchive runs."""

from dataclasses import asdict

import click
from sqlalchemy import select

from app.cli.corpus.datasets import archived_option, dependents_text
from app.cli.kit.deleting import add_archiving
from app.cli.kit.report import Result, counts, lines, ready_store, reporting
from app.cli.kit.table import table
from app.text.remedies import in_commands
from curation.judging.text_baseline import TextBaseline, baseline_sentence, text_baseline
from curation.run.shared_parts import (
    check_command,
    is_unchecked,
    part_text,
    stored_shared_parts,
)
from db.archive.dependents import dependents
from db.archive.target import target_of
from db.corpus.datasets import get_dataset
from db.review.reviews import count_reviews
from db.run.runs import RunSummary, funnel, get_run, list_runs
from db.run.workers import worker_totals
from db.tables import Run

STATUSES = ("created", "running", "paused", "done", "failed", "cancelled")


@click.group()
def runs() -> None:
    """List, show, archive and purge runs."""


add_archiving(runs, "run_id")


def as_row(found: RunSummary) -> Result:
    """A run as JSON."""
    return {
        "run_id": found.id,
        "dataset": found.dataset,
        "dataset_id": found.dataset_id,
        "recipe": found.recipe,
        "recipe_sha256": found.recipe_sha256,
        "provider": found.provider,
        "offline": found.offline,
        "status": found.status,
        "archived": found.archived,
        "pairs": found.pairs,
        "kept": found.kept,
        "dropped": found.dropped,
        "spent_usd": found.spent_usd,
        "budget_usd": found.budget_usd,
        "created_by": found.created_by,
        "created_at": found.created_at.isoformat(),
        "finished_at": None if found.finished_at is None else found.finished_at.isoformat(),
        "error": found.error,
    }


def _state(row: Result) -> str:
    return f"{row['status']}, archived" if row["archived"] else str(row["status"])


def _listed(result: Result) -> str:
    return table(
        ("run", "dataset", "recipe", "provider", "status", "pairs", "kept", "dropped", "USD"),
        [
            (
                row["run_id"],
                row["dataset"],
                row["recipe"],
                row["provider"],
                _state(row),
                row["pairs"],
                row["kept"],
                row["dropped"],
                f"{row['spent_usd']:.2f}",
            )
            for row in result["runs"]
        ],
        empty="no such runs: `inf curate --dataset NAME --provider NAME` creates one",
    )


@runs.command("list")
@click.option("--dataset", help="Only runs of this dataset.")
@click.option("--status", type=click.Choice(STATUSES), help="Only runs of this status.")
@archived_option
@reporting(_listed)
def list_(dataset: str | None, status: str | None, archived: bool) -> Result:
    """List runs, newest first."""
    with ready_store().read() as session:
        dataset_id = None if dataset is None else get_dataset(session, dataset).id
        found = list_runs(session, dataset_id, archived=archived)
    return {"runs": [as_row(one) for one in found if status in (None, one.status)]}


def _shown(result: Result) -> str:
    progress = result["funnel"]
    facts: list[tuple[str, object]] = [
        ("run", result["run_id"]),
        ("dataset", result["dataset"]),
        ("status", _state(result)),
        ("recipe", f"{result['recipe']} ({result['recipe_sha256'][:12]})"),
        ("provider", result["provider"] + (" (offline)" if result["offline"] else "")),
        ("pairs", f"{result['pairs']:,} ({progress['waiting']:,} waiting)"),
        ("reached", counts(progress["reached"])),
        ("kept", result["kept"]),
        ("dropped", counts(progress["dropped"])),
        ("reviews", counts(result["reviews"])),
        ("spent", f"{result['spent_usd']:.4f} USD"),
        ("budget", "–" if result["budget_usd"] is None else f"{result['budget_usd']:.2f} USD"),
        ("workers", result["workers"]),
        ("seed", result["seed"]),
        ("created", f"{result['created_at']} by {result['created_by'] or '–'}"),
        ("finished", result["finished_at"] or "–"),
    ]
    if result["text_baseline"]:
        facts.append(("items", baseline_sentence(TextBaseline(**result["text_baseline"]))))
    if shared := result["shared_parts"]:
        found = [part_text(part, shared["groups"]) for part in shared["parts"]]
        facts += [("shared parts", found[0] if found else shared.get("reason", "none"))]
        facts += [("", part) for part in found[1:]]
    elif result["unchecked"]:
        facts.append(("shared parts", in_commands(check_command(result["run_id"]))))
    if result["error"]:
        facts.append(("message", in_commands(result["error"])))
    return "\n".join([lines(*facts), *dependents_text(result["dependents"])])


@runs.command()
@click.argument("run_id", type=int)
@reporting(_shown)
def show(run_id: int) -> Result:
    """Show one run: progress, counts, and what depends on it."""
    with ready_store().read() as session:
        run = get_run(session, run_id)
        found = next(
            one for one in list_runs(session, run.dataset_id, archived=True) if one.id == run_id
        )
        reached = funnel(session, run_id)
        baseline = text_baseline(session, run_id)
        return {
            **as_row(found),
            "seed": run.seed,
            "concurrency": run.concurrency,
            "batch": run.batch,
            "models": session.scalar(select(Run.models).where(Run.id == run_id)),
            "funnel": {
                "waiting": reached.waiting,
                "in_work": reached.in_work,
                "reached": reached.reached,
                "dropped": reached.dropped,
            },
            "reviews": count_reviews(session, run_id),
            "text_baseline": None if baseline is None else asdict(baseline),
            "workers": worker_totals(session, run_id).alive,
            "shared_parts": stored_shared_parts(session, run_id),
            "unchecked": is_unchecked(session, run_id),
            "dependents": dependents(session, target_of(session, run_id=run_id)),
        }
