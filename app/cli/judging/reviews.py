"""`inf reviews`: approve, reject or edit groups, one or all of a filter."""

import sys
from typing import Any

import click

from app.cli.kit.doors import Noun
from app.cli.kit.formerly import FormerlyOne, formerly
from app.cli.kit.options import field_options, request_of
from app.cli.kit.report import Result, command_actor, counts, facts, reporting
from app.operations.judging import reviews as operations
from app.text.numbers import counted
from curation.judging.request import ReviewMany, ReviewSet
from db.rows import Row

reviews = Noun("reviews")
reviews.listed(
    operations.list_some,
    columns=(
        *(("review", "id"), ("group", "group_id"), "action"),
        ("now", lambda row: "" if row["is_current"] else "replaced"),
        ("by", "reviewed_by"),
        *(("at (UTC)", lambda row: row["created_at"][:16].replace("T", " ")), "reason"),
    ),
    empty="no reviews yet",
)


def _set(result: Result) -> str:
    actions = {"approve": "approved", "reject": "rejected", "edit": "edited"}[result["action"]]
    summary = f"group {result['group_id']} {actions} by {result['reviewed_by']}"
    reason = f": {result['reason']}" if result["reason"] else ""
    changed = [
        f"  {name}\n    - {result['before'].get(name, '–')}\n    + {text or '–'}"
        for name, text in result["after"].items()
    ]
    return "\n".join([summary + reason, *changed])


_validated = facts(
    *(("run", "run_id"), "judge", ("edited items", "items"), ("hold", "holds"), ("fail", "fails")),
    ("no usable answer", lambda found: counts(found["unusable"])),
)
reviews.door(operations.show, text=_set)


def _action(approve: bool, reject: bool, edit: bool, reason: str, one_of: str) -> Any:
    """Which of the flags was given. Raises UsageError for none, several, or a missing reason."""
    if approve + reject + edit != 1:
        raise click.UsageError(f"give {one_of}")
    if approve and reason:
        raise click.UsageError("--reason requires --reject or --edit")
    if reject and not reason.strip():
        raise click.UsageError("--reject requires --reason TEXT")
    return "approve" if approve else "reject" if reject else "edit"


@reviews.command("set")
@click.option("--approve", is_flag=True, help="Approve the group.")
@click.option("--reject", is_flag=True, help="Reject the group; requires --reason.")
@field_options(ReviewSet)
@reporting(_set, former={"review_id": "id"})
def set_(approve: bool, reject: bool, **given: Any) -> Row:
    """Approve, reject or edit a group. Nothing is overwritten: the newest review applies.

    An edit must pass the rules of the group's run; `inf reviews validate` also runs its validator.
    """
    one_of = "one of --approve, --reject and --edit"
    action = _action(approve, reject, bool(given["changes"]), given["reason"], one_of)
    return operations.set_one(command_actor(), request_of(ReviewSet, given | {"action": action}))


validate = reviews.door(operations.validate, text=_validated, title="revalidating edits")


def _bulk(result: Result) -> str:
    verb = "would be " if not result["done"] else ""
    done = "approved" if result["action"] == "approve" else "rejected"
    summary = f"{counted(result['groups'], 'group')} of run {result['run_id']} {verb}{done}"
    return summary if result["done"] else f"{summary}: add --yes to do it"


@reviews.command()
@click.option("--approve", is_flag=True, help="Approve every matching group.")
@click.option("--reject", is_flag=True, help="Reject every matching group; requires --reason.")
@field_options(ReviewMany)
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@reporting(_bulk)
def bulk(approve: bool, reject: bool, yes: bool, **given: Any) -> operations.BulkReview:
    """Approve or reject every group of a run that matches a filter, each with its own review.

    Groups that lack texts are not approved.

    A terminal shows the count and asks for confirmation; otherwise nothing is done without --yes.
    """
    action = _action(approve, reject, False, given["because"], "either --approve or --reject")
    request = request_of(ReviewMany, {**given, "action": action})
    actor, run_id = command_actor(), request.run_id
    count = operations.count(actor, request)
    if not yes and count and sys.stdin.isatty():
        click.confirm(f"{action} {counted(count, 'group')} of run {run_id}?", abort=True, err=True)
        yes = True
    if yes:
        return operations.bulk(actor, request.model_copy(update={"expected": count}))
    return operations.BulkReview(run_id=run_id, action=action, groups=count, done=False)


verdicts = reviews.door(
    operations.verdicts,
    text=lambda result: (
        f"annotators {'see' if result['verdicts_shown'] else 'do not see'} "
        f"the verdicts of run {result['run_id']}"
    ),
)


OF_RUN = {"run_id": "--run"}
review = Noun(
    "review",
    FormerlyOne(
        "review one",
        formerly(set_, "review one", "reviews set GROUP", options={"group_id": "--group"}),
        {"--revalidate": (validate, "reviews validate")},
    ),
    formerly(bulk, "review many", "reviews bulk RUN", options=OF_RUN),
    formerly(verdicts, "review verdicts", "reviews verdicts RUN", options=OF_RUN),
    default="one",
)
