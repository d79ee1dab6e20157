"""`inf review many|verdicts`: bulk review by a filter, and the visibility of verdicts."""

import sys

import click

from app.cli.kit.report import Result, me, ready_store, reporting
from app.text.numbers import counted
from db.errors import BadInput, NotFound
from db.review import queue as review_queue
from db.review.queue import QueueFilter
from db.run.runs import funnel
from db.store.store import Store
from db.tables import Run

run_option = click.option("--run", "run_id", type=int, required=True, help="Id of the run.")


def _many(result: Result) -> str:
    verb = "would be " if not result["done"] else ""
    done = "approved" if result["action"] == "approve" else "rejected"
    summary = f"{counted(result['groups'], 'group')} of run {result['run_id']} {verb}{done}"
    return summary if result["done"] else f"{summary}: add --yes to do it"


@click.command()
@run_option
@click.option("--approve", is_flag=True, help="Approve every matching group.")
@click.option("--reject", is_flag=True, help="Reject every matching group; requires --reason.")
@click.option("--reason", default="", help="Reason of the rejection.")
@click.option(
    "--verdict",
    type=click.Choice(["kept", "dropped"]),
    help="Only with this verdict.",
)
@click.option("--drop-reason", help="Only groups dropped for this reason (see `inf curate`).")
@click.option("--source", help="Only groups from pairs of this source.")
@click.option(
    "--reviewed",
    type=click.Choice(["none", "approve", "reject", "edit"]),
    help="Only groups with this current review.",
)
@click.option("--search", help="Text in the query, the instructions or Q-.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
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
    """Approve or reject every group of a run that matches a filter, each with its own review.

    Groups that lack texts are not approved.

    A terminal shows the count and asks for confirmation; otherwise nothing is done without --yes.
    """
    if approve + reject != 1:
        raise click.UsageError("give either --approve or --reject")
    if approve and reason:
        raise click.UsageError("--reason requires --reject")
    if reject and not reason.strip():
        raise click.UsageError("--reject requires --reason TEXT")
    action = "approve" if approve else "reject"
    wanted = QueueFilter(run_id, verdict, drop_reason, source, reviewed, search)
    store = ready_store()
    count = _count(store, wanted, action)
    if not yes and count and sys.stdin.isatty():
        click.confirm(f"{action} {counted(count, 'group')} of run {run_id}?", abort=True, err=True)
        yes = True
    if yes:
        with store.write() as session:
            review_queue.review_in_bulk(
                session, wanted, action, expected=count, reviewed_by=me(), reason=reason
            )
            session.commit()
    return {"run_id": run_id, "action": action, "groups": count, "done": yes}


def _count(store: Store, wanted: QueueFilter, action: str) -> int:
    """The number of matching groups. Raises BadInput for a drop reason the run does not have."""
    with store.read() as session:
        if session.get(Run, wanted.run_id) is None:
            raise NotFound(f"no run {wanted.run_id}", code="no_run")
        dropped = funnel(session, wanted.run_id).dropped
        if wanted.reason is not None and wanted.reason not in dropped:
            there = ", ".join(dropped) or "no groups were dropped"
            raise BadInput(
                f"run {wanted.run_id} has no drop reason {wanted.reason!r}: {there}",
                code="run_no_drop_reason",
            )
        return review_queue.count_matching(session, wanted, reviewer=me(), action=action)


@click.command()
@run_option
@click.option("--show/--hide", "shown", default=None, help="Show or hide them.")
@reporting(
    lambda result: (
        f"annotators {'see' if result['verdicts_shown'] else 'do not see'} "
        f"the verdicts of run {result['run_id']}"
    )
)
def verdicts(run_id: int, shown: bool | None) -> Result:
    """Show or hide a run's verdicts for annotators; without an option, show the setting."""
    with ready_store().write() as session:
        run = session.get(Run, run_id)
        if run is None:
            raise NotFound(f"no run {run_id}", code="no_run")
        if shown is not None:
            review_queue.show_verdicts(session, run_id, shown, actor=me())
            session.commit()
        return {"run_id": run_id, "verdicts_shown": run.verdicts_shown}
