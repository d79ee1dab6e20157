"""`inf review many|verdicts`: a run's groups by a filter, and what annotators see of the run."""

import sys

import click

from app.cli.kit.report import Result, me, ready_store, reporting
from db.errors import BadInput, NotFound
from db.review import queue as review_queue
from db.review.queue import QueueFilter
from db.run.runs import funnel
from db.store.store import Store
from db.tables import Run

run_option = click.option("--run", "run_id", type=int, required=True, help="The run's number.")


def _many(result: Result) -> str:
    verb = "would be " if not result["done"] else ""
    done = "approved" if result["action"] == "approve" else "rejected"
    said = f"{result['groups']:,} groups of run {result['run_id']} {verb}{done}"
    return said if result["done"] else f"{said}: nothing was done; --yes does it"


@click.command()
@run_option
@click.option("--approve", is_flag=True, help="Every group that the filter finds is good.")
@click.option("--reject", is_flag=True, help="None of them is to be released; needs --reason.")
@click.option("--reason", default="", help="Why they are rejected.")
@click.option("--verdict", type=click.Choice(["kept", "dropped"]), help="Of the validation.")
@click.option("--drop-reason", help="Dropped for this reason, as `inf curate` counts them.")
@click.option("--source", help="Grown from pairs of this source.")
@click.option(
    "--reviewed",
    type=click.Choice(["none", "approve", "reject", "edit"]),
    help="The review they have now.",
)
@click.option("--search", help="Words in the query, the instructions or Q-.")
@click.option("--yes", is_flag=True, help="Do it; without, the count is shown and asked about.")
@reporting(_many)
def many(
    run_id: int,
    approve: bool,
    reject: bool,
    reason: str,
    verdict: str | None,
    drop_reason: str | None,
    source: str | None,
    reviewed: str | None,
    search: str | None,
    yes: bool,
) -> Result:
    """Approve or reject every group of a run that a filter finds, each with a review of its own.

    At a terminal the count is shown and asked about; elsewhere nothing is done without --yes.
    """
    if approve + reject != 1:
        raise click.UsageError("say one of --approve and --reject")
    if approve and reason:
        raise click.UsageError("--reason goes with --reject")
    if reject and not reason.strip():
        raise click.UsageError("--reject needs --reason TEXT: say what is wrong with the groups")
    action = "approve" if approve else "reject"
    wanted = QueueFilter(run_id, verdict, drop_reason, source, reviewed, search)
    store = ready_store()
    count = _count(store, wanted)
    if not yes and count and sys.stdin.isatty():
        click.confirm(f"{action} {count:,} groups of run {run_id}?", abort=True, err=True)
        yes = True
    if yes:
        with store.write() as session:
            review_queue.review_in_bulk(
                session, wanted, action, expected=count, reviewed_by=me(), reason=reason
            )
            session.commit()
    return {"run_id": run_id, "action": action, "groups": count, "done": yes}


def _count(store: Store, wanted: QueueFilter) -> int:
    """How many groups there are; a reason to drop that the run does not have is an error."""
    with store.read() as session:
        if session.get(Run, wanted.run_id) is None:
            raise NotFound(f"no run {wanted.run_id}")
        dropped = funnel(session, wanted.run_id).dropped
        if wanted.reason is not None and wanted.reason not in dropped:
            there = ", ".join(dropped) or "none was dropped"
            raise BadInput(f"run {wanted.run_id} dropped nothing for {wanted.reason!r}: {there}")
        return review_queue.count_matching(session, wanted)


@click.command()
@run_option
@click.option("--show/--hide", "shown", default=None, help="Whether annotators see them.")
@reporting(
    lambda result: (
        f"annotators {'see' if result['verdicts_shown'] else 'do not see'} "
        f"the verdicts of run {result['run_id']}"
    )
)
def verdicts(run_id: int, shown: bool | None) -> Result:
    """Let annotators see a run's verdicts while they review, or not; without either, say which."""
    with ready_store().write() as session:
        run = session.get(Run, run_id)
        if run is None:
            raise NotFound(f"no run {run_id}")
        if shown is not None:
            review_queue.show_verdicts(session, run_id, shown, actor=me())
            session.commit()
        return {"run_id": run_id, "verdicts_shown": run.verdicts_shown}
