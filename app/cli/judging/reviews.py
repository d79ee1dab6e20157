"""`inf reviews`: approve, reject or edit groups, one or all of a filter; `inf review` as before."""

import sys
from typing import Any

import click

from app.cli.kit.formerly import OneByDefault, formerly
from app.cli.kit.listing import listing
from app.cli.kit.options import field_options, request_of
from app.cli.kit.report import (
    Launching,
    Result,
    command_actor,
    counts,
    facts,
    launched,
    reporting,
)
from app.operations.judging import reviews as operations
from app.text.numbers import counted
from curation.judging.request import ReviewMany, ReviewSet, VerdictsShown
from db.rows import Listed, Row
from db.shape import INF_IR


@click.group()
def reviews() -> None:
    """Approve, reject or edit groups, one or in bulk."""


@reviews.command("list")
@click.argument("run_id", type=int)
@listing(
    *(("review", "id"), ("group", "group_id"), "action"),
    ("now", lambda row: "" if row["is_current"] else "replaced"),
    *(("by", "reviewed_by"), ("at (UTC)", lambda row: row["created_at"][:16].replace("T", " "))),
    "reason",
    empty="no reviews yet: inf reviews set GROUP --approve",
    then="inf groups show {group_id}",
)
def list_(run_id: int, **page: Any) -> Listed[Any]:
    """List the reviews of a run's groups, newest first, those that were replaced, too."""
    return operations.list_some(command_actor(), run_id, **page)


@reviews.command()
@click.argument("review_id", type=int)
@reporting(lambda result: _set(result))
def show(review_id: int) -> Row:
    """Show one review, and what an edit changed."""
    return operations.show(command_actor(), review_id)


def _set(result: Result) -> str:
    if "holds" in result:
        return _validated(result)
    actions = {"approve": "approved", "reject": "rejected", "edit": "edited"}[result["action"]]
    summary = f"group {result['group_id']} {actions} by {result['reviewed_by']}"
    reason = f": {result['reason']}" if result["reason"] else ""
    changed = [
        f"  {name}\n    - {result['before'][name]}\n    + {text}"
        for name, text in result["after"].items()
    ]
    return "\n".join([summary + reason, *changed])


_validated = facts(
    *(("run", "run_id"), "judge", ("edited items", "items"), ("hold", "holds"), ("fail", "fails")),
    ("no usable answer", lambda found: counts(found["unusable"])),
)


def _changes(edits: tuple[str, ...]) -> dict[str, str]:
    changes: dict[str, str] = {}
    for edit in edits:
        name, sign, text = edit.partition("=")
        if not sign:
            raise click.UsageError(f"--edit {edit!r}: write it as FIELD=TEXT")
        changes[name.strip()] = text
    return changes


def _action(approve: bool, reject: bool, edit: bool, reason: str, one_of: str) -> Any:
    """Which of the flags was given. Raises UsageError for none, several, or a missing reason."""
    if approve + reject + edit != 1:
        raise click.UsageError(f"give {one_of}")
    if approve and reason:
        raise click.UsageError("--reason requires --reject or --edit")
    if reject and not reason.strip():
        raise click.UsageError("--reject requires --reason TEXT")
    return "approve" if approve else "reject" if reject else "edit"


SET_OPTIONS = (
    click.option("--approve", is_flag=True, help="Approve the group."),
    click.option("--reject", is_flag=True, help="Reject the group; requires --reason."),
    click.option(
        "--edit",
        "edits",
        multiple=True,
        metavar="FIELD=TEXT",
        help=f"Replace a text; repeatable. Fields of InF-IR: {', '.join(INF_IR.editable)}.",
    ),
    click.option("--reason", default="", help="Reason of the rejection or edit."),
)


def _set_options(command: Any) -> Any:
    for each in reversed(SET_OPTIONS):
        command = each(command)
    return command


def _set_one(
    group_id: int, approve: bool, reject: bool, edits: tuple[str, ...], reason: str
) -> Result:
    one_of = "one of --approve, --reject and --edit"
    action = _action(approve, reject, bool(edits), reason, one_of)
    wanted = ReviewSet(group_id=group_id, action=action, reason=reason, changes=_changes(edits))
    made = operations.set_one(command_actor(), wanted)
    return {"review_id": made.id, **made.as_json()}


@reviews.command("set")
@click.argument("group_id", type=int)
@_set_options
@reporting(_set)
def set_(**given: Any) -> Result:
    """Approve, reject or edit a group. Nothing is overwritten: the newest review applies.

    An edit must pass the rules of the group's run; `inf reviews validate` also runs its validator.
    """
    return _set_one(**given)


@reviews.command()
@click.argument("run_id", type=int)
@launched
@reporting(_validated)
def validate(run_id: int, launch: Launching) -> Result:
    """Let a run's validator judge its edited groups."""
    return operations.validate(command_actor(), run_id, launch("revalidating edits"))


def _bulk(result: Result) -> str:
    verb = "would be " if not result["done"] else ""
    done = "approved" if result["action"] == "approve" else "rejected"
    summary = f"{counted(result['groups'], 'group')} of run {result['run_id']} {verb}{done}"
    return summary if result["done"] else f"{summary}: add --yes to do it"


@reviews.command()
@click.argument("run_id", type=int)
@click.option("--approve", is_flag=True, help="Approve every matching group.")
@click.option("--reject", is_flag=True, help="Reject every matching group; requires --reason.")
@field_options(ReviewMany)
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@reporting(_bulk)
def bulk(approve: bool, reject: bool, yes: bool, **given: Any) -> Result:
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
        return operations.bulk(actor, request.model_copy(update={"expected": count})).as_json()
    return {"run_id": run_id, "action": action, "groups": count, "done": False}


@reviews.command()
@click.argument("run_id", type=int)
@click.option("--show/--hide", "shown", default=None, help="Show or hide them.")
@reporting(
    lambda result: (
        f"annotators {'see' if result['verdicts_shown'] else 'do not see'} "
        f"the verdicts of run {result['run_id']}"
    )
)
def verdicts(run_id: int, shown: bool | None) -> Result:
    """Show or hide a run's verdicts for annotators; without an option, show the setting."""
    wanted = VerdictsShown(run_id=run_id, shown=shown)
    return operations.verdicts(command_actor(), wanted).as_json()


@click.command()
@click.option("--group", "group_id", type=int, help="The group's id.")
@_set_options
@click.option(
    "--revalidate",
    "run_id",
    type=int,
    metavar="RUN",
    help="Validate the edited groups of this run again.",
)
@launched
@reporting(_set)
def one(group_id: int | None, run_id: int | None, launch: Launching, **given: Any) -> Result:
    """Approve, reject or edit a group. Nothing is overwritten: the newest review applies.

    An edit must pass the rules of the group's run; --revalidate also runs its validator.
    """
    if run_id is not None:
        if group_id is not None or any(given.values()):
            raise click.UsageError("--revalidate RUN cannot be combined with other options")
        return operations.validate(command_actor(), run_id, launch("revalidating edits"))
    if group_id is None:
        raise click.UsageError("give --group ID")
    return _set_one(group_id, **given)


@click.group(cls=OneByDefault)
def review() -> None:
    """As `inf reviews`, its former name. Without a subcommand, `one` is used."""


OF_RUN = {"run_id": "--run"}
review.add_command(formerly(one, "review one", "reviews set GROUP"))
review.add_command(formerly(bulk, "review many", "reviews bulk RUN", options=OF_RUN))
review.add_command(formerly(verdicts, "review verdicts", "reviews verdicts RUN", options=OF_RUN))
